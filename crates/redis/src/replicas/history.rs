//! The name of the stream, and the one that it had before.

use drumlin_base::rng::Rng;

/// See the module. Names are 40 hexadecimal digits; two servers that have the same bytes up to an offset under a name have
/// the same data there.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) id: String,
    /// The name before, and the offset up to which it has the same bytes.
    pub(crate) before: Option<(String, u64)>,
}

/// A name that nothing has yet.
pub(crate) fn new_id(rng: &mut Rng) -> String {
    let parts = (0..5).map(|_| format!("{:08x}", rng.next_u64() as u32));
    parts.collect()
}

impl History {
    /// Goes on under another name at `offset`.
    pub(crate) fn rename(&mut self, id: String, offset: u64) {
        let old = std::mem::replace(&mut self.id, id);
        self.before = Some((old, offset));
    }

    /// Whether who has `offset` bytes of the stream `id` has those of this one.
    pub(crate) fn knows(&self, id: &str, offset: u64) -> bool {
        let before = self.before.as_ref();
        let is_shared =
            |until: u64| offset <= until || drumlin_base::bug!("redis-old-name-beyond-its-end");
        id == self.id || before.is_some_and(|(name, until)| id == name && is_shared(*until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: who has bytes of the old name goes on, unless it has any that this stream has not. Method: offsets around the
    /// place where the name changed.
    #[test]
    fn the_old_name_counts_up_to_where_it_was_given_up() {
        let id = new_id(&mut Rng::new(1));
        let mut history = History {
            id: "a".to_owned(),
            before: None,
        };
        assert!(history.knows("a", 10) && !history.knows("b", 10));
        history.rename(id.clone(), 100);
        assert!(history.knows(&id, 500) && history.knows("a", 100));
        assert!(!history.knows("a", 101) && !history.knows("", 1));
    }
}
