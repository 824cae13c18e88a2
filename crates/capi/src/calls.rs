//! The functions that shells call, by the names that C has for them.

pub(crate) use crate::backup::calls::*;
pub(crate) use crate::batch::calls::*;
pub(crate) use crate::cache::calls::*;
pub(crate) use crate::changes::calls::*;
pub(crate) use crate::compaction_filter::calls::*;
pub(crate) use crate::database::calls::*;
pub(crate) use crate::env::calls::*;
pub(crate) use crate::family::calls::*;
pub(crate) use crate::indexed_batch::calls::*;
pub(crate) use crate::iterator::calls::*;
pub(crate) use crate::maintenance::calls::*;
pub(crate) use crate::memory::calls::*;
pub(crate) use crate::metadata::calls::*;
pub(crate) use crate::misc::calls::*;
pub(crate) use crate::options::calls::*;
pub(crate) use crate::reads::calls::*;
pub(crate) use crate::secondary::calls::*;
pub(crate) use crate::small_options::calls::*;
pub(crate) use crate::snapshot::calls::*;
pub(crate) use crate::table_options::calls::*;
pub(crate) use crate::table_writer::calls::*;
pub(crate) use crate::transaction::calls::*;
pub(crate) use crate::transform::calls::*;
pub(crate) use crate::writes::calls::*;
