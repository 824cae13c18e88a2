//! TPC-H lineitem as a data set: the rows of `crate::lineitem`, numbered and cut to a size.

use std::collections::HashSet;
use std::sync::Arc;

use drumlin_base::Result;
use drumlin_base::checksum::xxh3_64;

use super::set::DataSet;
use crate::lineitem::{LineItemSpec, LineItems, Row};
use crate::text::{CommentText, POOL_BYTES_TPCH};

/// Bytes of keys and values of the published measurement over lineitem.
pub const FULL_SIZE_BYTES: u64 = 554_539_419_806;
/// The smallest pool a cut-down data set gets.
const POOL_BYTES_MIN: u64 = 64 << 10;
/// Rows at scale factor 1, and the average bytes of one without its comment.
const ROWS_PER_SCALE: f64 = 6_000_000.0;
const ROW_BYTES_BESIDE_COMMENT: u64 = 90;

/// A text pool in proportion to the data: text then repeats as often as in the full data set.
pub fn scaled_pool_bytes(data_bytes: u64) -> u64 {
    let scaled = u128::from(POOL_BYTES_TPCH) * u128::from(data_bytes) / u128::from(FULL_SIZE_BYTES);
    u64::try_from(scaled)
        .unwrap_or(POOL_BYTES_TPCH)
        .clamp(POOL_BYTES_MIN, POOL_BYTES_TPCH)
}

/// Rows whose keys are all different, 48 bytes each; values are written anew whenever asked for.
///
/// Within an order the generator leaves out repeated keys; across orders two keys may still be the
/// same digits (order 1, part 156 and order 11, part 56), which a set of fingerprints finds.
#[derive(Debug)]
pub struct LineItemSet {
    rows: Vec<Row>,
    text: Arc<CommentText>,
    title: String,
}

impl LineItemSet {
    /// Rows of `bytes_max` bytes of keys and values, from the middle of scale factor 150 and so with keys of
    /// as many digits as the published measurement's; comments from a pool in proportion to
    /// `bytes_max`, or fresh.
    ///
    /// # Errors
    /// `InvalidArgument` when the bytes are more than the generator counts.
    pub fn sized(bytes_max: u64, is_fresh: bool, seed: u64) -> Result<Self> {
        let comment_bytes = LineItemSpec::default().comment_bytes;
        let row_bytes = ROW_BYTES_BESIDE_COMMENT + u64::from(comment_bytes);
        let wanted = bytes_max as f64 / row_bytes as f64 * 1.05;
        let parts = (ROWS_PER_SCALE * SCALE / wanted.max(1.0))
            .floor()
            .clamp(1.0, PARTS_MAX);
        let parts = parts as i32;
        let spec = LineItemSpec {
            scale_factor: SCALE,
            part: parts / 2 + 1,
            parts,
            seed,
            ..LineItemSpec::default()
        };
        let text = if is_fresh {
            CommentText::fresh()
        } else {
            CommentText::pool(scaled_pool_bytes(bytes_max), spec.comment_bytes_max())?
        };
        Self::new(&spec, Arc::new(text), bytes_max)
    }

    /// Rows of `spec` until they have `bytes_max` bytes.
    ///
    /// # Errors
    /// As [`LineItems::new`].
    pub fn new(spec: &LineItemSpec, text: Arc<CommentText>, bytes_max: u64) -> Result<Self> {
        let mut seen = HashSet::new();
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for row in LineItems::new(spec, Arc::clone(&text))? {
            row.write_key(&mut key);
            if !seen.insert(xxh3_64(&key)) {
                continue;
            }
            row.write_value(&text, &mut value);
            bytes += (key.len() + value.len()) as u64;
            if bytes > bytes_max {
                break;
            }
            rows.push(row);
        }
        let source = text.pool_bytes().map_or_else(
            || format!("fresh text of seed {}", spec.seed),
            |bytes| format!("a text pool of {bytes} bytes"),
        );
        let title = format!(
            "TPC-H lineitem, scale factor {}, part {} of {}, comments of {} bytes from {source}",
            spec.scale_factor, spec.part, spec.parts, spec.comment_bytes
        );
        Ok(Self { rows, text, title })
    }
}

/// Scale factor of the published measurement.
const SCALE: f64 = 150.0;
/// Most parts its orders are cut into: a part then has about 600 rows.
const PARTS_MAX: f64 = 1_500_000.0;

impl DataSet for LineItemSet {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    fn write_key(&self, index: u64, out: &mut Vec<u8>) {
        if let Some(row) = self.rows.get(index as usize) {
            row.write_key(out);
        }
    }

    fn write_value(&self, index: u64, out: &mut Vec<u8>) {
        if let Some(row) = self.rows.get(index as usize) {
            row.write_value(&self.text, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::set::tests::check;
    use super::super::set::totals;
    use super::*;

    #[test]
    fn the_pool_shrinks_with_the_data() {
        assert_eq!(scaled_pool_bytes(FULL_SIZE_BYTES), POOL_BYTES_TPCH);
        assert_eq!(scaled_pool_bytes(u64::MAX), POOL_BYTES_TPCH);
        assert_eq!(scaled_pool_bytes(1000), POOL_BYTES_MIN);
        // The reference's miniature used about 700 KB for 1.2 GB.
        assert!((650_000..750_000).contains(&scaled_pool_bytes(1_226_700_000)));
    }

    #[test]
    fn rows_fill_the_bytes_asked_for() {
        for is_fresh in [false, true] {
            let set = LineItemSet::sized(600_000, is_fresh, 3).expect("sound sizes");
            check(&set);
            let sums = totals(&set);
            let bytes = sums.key_bytes + sums.value_bytes;
            assert!((598_000..=600_000).contains(&bytes), "{sums:?}");
            assert!(
                (21..24).contains(&(sums.key_bytes / sums.records)),
                "{sums:?}"
            );
        }
    }
}
