//! Long work that somebody watches and may end.

use drumlin_base::Result;

use crate::compaction::CancelToken;
use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::maintenance::compact;
use crate::maintenance::verify::{VerifyOptions, VerifyReport, verify};

impl Db {
    /// [`Db::verify`], watched.
    ///
    /// # Errors
    /// As [`Db::verify`].
    pub fn verify_with(&self, options: &VerifyOptions) -> Result<VerifyReport> {
        let _call = self.engine.store.begin_call()?;
        verify(&self.engine, options)
    }

    /// [`Db::recode`], until `cancel` ends it. Tables that are written by then stay.
    ///
    /// # Errors
    /// As [`Db::recode`]; `Aborted` when it was cancelled.
    pub fn recode_until(&self, family: &ColumnFamily, cancel: &CancelToken) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        compact::recode(&self.engine, family, Some(cancel))
    }
}
