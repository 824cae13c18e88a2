//! Where the keys of a command are among its arguments, and what it does to them.

/// What a command does to keys, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyFlags(u32);

impl KeyFlags {
    pub(crate) const RO: Self = Self(1);
    pub(crate) const RW: Self = Self(1 << 1);
    pub(crate) const OW: Self = Self(1 << 2);
    /// The value of the key is told, used or copied.
    pub(crate) const ACCESS: Self = Self(1 << 4);
    pub(crate) const UPDATE: Self = Self(1 << 5);
    pub(crate) const INSERT: Self = Self(1 << 6);
    pub(crate) const DELETE: Self = Self(1 << 7);
    /// It is no key, but has a slot as keys have.
    pub(crate) const NOT_KEY: Self = Self(1 << 8);
    /// There may be keys that the specification does not find.
    pub(crate) const INCOMPLETE: Self = Self(1 << 9);
    /// The other flags depend on the arguments.
    pub(crate) const VARIABLE: Self = Self(1 << 10);

    const NAMES: [&'static str; 11] = [
        "RO",
        "RW",
        "OW",
        "RM",
        "access",
        "update",
        "insert",
        "delete",
        "not_key",
        "incomplete",
        "variable_flags",
    ];

    /// Those whose names stand in `text` with commas between them; `None` if one is not known.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut found = Self::default();
        for name in text.split(',') {
            let bit = Self::NAMES.iter().position(|known| *known == name)?;
            found.0 |= 1 << bit;
        }
        Some(found)
    }

    /// These and those.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any of `other` is among these.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the user needs the right to read the key.
    pub(crate) const fn reads(self) -> bool {
        self.has(Self::ACCESS)
    }

    /// Whether the user needs the right to change the key.
    pub(crate) const fn writes(self) -> bool {
        self.has(Self::INSERT.and(Self::DELETE).and(Self::UPDATE))
    }

    /// Names, in the order in which Redis tells them.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        let all = Self::NAMES.into_iter().enumerate();
        all.filter(move |(bit, _)| self.has(Self(1 << bit)))
            .map(|(_, name)| name)
    }
}

/// Where the first key is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BeginSearch {
    /// At this argument.
    Index(i64),
    /// Behind this word, which is looked for from an argument on; from the end if that is negative.
    Keyword(&'static str, i64),
    Unknown,
}

/// Where the other keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindKeys {
    /// Up to `last` from the first on, or from the end if that is negative; of which a part if there is a limit.
    Range {
        last: i64,
        step: i64,
        limit: i64,
    },
    /// As many as an argument says.
    Counted {
        count: i64,
        first: i64,
        step: i64,
    },
    Unknown,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeySpec {
    pub(crate) flags: KeyFlags,
    pub(crate) begin: BeginSearch,
    pub(crate) keys: FindKeys,
    pub(crate) notes: Option<&'static str>,
}

impl KeySpec {
    /// From its text: flags, `index:…`, `range:…` and notes, with a blank between any two.
    pub(super) fn parse(text: &'static str) -> Option<Self> {
        let mut words = text.splitn(4, ' ');
        let flags = KeyFlags::parse(words.next()?)?;
        let begin: Vec<_> = words.next()?.split(':').collect();
        let keys: Vec<_> = words.next()?.split(':').collect();
        let number = |text: &str| text.parse::<i64>().ok();
        let begin = match begin.as_slice() {
            ["index", at] => BeginSearch::Index(number(at)?),
            ["keyword", word, from] => BeginSearch::Keyword(word, number(from)?),
            ["unknown"] => BeginSearch::Unknown,
            _ => return None,
        };
        let numbers: Option<Vec<i64>> = keys.iter().skip(1).map(|it| number(it)).collect();
        let keys = match (keys.first(), numbers?.as_slice()) {
            (Some(&"range"), &[last, step, limit]) => FindKeys::Range { last, step, limit },
            (Some(&"keynum"), &[count, first, step]) => FindKeys::Counted { count, first, step },
            (Some(&"unknown"), []) => FindKeys::Unknown,
            _ => return None,
        };
        let notes = words.next();
        Some(Self {
            flags,
            begin,
            keys,
            notes,
        })
    }
}
