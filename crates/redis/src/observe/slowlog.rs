//! The slow log: the newest commands that took long.

use std::collections::VecDeque;

/// Arguments of an entry, and bytes of one; as many as Redis keeps.
const ARGS_MAX: usize = 32;
const ARG_BYTES_MAX: usize = 128;

/// A command that took long.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) seconds: u64,
    pub(crate) micros: u64,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) address: String,
    pub(crate) name: Vec<u8>,
}

/// See the module. The newest entry is the first.
#[derive(Debug, Default)]
pub(crate) struct Slowlog {
    entries: VecDeque<Entry>,
    next_id: u64,
}

impl Slowlog {
    /// Adds a command of `micros`, and keeps `most` entries.
    pub(crate) fn add(
        &mut self,
        args: &[&[u8]],
        (seconds, micros): (u64, u64),
        (address, name): (&str, &[u8]),
        most: usize,
    ) {
        self.entries.push_front(Entry {
            id: self.next_id,
            seconds,
            micros,
            args: cut(args),
            address: address.to_owned(),
            name: name.to_vec(),
        });
        self.next_id += 1;
        self.entries.truncate(most);
    }

    /// The entries, the newest first.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Forgets all entries.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

fn cut(args: &[&[u8]]) -> Vec<Vec<u8>> {
    let kept = match args.len() > ARGS_MAX {
        true => ARGS_MAX - 1,
        false => args.len(),
    };
    let cut_arg = |arg: &&[u8]| match arg.split_at_checked(ARG_BYTES_MAX) {
        Some((head, rest)) if !rest.is_empty() => {
            [head, format!("... ({} more bytes)", rest.len()).as_bytes()].concat()
        }
        _ => arg.to_vec(),
    };
    let mut cut: Vec<Vec<u8>> = args.iter().take(kept).map(cut_arg).collect();
    if kept < args.len() {
        let left = args.len() - kept;
        cut.push(format!("... ({left} more arguments)").into_bytes());
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::{Slowlog, cut};

    /// Goal: entries are cut where Redis cuts them. Method: arguments at and past both bounds.
    #[test]
    fn long_commands_are_cut_as_redis_cuts_them() {
        let many = [b"a".as_slice(); 33];
        assert_eq!(cut(many.get(..32).expect("so many")).len(), 32);
        let cut_many = cut(&many);
        assert_eq!(cut_many.len(), 32);
        assert_eq!(cut_many.last().expect("one"), b"... (2 more arguments)");
        let long = [b'a'; 129];
        assert_eq!(cut(&[long.get(..128).expect("so many")])[0].len(), 128);
        assert!(cut(&[&long])[0].ends_with(b"a... (1 more bytes)"));
    }

    /// Goal: the log keeps the newest. Method: three entries into a log of two.
    #[test]
    fn the_newest_entries_are_kept() {
        let mut log = Slowlog::default();
        (0..3).for_each(|at| log.add(&[b"ping"], (at, at), ("", b""), 2));
        let ids: Vec<u64> = log.entries().map(|entry| entry.id).collect();
        assert_eq!(ids, [2, 1]);
        log.clear();
        log.add(&[b"ping"], (0, 0), ("", b""), 2);
        assert_eq!(log.entries().next().map(|entry| entry.id), Some(3));
    }
}
