//! Trims: the oldest entries go.

use super::id::StreamId;
use super::node::Node;
use super::value::{ENTRY, Stream, damaged, id_key};
use crate::failure::Outcome;
use crate::keyspace::Keyspace;
use crate::walk::Direction;

/// What is left.
#[derive(Clone, Copy, Debug)]
pub enum TrimTo {
    /// So many entries.
    Length(u64),
    /// Those from this id on.
    Id(StreamId),
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Trim {
    /// What is left.
    pub to: TrimTo,
    /// Otherwise only whole nodes go, and more may be left.
    pub is_exact: bool,
    /// No more entries than this go; 0 for any number.
    pub limit: u64,
}

impl Stream {
    /// Deletes the oldest entries; how many there were. Costs a step for each.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn trim(&mut self, keyspace: &mut Keyspace<'_>, trim: Trim) -> Outcome<u64> {
        let mut deleted: u64 = 0;
        while self.length > 0 {
            if matches!(trim.to, TrimTo::Length(most) if self.length <= most) {
                break;
            }
            let node = self.node_of(keyspace, self.first)?;
            if trim.limit > 0 && deleted.saturating_add(node.live) > trim.limit {
                break;
            }
            let is_whole = match trim.to {
                TrimTo::Length(most) => self.length.saturating_sub(node.live) >= most,
                TrimTo::Id(id) => node.last < id,
            };
            if is_whole {
                deleted += self.trim_node(keyspace, node, |_, _| true)?;
                continue;
            }
            if !trim.is_exact && !drumlin_base::bug!("redis-rough-trim-cuts-nodes") {
                break;
            }
            let (length, is_tail) = (self.length, self.closed == 0);
            deleted += self.trim_node(keyspace, node, |taken, id| match trim.to {
                TrimTo::Length(most) => length - taken > most,
                TrimTo::Id(least) => id < least,
            })?;
            if is_tail && self.tail.is_none() {
                // Its last entry is behind the bound, and deleted: Redis goes on adding to the node.
                let mut emptied = node;
                (emptied.deleted, emptied.live) = (node.deleted + node.live, 0);
                self.tail = Some(emptied);
            }
            break;
        }
        Ok(deleted)
    }

    /// Deletes the first entries of the first node while `goes` says so of the number of those before and the id.
    fn trim_node(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        node: Node,
        goes: impl Fn(u64, StreamId) -> bool,
    ) -> Outcome<u64> {
        let mut ids = Vec::new();
        let range = (node.first, node.last);
        let mut entries = self.entries(keyspace, range, Direction::Forward);
        let mut next = None;
        while let Some(entry) = entries.next()? {
            if !goes(ids.len() as u64, entry.id) {
                next = Some(entry.id);
                break;
            }
            ids.push(entry.id);
        }
        drop(entries);
        for id in &ids {
            keyspace.sub_delete(self.of, &id_key(ENTRY, *id));
        }
        let deleted = ids.len() as u64;
        if deleted > node.live || (next.is_none() && deleted < node.live) {
            return Err(damaged("a node counts other entries than it has").into());
        }
        self.shrink_node(keyspace, node, deleted)?;
        match next {
            Some(first) => self.first = first,
            None => self.find_first(keyspace)?,
        }
        Ok(deleted)
    }
}
