//! Counts and times of commands, and counts of errors.

use std::collections::BTreeMap;

use drumlin_resp::Args;
use hdrhistogram::Histogram;

use crate::catalog::{self, Entry};
use crate::facts::Facts;

/// Kinds of errors that are counted: programs may make up more of them than anybody wants to see.
const ERRORS_MAX: usize = 128;
/// Longest time that a histogram tells apart, in nanoseconds, and its digits; as in Redis.
const NANOS_MAX: u64 = 1_000_000_000;
const DIGITS: u8 = 2;

/// The calls of one command.
#[derive(Debug, Default)]
pub(crate) struct Stat {
    /// As clients write it, with `|` before a subcommand.
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) micros: u64,
    /// Refused before it ran, and failed while it ran.
    pub(crate) rejected: u64,
    pub(crate) failed: u64,
    /// Microseconds of those that `times` has.
    pub(crate) timed_micros: u64,
    /// Of nanoseconds; none while latencies are not tracked.
    pub(crate) times: Option<Box<Histogram<u64>>>,
}

impl Stat {
    /// Takes the time of `count` calls into the histogram.
    fn take_time(&mut self, micros: u64, count: u64) {
        let times = self.times.get_or_insert_with(|| {
            let times = Histogram::new_with_bounds(1, NANOS_MAX, DIGITS);
            Box::new(times.expect("the bounds are sound"))
        });
        times.saturating_record_n((micros * 1_000).max(1), count);
        self.timed_micros += micros * count;
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct CommandStats {
    /// By the places of the catalogue.
    stats: Vec<Stat>,
    errors: BTreeMap<String, u64>,
    pub(crate) tracks_times: bool,
}

impl CommandStats {
    /// Nothing is counted yet.
    pub(crate) fn new() -> Self {
        let stat = |entry: &Entry| Stat {
            name: entry.name.to_owned(),
            ..Stat::default()
        };
        Self {
            stats: catalog::all().iter().map(stat).collect(),
            errors: BTreeMap::new(),
            tracks_times: true,
        }
    }

    /// The entry of a command, or of its subcommand.
    fn of(&mut self, facts: &Facts, args: Args<'_>) -> Option<&mut Stat> {
        let mut entry = facts.entry();
        if entry.is_family() {
            let asked = args.get(1).unwrap_or_default();
            entry = catalog::child(entry, asked).unwrap_or(entry);
        }
        self.stats.get_mut(entry.index)
    }

    /// Counts a call.
    pub(crate) fn ran(&mut self, facts: &Facts, args: Args<'_>, micros: u64, failed: bool) {
        let tracks_times = self.tracks_times;
        let Some(stat) = self.of(facts, args) else {
            return;
        };
        stat.calls += 1;
        stat.micros += micros;
        stat.failed += u64::from(failed);
        if tracks_times {
            stat.take_time(micros, 1);
        }
    }

    /// Counts calls of the command at this place of the catalogue, none of which failed: how many took so many microseconds.
    pub(crate) fn ran_often(&mut self, index: usize, taken: &BTreeMap<u64, u64>) {
        let tracks_times = self.tracks_times;
        let Some(stat) = self.stats.get_mut(index) else {
            return;
        };
        for (micros, count) in taken {
            stat.calls += count;
            stat.micros += micros * count;
            if tracks_times {
                stat.take_time(*micros, *count);
            }
        }
    }

    /// Counts a call that was refused before it ran. A subcommand that is not known is nobody's.
    pub(crate) fn refused(&mut self, facts: &Facts, args: Args<'_>) {
        let Some(stat) = self.of(facts, args) else {
            return;
        };
        if stat.name.len() > facts.name.len() || !facts.entry().is_family() || args.len() == 1 {
            stat.rejected += 1;
        }
    }

    /// Counts a call that waited in vain, and whether that was told as an error.
    pub(crate) fn gave_up(&mut self, facts: &Facts, args: Args<'_>, failed: bool) {
        if let Some(stat) = self.of(facts, args) {
            stat.calls += 1;
            stat.failed += u64::from(failed);
        }
    }

    /// Counts an error by its first word.
    pub(crate) fn error(&mut self, text: &str) {
        let code = text.split(' ').next().unwrap_or_default();
        let is_full = self.errors.len() >= ERRORS_MAX;
        match self.errors.get_mut(code) {
            Some(count) => *count += 1,
            None if is_full => {}
            None => {
                self.errors.insert(code.to_owned(), 1);
            }
        }
    }

    /// Commands that were called or refused, by name.
    pub(crate) fn used(&self) -> impl Iterator<Item = &Stat> {
        let used = |stat: &&Stat| stat.calls + stat.rejected + stat.failed > 0;
        self.stats.iter().filter(used)
    }

    /// The entries called `name`: of a command, or of all its subcommands.
    pub(crate) fn named(&self, name: &[u8]) -> impl Iterator<Item = &Stat> {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let family = format!("{name}|");
        let wanted = move |stat: &&Stat| stat.name == name || stat.name.starts_with(&family);
        self.stats.iter().filter(wanted)
    }

    /// Errors by their first word.
    pub(crate) fn errors(&self) -> impl Iterator<Item = (&str, u64)> {
        self.errors
            .iter()
            .map(|(code, count)| (code.as_str(), *count))
    }

    /// Begins anew.
    pub(crate) fn clear(&mut self) {
        for stat in &mut self.stats {
            *stat = Stat {
                name: std::mem::take(&mut stat.name),
                ..Stat::default()
            };
        }
        self.errors.clear();
    }
}
