//! TPC-H lineitem rows as keys and values, with wide comments.
//!
//! The key is order, part and supplier number written one after the other in decimal; the value is
//! the remaining columns joined by `|`, in the table's order. The columns are exactly dbgen's (by
//! the crate tpchgen); the comment is drawn from dbgen's stream for that column, but with another
//! average length, as if dbgen's `L_CMNT_LEN` were changed.
//!
//! Two lines of one order may name the same part and supplier and would then have the same key:
//! only the first is kept, and the others are counted. A [`Row`] is compact and can be written
//! again at any time, so that a store's answers can be compared byte for byte without keeping the
//! values.

use std::io::Write;
use std::sync::{Arc, LazyLock};

use drumlin_base::{Error, Result};
use tpchgen::dates::{MIN_GENERATE_DATE, TPCHDate};
use tpchgen::distribution::Distributions;
use tpchgen::generators::{LineItem, LineItemGenerator, LineItemGeneratorIterator};
use tpchgen::random::RowRandomInt;
use tpchgen::text::TextPool;

use crate::text::{Comment, CommentText};

/// dbgen's seed of the comment column.
const COMMENT_SEED: i64 = 1_095_462_486;
/// Most lines an order has.
const LINES_MAX: i32 = 7;
/// Orders at scale factor 1.
const ORDERS_PER_SCALE: f64 = 1_500_000.0;

/// The narrow comments tpchgen draws beside the columns are not used; they come from this pool.
static UNUSED_POOL: LazyLock<TextPool> =
    LazyLock::new(|| TextPool::new(4096, Distributions::static_default()));

/// The table to generate.
#[derive(Clone, Copy, Debug)]
pub struct LineItemSpec {
    /// TPC-H scale factor; 1 is 6 million rows.
    pub scale_factor: f64,
    /// The number, from 1, of one of `parts` equal parts of the orders.
    pub part: i32,
    /// Into how many parts the orders are cut.
    pub parts: i32,
    /// Average bytes of a comment; lengths are uniform between 0.4 and 1.6 of it.
    pub comment_bytes: u32,
    /// Changes fresh text; pool text follows from the pool's size.
    pub seed: u64,
}

impl Default for LineItemSpec {
    fn default() -> Self {
        Self {
            scale_factor: 1.0,
            part: 1,
            parts: 1,
            comment_bytes: 512,
            seed: 0,
        }
    }
}

impl LineItemSpec {
    /// The longest comment.
    pub fn comment_bytes_max(&self) -> u32 {
        (f64::from(self.comment_bytes) * 1.6) as u32
    }

    fn comment_bytes_min(&self) -> u32 {
        (f64::from(self.comment_bytes) * 0.4) as u32
    }

    fn check(&self) -> Result<()> {
        let complaint = if !(0.0001..=100_000.0).contains(&self.scale_factor) {
            "the scale factor must be 0.0001 to 100000"
        } else if self.parts < 1 || !(1..=self.parts).contains(&self.part) {
            "the part must be 1 to the number of parts"
        } else if !(1..=65_536).contains(&self.comment_bytes) {
            "comments must have 1 to 65536 bytes on average"
        } else {
            return Ok(());
        };
        Err(Error::invalid_argument(complaint))
    }
}

/// One row, in 48 bytes. Write it with [`Row::write_key`] and [`Row::write_value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    order: u64,
    part: u32,
    supplier: u32,
    price_cents: u32,
    comment: Comment,
    dates: [u16; 3],
    line: u8,
    quantity: u8,
    discount: u8,
    tax: u8,
    return_flag: u8,
    status: u8,
    instruction: u8,
    mode: u8,
}

impl Row {
    fn new(item: &LineItem<'_>, comment: Comment) -> Self {
        let words = Distributions::static_default();
        let position = |values: &[&str], word: &str| {
            let index = values.iter().position(|value| *value == word);
            index
                .and_then(|index| u8::try_from(index).ok())
                .unwrap_or(0)
        };
        let day = |date: TPCHDate| u16::try_from(date.into_inner()).unwrap_or(0);
        let byte = |number: i64| u8::try_from(number).unwrap_or(u8::MAX);
        let letter = |word: &str| word.bytes().next().unwrap_or(b'?');
        Self {
            order: item.l_orderkey.unsigned_abs(),
            part: u32::try_from(item.l_partkey).unwrap_or(u32::MAX),
            supplier: u32::try_from(item.l_suppkey).unwrap_or(u32::MAX),
            price_cents: u32::try_from(item.l_extendedprice.0).unwrap_or(u32::MAX),
            comment,
            dates: [
                day(item.l_shipdate),
                day(item.l_commitdate),
                day(item.l_receiptdate),
            ],
            line: byte(i64::from(item.l_linenumber)),
            quantity: byte(item.l_quantity),
            discount: byte(item.l_discount.0),
            tax: byte(item.l_tax.0),
            return_flag: letter(item.l_returnflag),
            status: letter(item.l_linestatus),
            instruction: position(words.ship_instructions().get_values(), item.l_shipinstruct),
            mode: position(words.ship_modes().get_values(), item.l_shipmode),
        }
    }

