//! How much larger the values of a table are than their codes.
//!
//! Rows that are copied are not decoded, so the size of their values is estimated from the sizes of all
//! values of their table. A property of the table's own tells these: pages hold other bytes beside codes,
//! and an estimate by pages would shrink with every copy.

use drumlin_base::coding::{fixed64_at, put_fixed64};
use drumlin_base::limits::VALUE_BYTES_MAX;

use crate::format::TableProperties;

/// Name of the user property of tables that name a model: bytes of the values that are coded, and bytes
/// of their codes, eight bytes little-endian each.
pub(super) const CODED_VALUES: &str = "drumlin.coded.values";

/// Name of the user property with the length of the longest coded value, eight bytes little-endian. A row that
/// would decode to more is damaged.
pub(super) const LONGEST_VALUE: &str = "drumlin.longest.value";

/// The bytes that a writer has coded and copied.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Coded {
    /// Bytes of the values it encoded.
    pub(super) encoded_bytes: u64,
    /// The same of those whose codes it copied, about.
    pub(super) copied_bytes: f64,
    /// Bytes of the codes of both.
    pub(super) code_bytes: u64,
    /// Length of the longest of these values.
    pub(super) value_bytes_max: usize,
}

impl Coded {
    /// The property.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let values = self
            .encoded_bytes
            .saturating_add(self.copied_bytes.round() as u64);
        put_fixed64(&mut out, values);
        put_fixed64(&mut out, self.code_bytes);
        out
    }
}

/// The most bytes a coded value of a table has.
pub(super) fn value_bytes_max(properties: &TableProperties) -> usize {
    let told = properties.user.get(LONGEST_VALUE);
    let told = told.and_then(|told| fixed64_at(told, 0));
    // Tables written before it was told have values of any length.
    let told = told.and_then(|told| usize::try_from(told).ok());
    told.unwrap_or(VALUE_BYTES_MAX).min(VALUE_BYTES_MAX)
}

/// Bytes of a value for each byte of its code, over all of a table.
pub(super) fn expansion(properties: &TableProperties) -> f64 {
    let told = properties.user.get(CODED_VALUES).and_then(|told| {
        let (values, codes) = (fixed64_at(told, 0)?, fixed64_at(told, 8)?);
        (codes > 0).then_some((values, codes))
    });
    // Tables without this property count their pages instead, which are larger than the codes.
    let (values, codes) = told.unwrap_or((properties.raw_value_size, properties.data_size.max(1)));
    values as f64 / codes as f64
}
