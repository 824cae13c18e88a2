//! Counts and times of commands, and counts of errors.

use std::collections::BTreeMap;

use drumlin_resp::Args;
use hdrhistogram::Histogram;

use crate::catalog::{self, Entry};
use crate::facts::Facts;
use crate::observe::noted::Noted;

/// Kinds of errors that are counted: programs may make up more of them than anybody wants to see.
const ERRORS_MAX: usize = 128;
/// Longest time that a histogram tells apart, in nanoseconds, and its digits; as in Redis.
const NANOS_MAX: u64 = 1_000_000_000;
const DIGITS: u8 = 2;

fn new_times() -> Histogram<u64> {
    Histogram::new_with_bounds(1, NANOS_MAX, DIGITS).expect("the bounds are sound")
}

/// What a histogram is told of a call.
fn nanos(micros: u64) -> u64 {
    (micros * 1_000).max(1)
}

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
        let times = self.times.get_or_insert_with(|| Box::new(new_times()));
        times.saturating_record_n(nanos(micros), count);
        self.timed_micros += micros * count;
    }

    /// Takes calls back: the time of each and their number. Those that came while latencies were not tracked are in no histogram.
    fn take_back(&mut self, micros: u64, (calls, failed): (u64, u64)) {
        self.calls -= calls;
        self.micros -= micros * calls;
        self.failed -= failed;
        let mut taken = new_times();
        taken.saturating_record_n(nanos(micros), calls);
        if let Some(times) = &mut self.times
            && times.subtract(&taken).is_ok()
        {
            self.timed_micros -= micros * calls;
        }
        self.times.take_if(|times| times.is_empty());
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct CommandStats {
    /// By the places of the catalogue.
    stats: Vec<Stat>,
    errors: BTreeMap<String, u64>,
    pub(crate) tracks_times: bool,
    /// What may have to be taken back, while commands run that may be undone.
    pub(crate) noted: Option<Noted>,
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
            noted: None,
        }
    }

    /// What is counted from here on may be taken back.
    pub(crate) fn begin_to_note(&mut self) {
        self.noted = Some(Noted::default());
    }

    /// Ends that. If the commands were undone, takes back what they were counted as; how many errors that is.
    pub(crate) fn end_to_note(&mut self, is_undone: bool) -> u64 {
        let noted = self.noted.take().filter(|_| is_undone).unwrap_or_default();
        for ((index, micros), calls) in noted.calls {
            if let Some(stat) = self.stats.get_mut(index) {
                stat.take_back(micros, calls);
            }
        }
        for (index, count) in noted.refused {
            if let Some(stat) = self.stats.get_mut(index) {
                stat.rejected -= count;
            }
        }
        for (code, count) in noted.errors {
            if let Some(all) = self.errors.get_mut(&code) {
                *all -= count;
            }
        }
        self.errors.retain(|_, count| *count > 0);
        noted.error_count
    }

    /// Counts a call.
    pub(crate) fn ran(&mut self, facts: &Facts, args: Args<'_>, micros: u64, failed: bool) {
        let (tracks_times, index) = (self.tracks_times, index(facts, args));
        let Some(stat) = self.stats.get_mut(index) else {
            return;
        };
        stat.calls += 1;
        stat.micros += micros;
        stat.failed += u64::from(failed);
        if tracks_times {
            stat.take_time(micros, 1);
        }
        if let Some(noted) = &mut self.noted {
            noted.ran(index, micros, failed);
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
        let index = index(facts, args);
        let Some(stat) = self.stats.get_mut(index) else {
            return;
        };
        if stat.name.len() > facts.name.len() || !facts.entry().is_family() || args.len() == 1 {
            stat.rejected += 1;
            if let Some(noted) = &mut self.noted {
                noted.refused(index);
            }
        }
    }

    /// Counts a call that waited in vain, and whether that was told as an error.
    pub(crate) fn gave_up(&mut self, facts: &Facts, args: Args<'_>, failed: bool) {
        if let Some(stat) = self.stats.get_mut(index(facts, args)) {
            stat.calls += 1;
            stat.failed += u64::from(failed);
        }
    }

    /// Counts an error by its first word.
    pub(crate) fn error(&mut self, text: &str) {
        let code = text.split(' ').next().unwrap_or_default();
        let is_counted = self.errors.len() < ERRORS_MAX || self.errors.contains_key(code);
        if is_counted {
            match self.errors.get_mut(code) {
                Some(count) => *count += 1,
                None => drop(self.errors.insert(code.to_owned(), 1)),
            }
        }
        if let Some(noted) = &mut self.noted {
            noted.error(code, is_counted);
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
        if let Some(noted) = &mut self.noted {
            *noted = Noted::default();
        }
    }
}

/// The place of a command in the catalogue, or of its subcommand.
fn index(facts: &Facts, args: Args<'_>) -> usize {
    let mut entry = facts.entry();
    if entry.is_family() {
        let asked = args.get(1).unwrap_or_default();
        entry = catalog::child(entry, asked).unwrap_or(entry);
    }
    entry.index
}