    /// Replaces `out` by the row's key.
    pub fn write_key(&self, out: &mut Vec<u8>) {
        out.clear();
        push_number(self.order, out);
        push_number(u64::from(self.part), out);
        push_number(u64::from(self.supplier), out);
    }

    /// Replaces `out` by the row's value, its comment cut from `text`.
    pub fn write_value(&self, text: &CommentText, out: &mut Vec<u8>) {
        let words = Distributions::static_default();
        let word = |values: &[&'static str], index: u8| {
            let word = values.get(usize::from(index)).copied();
            word.unwrap_or_default().as_bytes()
        };
        out.clear();
        push_number(u64::from(self.line), out);
        out.push(b'|');
        push_number(u64::from(self.quantity), out);
        for cents in [self.price_cents, self.discount.into(), self.tax.into()] {
            out.push(b'|');
            push_cents(cents, out);
        }
        out.extend_from_slice(&[b'|', self.return_flag, b'|', self.status]);
        for day in self.dates {
            let date = TPCHDate::new(MIN_GENERATE_DATE + i32::from(day));
            write!(out, "|{date}").expect("a vector takes every byte");
        }
        out.push(b'|');
        out.extend_from_slice(word(
            words.ship_instructions().get_values(),
            self.instruction,
        ));
        out.push(b'|');
        out.extend_from_slice(word(words.ship_modes().get_values(), self.mode));
        out.push(b'|');
        text.append(self.comment, out);
    }
}

fn push_number(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let (mut at, mut rest) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn push_cents(cents: u32, out: &mut Vec<u8>) {
    push_number(u64::from(cents / 100), out);
    let rest = (cents % 100) as u8;
    out.extend_from_slice(&[b'.', b'0' + rest / 10, b'0' + rest % 10]);
}

/// Rows in order of their order numbers. Deterministic: the same spec gives the same rows.
#[derive(Debug)]
pub struct LineItems {
    items: LineItemGeneratorIterator<'static>,
    text: Arc<CommentText>,
    comment_random: RowRandomInt,
    comment_bytes: (i32, i32),
    seed: u64,
    /// Keys of the present order.
    order: i64,
    in_order: Vec<(i64, i64)>,
    repeated: u64,
}

impl LineItems {
    /// The rows of `spec`, their comments from `text`.
    ///
    /// # Errors
    /// `InvalidArgument` for a spec out of range, or comments too long for the pool.
    pub fn new(spec: &LineItemSpec, text: Arc<CommentText>) -> Result<Self> {
        spec.check()?;
        let longest = i32::try_from(spec.comment_bytes_max()).unwrap_or(i32::MAX);
        if text.pool_bytes().is_some_and(|bytes| bytes <= longest) {
            return Err(Error::invalid_argument(
                "the text pool is smaller than a comment",
            ));
        }
        let generator = LineItemGenerator::new_with_distributions_and_text_pool(
            spec.scale_factor,
            spec.part,
            spec.parts,
            Distributions::static_default(),
            &UNUSED_POOL,
        );
        let orders = (ORDERS_PER_SCALE * spec.scale_factor) as i64;
        let skipped = orders / i64::from(spec.parts) * i64::from(spec.part - 1);
        let mut comment_random = RowRandomInt::new(COMMENT_SEED, LINES_MAX * 2);
        comment_random.advance_rows(skipped);
        Ok(Self {
            items: generator.iter(),
            text,
            comment_random,
            comment_bytes: (
                i32::try_from(spec.comment_bytes_min()).unwrap_or(0),
                longest,
            ),
            seed: spec.seed,
            order: 0,
            in_order: Vec::with_capacity(8),
            repeated: 0,
        })
    }

    /// Where the comments come from.
    pub fn text(&self) -> &Arc<CommentText> {
        &self.text
    }

    /// Rows left out so far because an earlier line of their order has the same key.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    fn draw_comment(&mut self, item: &LineItem<'_>) -> Comment {
        let (shortest, longest) = self.comment_bytes;
        let room = self.text.pool_bytes().unwrap_or(i32::MAX) - longest;
        let offset = self.comment_random.next_int(0, room);
        let len = self.comment_random.next_int(shortest, longest);
        let start = match &*self.text {
            CommentText::Pool(_) => u64::from(offset.unsigned_abs()),
            CommentText::Fresh(_) => {
                let row = item.l_orderkey.unsigned_abs() * 8
                    + u64::from(item.l_linenumber.unsigned_abs());
                row ^ self.seed.rotate_left(32)
            }
        };
        Comment {
            start,
            len: len.unsigned_abs(),
        }
    }
}

