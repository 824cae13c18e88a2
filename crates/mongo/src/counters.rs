//! What the server has done since it was started. Each counter only grows; any thread may add.

use std::time::Duration;

use drumlin_base::sync::atomic::{AtomicU64, Ordering};

/// Most commands that there are.
pub(crate) const COMMANDS_MAX: usize = 64;

/// A counter.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What `opLatencies` tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Read,
    Write,
    Command,
}

/// Commands, and how long they took together.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) commands: Count,
    pub(crate) micros: Count,
}

/// A command's runs, and those that ended with an error.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    pub(crate) total: Count,
    pub(crate) failed: Count,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Documents that were to be inserted, statements of updates and of deletes, and the commands that are none of these.
    pub(crate) inserts: Count,
    pub(crate) queries: Count,
    pub(crate) updates: Count,
    pub(crate) deletes: Count,
    pub(crate) get_mores: Count,
    pub(crate) commands: Count,
    /// Documents that were.
    pub(crate) inserted: Count,
    pub(crate) updated: Count,
    pub(crate) deleted: Count,
    pub(crate) returned: Count,
    pub(crate) connections: Count,
    pub(crate) requests: Count,
    pub(crate) bytes_in: Count,
    pub(crate) bytes_out: Count,
    /// Commands that were refused.
    pub(crate) refused: Count,
    reads: Taken,
    writes: Taken,
    others: Taken,
    /// By the place in the table of commands.
    pub(crate) by_command: Box<[Runs]>,
}

impl Counters {
    /// All at zero.
    pub(crate) fn new() -> Self {
        let runs = std::iter::repeat_with(Runs::default);
        Self {
            by_command: runs.take(COMMANDS_MAX).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn taken(&self, class: Class) -> &Taken {
        match class {
            Class::Read => &self.reads,
            Class::Write => &self.writes,
            Class::Command => &self.others,
        }
    }

    /// Notes a command that was run: its place in the table, where it has one.
    pub(crate) fn ran(
        &self,
        name: &str,
        place: Option<usize>,
        has_failed: bool,
        duration: Duration,
    ) {
        let class = match name {
            "aggregate" | "count" | "distinct" | "find" | "getMore" => Class::Read,
            _ if drumlin_base::bug!("mongo-writes-timed-as-commands") => Class::Command,
            "delete" | "findAndModify" | "findandmodify" | "insert" | "update" => Class::Write,
            _ => Class::Command,
        };
        let taken = self.taken(class);
        taken.commands.add(1);
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        taken.micros.add(micros);
        match name {
            // These count what is in them.
            "insert" | "update" | "delete" => {}
            "find" => self.queries.add(1),
            "getMore" => self.get_mores.add(1),
            _ => self.commands.add(1),
        }
        self.refused.add(u64::from(has_failed));
        if let Some(runs) = place.and_then(|place| self.by_command.get(place)) {
            runs.total.add(1);
            let is_told = !drumlin_base::bug!("mongo-failures-uncounted");
            runs.failed.add(u64::from(has_failed && is_told));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_counted_by_its_name_its_kind_and_its_end() {
        let counters = Counters::new();
        let time = Duration::from_micros(5);
        for (name, place, has_failed) in [
            ("find", Some(3), false),
            ("find", Some(3), true),
            ("insert", Some(4), false),
            ("getMore", Some(5), false),
            ("nonsense", None, true),
        ] {
            counters.ran(name, place, has_failed, time);
        }
        let runs = |place: usize| {
            let runs = &counters.by_command[place];
            (runs.total.get(), runs.failed.get())
        };
        assert_eq!(
            [runs(3), runs(4), runs(5), runs(0)],
            [(2, 1), (1, 0), (1, 0), (0, 0)]
        );
        let taken = [Class::Read, Class::Write, Class::Command].map(|class| {
            let taken = counters.taken(class);
            (taken.commands.get(), taken.micros.get())
        });
        assert_eq!(taken, [(3, 15), (1, 5), (1, 5)]);
        // What is in a write is counted by the write.
        let counts = [&counters.queries, &counters.get_mores, &counters.commands];
        assert_eq!(counts.map(Count::get), [2, 1, 1]);
        assert_eq!(counters.refused.get(), 2);
    }
}
