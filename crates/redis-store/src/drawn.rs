//! Elements of a collection that a cursor has found together, for the commands of a round that take elements at random.
//!
//! A cursor over the memtables and tables costs more than all else that such a command does; one serves many.

use crate::record::Collection;

/// See the module. Those that were removed since they were found have to be passed over.
#[derive(Debug, Default)]
pub(crate) struct Drawn {
    of: Option<Collection>,
    names: Vec<Vec<u8>>,
}

impl Drawn {
    /// These elements of a collection, the last one first.
    pub(crate) fn new(of: Collection, names: Vec<Vec<u8>>) -> Self {
        let of = Some(of);
        Self { of, names }
    }

    /// The next one, if there are any of this collection.
    pub(crate) fn next(&mut self, of: Collection) -> Option<Vec<u8>> {
        match self.of == Some(of) {
            true => self.names.pop(),
            false => None,
        }
    }
}
