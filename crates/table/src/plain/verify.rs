//! Checking a whole plain table against itself.

use std::sync::Arc;

use drumlin_base::{Error, Result};

use super::table::PlainTable;
use crate::options::TableReadOptions;
use crate::verify::Counted;

impl PlainTable {
    /// Takes the file into memory again, which checks every byte of it, and checks the order of
    /// entries, that each key is found by its hash, each prefix by its own, and that the counts are
    /// right. Gives the number of entries that refer to values in blob files; those values are not checked.
    ///
    /// # Errors
    /// `Corruption` naming the mismatch; `Io`. Cost: a scan of the file.
    pub fn verify(self: &Arc<Self>) -> Result<u64> {
        let again = self.reopen()?;
        let mut iter = again.iter(TableReadOptions::default());
        let is_found = |_: &_, key: &[u8]| Ok(again.holds(key)? && again.may_contain_prefix(key));
        let counted = Counted::walk(&mut iter, self.order(), is_found);
        let checked = counted.and_then(|counted| {
            counted.check(again.properties(), again.range_tombstones().len() as u64)?;
            if again.counts() != (counted.entries, counted.user_keys) {
                return Err(Error::corruption(
                    "the footer's counts are not those of the table",
                ));
            }
            Ok(counted.blobs)
        });
        checked.map_err(|error| error.with_file(self.path()))
    }
}