impl Iterator for LineItems {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        loop {
            let item = self.items.next()?;
            if item.l_orderkey != self.order {
                if self.order != 0 {
                    self.comment_random.row_finished();
                }
                self.order = item.l_orderkey;
                self.in_order.clear();
            }
            let comment = self.draw_comment(&item);
            let key = (item.l_partkey, item.l_suppkey);
            if self.in_order.contains(&key) {
                self.repeated += 1;
                continue;
            }
            self.in_order.push(key);
            return Some(Row::new(&item, comment));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(spec: &LineItemSpec, text: CommentText) -> LineItems {
        LineItems::new(spec, Arc::new(text)).expect("a sound spec")
    }

    fn small() -> LineItemSpec {
        LineItemSpec {
            scale_factor: 0.01,
            ..LineItemSpec::default()
        }
    }

    fn pool() -> CommentText {
        CommentText::pool(1 << 20, 819).expect("large enough")
    }

    #[test]
    fn columns_are_those_of_dbgen() {
        // The first line of lineitem at scale factor 1, as every dbgen writes it:
        // 1|155190|7706|1|17|21168.23|0.04|0.02|N|O|1996-03-13|1996-02-12|1996-03-22|...
        let mut rows = rows(&LineItemSpec::default(), pool());
        let row = rows.next().expect("a row");
        let (mut key, mut value) = (Vec::new(), Vec::new());
        row.write_key(&mut key);
        row.write_value(&pool(), &mut value);
        assert_eq!(key, b"11551907706");
        let expected: &[u8] = b"1|17|21168.23|0.04|0.02|N|O|1996-03-13|1996-02-12|1996-03-22|\
                                DELIVER IN PERSON|TRUCK|";
        assert_eq!(&value[..expected.len()], expected);
        assert!((204..=819).contains(&(value.len() - expected.len())));
    }

    #[test]
    fn comments_have_the_asked_length_on_average() {
        for text in [pool(), CommentText::fresh()] {
            let rows = rows(&small(), text);
            let text = Arc::clone(rows.text());
            let (mut bytes, mut count, mut comment) = (0, 0, Vec::new());
            for row in rows.take(5000) {
                comment.clear();
                text.append(row.comment, &mut comment);
                bytes += comment.len();
                count += 1;
            }
            let average = bytes as f64 / f64::from(count);
            assert!((500.0..524.0).contains(&average), "{average}");
        }
    }

    #[test]
    fn the_same_spec_gives_the_same_rows() {
        let one: Vec<Row> = rows(&small(), pool()).take(2000).collect();
        let two: Vec<Row> = rows(&small(), pool()).take(2000).collect();
        assert_eq!(one, two);
    }

    #[test]
    fn parts_put_together_are_the_whole() {
        let whole: Vec<Row> = rows(&small(), pool()).collect();
        let mut joined = Vec::new();
        for part in 1..=3 {
            let spec = LineItemSpec {
                part,
                parts: 3,
                ..small()
            };
            joined.extend(rows(&spec, pool()));
        }
        assert_eq!(joined.len(), whole.len());
        assert!(joined == whole);
    }

    #[test]
    fn a_row_is_small_and_no_order_has_a_key_twice() {
        assert!(size_of::<Row>() <= 56, "{}", size_of::<Row>());
        let mut rows = rows(&small(), pool());
        let (mut seen, mut key) = (std::collections::HashSet::new(), Vec::new());
        let (mut order, mut lines) = (0, 0u64);
        for row in rows.by_ref() {
            if row.order != order {
                seen.clear();
                order = row.order;
            }
            row.write_key(&mut key);
            assert!(seen.insert(key.clone()));
            lines += 1;
        }
        assert_eq!(lines + rows.repeated(), 60_175); // Lines of dbgen at scale factor 0.01.
    }
}
