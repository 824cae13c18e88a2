//! Blocks about the table itself: the metaindex and the properties, whose keys are plain names.

use drumlin_base::{Error, Result};

use super::layout::{Block, BlockView, entry_header, parse_block};
use crate::format::BlockHandle;

/// All entries of a metaindex or properties block.
#[derive(Debug)]
pub(crate) struct MetaBlock {
    block: Block,
    /// Each name, and where its value is in the block.
    entries: Vec<(Vec<u8>, std::ops::Range<usize>)>,
}

impl MetaBlock {
    /// Decodes the contents of a block.
    ///
    /// # Errors
    /// `Corruption`.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let block = parse_block(bytes)?;
        let mut entries = Vec::new();
        let mut key = Vec::new();
        let mut at = 0;
        let bytes = block.entries();
        while at < bytes.len() {
            let header = entry_header(bytes, at).ok_or_else(damaged)?;
            let delta = bytes
                .get(header.delta_at..header.value_at())
                .ok_or_else(damaged)?;
            if header.shared > key.len() {
                return Err(damaged());
            }
            key.truncate(header.shared);
            key.extend_from_slice(delta);
            entries.push((key.clone(), header.value_at()..header.end()));
            at = header.end();
        }
        Ok(Self { block, entries })
    }

    /// Names and values in block order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|(name, range)| {
            let value = self.block.bytes().get(range.clone());
            let value = value.expect("an entry that was decoded is in its block");
            (name.as_slice(), value)
        })
    }

    /// Where the value of `name` is in the block's bytes.
    pub(crate) fn value_range(&self, name: &str) -> Option<std::ops::Range<usize>> {
        let found = self.entries.iter().find(|(at, _)| at == name.as_bytes());
        found.map(|(_, range)| range.clone())
    }

    /// The handle stored under `name`; `None` when there is none.
    ///
    /// # Errors
    /// `Corruption` when the value is no handle.
    pub(crate) fn handle(&self, name: &str) -> Result<Option<BlockHandle>> {
        match self.iter().find(|(at, _)| *at == name.as_bytes()) {
            Some((_, value)) => Ok(Some(BlockHandle::decode(value)?.0)),
            None => Ok(None),
        }
    }
}

#[cold]
fn damaged() -> Error {
    Error::corruption("meta block entry does not decode")
}
