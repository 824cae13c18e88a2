//! A command or a subcommand, and all that `COMMAND INFO` tells of it.

use std::ops::Range;

use super::categories::Categories;
use super::key_spec::KeySpec;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// In lower case, with `|` before a subcommand.
    pub(crate) name: &'static str,
    /// Its place among all.
    pub(crate) index: usize,
    /// The number of arguments with the names; at least so many if negative.
    pub(crate) arity: i32,
    /// As clients are told them.
    pub(crate) flags: Vec<&'static str>,
    /// The first key, the last one and the distance from one to the next.
    pub(crate) positions: [i64; 3],
    pub(crate) categories: Categories,
    pub(crate) tips: Vec<&'static str>,
    pub(crate) specs: Vec<KeySpec>,
    /// Redis 7.0.15 does not have it.
    pub(crate) is_ours: bool,
    /// The places of its subcommands.
    pub(super) children: Range<usize>,
}

impl Entry {
    /// From a line; `None` if it is none.
    pub(super) fn parse(line: &'static str) -> Option<Self> {
        let mut columns = line.split('\t');
        let mut column = || columns.next();
        let name = column()?;
        let arity = column()?.parse().ok()?;
        let flags = words(column()?, ",");
        let positions: Vec<i64> = column()?
            .split(' ')
            .map(|it| it.parse().ok())
            .collect::<Option<_>>()?;
        let categories = Categories::parse(column()?)?;
        let tips = words(column()?, "; ");
        Some(Self {
            name,
            index: 0,
            arity,
            flags,
            positions: positions.try_into().ok()?,
            categories,
            tips,
            specs: columns.map(KeySpec::parse).collect::<Option<_>>()?,
            is_ours: false,
            children: 0..0,
        })
    }

    /// The command that it belongs to, and its own name within that if it is a subcommand.
    pub(crate) fn parts(&self) -> (&'static str, Option<&'static str>) {
        match self.name.split_once('|') {
            Some((family, own)) => (family, Some(own)),
            None => (self.name, None),
        }
    }

    /// Whether it can have so many arguments, the names counted.
    pub(crate) fn takes(&self, args: usize) -> bool {
        let args = i32::try_from(args).unwrap_or(i32::MAX);
        args == self.arity || self.arity < 0 && args >= -self.arity
    }

    /// Whether it has the flag of this name.
    pub(crate) fn is(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether it is a family of subcommands.
    pub(crate) fn is_family(&self) -> bool {
        !self.children.is_empty()
    }
}

/// What stands in `text` between `marks`; a minus stands for nothing.
fn words(text: &'static str, mark: &str) -> Vec<&'static str> {
    match text {
        "-" => Vec::new(),
        text => text.split(mark).collect(),
    }
}
