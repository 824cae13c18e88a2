//! Categories of commands, by which users are allowed commands.

/// Their names, in the order in which Redis tells them.
pub(crate) const NAMES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// Some of the categories, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Categories(u32);

impl Categories {
    /// The one at `index` of [`NAMES`].
    pub(crate) fn one(index: usize) -> Self {
        Self(1 << index)
    }

    /// Those whose names stand in `text` with commas between them; `None` if one is not known.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut found = Self::default();
        for name in text.split(',') {
            found.0 |= category(name.as_bytes())?.0;
        }
        Some(found)
    }

    /// These and those.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any of `other` is among these.
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The names.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        let all = NAMES.into_iter().enumerate();
        all.filter(move |(index, _)| self.has(Self::one(*index)))
            .map(|(_, name)| name)
    }
}

/// The category called `name`, in any case.
pub(crate) fn category(name: &[u8]) -> Option<Categories> {
    let index = NAMES
        .iter()
        .position(|known| known.as_bytes().eq_ignore_ascii_case(name))?;
    Some(Categories::one(index))
}
