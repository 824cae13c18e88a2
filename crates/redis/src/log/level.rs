//! How important a line is.

/// See the module. The names are Redis's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Debug,
    Verbose,
    Notice,
    Warning,
    /// Of no line: nothing is logged.
    Nothing,
}

impl Level {
    const ALL: [(Self, &'static str, char); 5] = [
        (Self::Debug, "debug", '.'),
        (Self::Verbose, "verbose", '-'),
        (Self::Notice, "notice", '*'),
        (Self::Warning, "warning", '#'),
        (Self::Nothing, "nothing", ' '),
    ];

    /// The one called `name`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(_, known, _)| *known == name);
        found.map(|(level, ..)| level)
    }

    /// The one of a number, as scripts have them.
    pub(crate) fn numbered(number: usize) -> Option<Self> {
        Self::ALL.get(number).map(|(level, ..)| *level)
    }

    fn facts(self) -> (&'static str, char) {
        let found = Self::ALL.into_iter().find(|(level, ..)| *level == self);
        found.map_or(("nothing", ' '), |(_, name, mark)| (name, mark))
    }

    pub(super) fn name(self) -> &'static str {
        self.facts().0
    }

    /// The mark that Redis's lines have.
    pub(super) fn mark(self) -> char {
        self.facts().1
    }
}
