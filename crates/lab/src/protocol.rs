//! The messages between the laboratory and the process with an engine in it: a line of JSON each.
//!
//! The laboratory asks, the engine answers: `Second`s while it works, then one `Done` or `Failed`. A
//! line that is no message is skipped, so that the output of a library does no harm.

use serde::{Deserialize, Serialize};

/// A request to the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Open a store under db_bench's flags; an empty one where `is_fresh`.
    Open {
        /// The flags; `--db` names the directory.
        flags: Vec<String>,
        /// Whether an existing store is removed first.
        is_fresh: bool,
    },
    /// Records come from this file from now on. If `is_loaded`, all of them are in the store.
    Records {
        /// The file of records.
        path: String,
        /// How many there are.
        count: u64,
        /// Whether they were written before.
        is_loaded: bool,
    },
    /// Work.
    Step(Step),
    /// Close the store and end.
    Close,
}

/// Threads that work side by side, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The threads.
    pub roles: Vec<Role>,
    /// Seconds after which all stop; without it, when all have done their operations.
    pub seconds: Option<u64>,
    /// Second at which everything is compacted by hand.
    pub compact_at: Option<u64>,
    /// Whether background work shall have ended before the answer.
    pub settles: bool,
}

/// Threads that do the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Role {
    /// Their work.
    pub act: Act,
    /// How many they are.
    pub threads: usize,
    /// Operations of each; as many as there are, when 0.
    pub operations: u64,
    /// Operations a second of all together; as many as they can, when 0.
    pub rate: f64,
    /// Every how many operations one is timed; 1 for all.
    pub time_every: u32,
    /// Whether a key that is not there is an error.
    pub must_find: bool,
    /// Whether the step ends only when these have; others stop then.
    pub leads: bool,
}

impl Role {
    /// `threads` threads that do `act` as fast as they can until there is nothing left or they are stopped;
    /// each operation is timed, and every key must be there.
    pub fn new(act: Act, threads: usize) -> Self {
        Self {
            act,
            threads,
            operations: 0,
            rate: 0.0,
            time_every: 1,
            must_find: true,
            leads: false,
        }
    }
}

/// The work of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Writes keys in order.
    PutAscending,
    /// Writes keys that are drawn, with repetitions.
    PutRandom,
    /// Writes every key once in random order.
    PutUnique,
    /// Writes the records of the file in order.
    LoadRecords,
    /// Looks up keys, each as often.
    GetUniform,
    /// Looks up keys, some far more often.
    GetZipfian,
    /// Looks up so many keys at once.
    MultiGet(usize),
    /// Seeks a key and reads so many entries.
    Seek(usize),
    /// Reads all entries in order.
    Forward,
    /// Reads all entries backward.
    Backward,
    /// Compacts everything.
    Compact,
}

impl Act {
    /// Whether it writes a user's entries.
    pub fn is_put(self) -> bool {
        matches!(
            self,
            Self::PutAscending | Self::PutRandom | Self::PutUnique | Self::LoadRecords
        )
    }

    /// Whether it changes files.
    pub fn is_write(self) -> bool {
        self.is_put() || self == Self::Compact
    }

    /// A word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::PutAscending | Self::PutRandom | Self::PutUnique | Self::LoadRecords => "writes",
            Self::GetUniform | Self::GetZipfian | Self::MultiGet(_) => "reads",
            Self::Seek(_) => "seeks",
            Self::Forward | Self::Backward => "entries",
            Self::Compact => "compactions",
        }
    }
}

/// An answer of the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The store is open.
    Ready {
        /// Name and version.
        version: String,
    },
    /// A second of a step is over.
    Second(Second),
    /// The request is done.
    Done(Done),
    /// It failed; the process ends.
    Failed {
        /// Why.
        message: String,
    },
}

/// Times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The longest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
}

/// A role's operations in a second, and their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleSecond {
    /// Operations.
    pub operations: u64,
    /// Of those that were timed and returned in it.
    pub times: Times,
}

/// A store's account of itself. Empty or `None` where it gives none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoreState {
    /// Tables by level.
    pub files_by_level: Vec<u64>,
    /// Bytes that compactions still have to rewrite.
    pub debt_bytes: Option<u64>,
    /// Bytes written to log and tables since it was opened.
    pub written_bytes: Option<u64>,
    /// Bytes of its files, logs left out.
    pub disk_bytes: u64,
}

/// One second of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// When it ended, from the start of the step.
    pub end: f64,
    /// How long it was.
    pub length: f64,
    /// By role.
    pub roles: Vec<RoleSecond>,
    /// Whether the manual compaction ran in it.
    pub is_compacting: bool,
    /// The store at its end.
    pub store: StoreState,
}

/// A role's whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleDone {
    /// Operations of all threads.
    pub operations: u64,
    /// Seconds the threads worked, summed.
    pub thread_seconds: f64,
    /// Times of those that were timed.
    pub times: Times,
    /// Keys looked up that were there.
    pub found: u64,
    /// Keys looked up that were not.
    pub missing: u64,
    /// Bytes of keys and values written.
    pub written_bytes: u64,
}

/// The result of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// By role.
    pub roles: Vec<RoleDone>,
    /// Seconds from the start to the last thread's end.
    pub seconds: f64,
    /// Seconds the manual compaction took.
    pub compaction_seconds: Option<f64>,
    /// Seconds until background work had ended afterwards.
    pub settle_seconds: f64,
    /// The store then.
    pub store: StoreState,
    /// Memory that the harness itself holds for keys and fingerprints.
    pub harness_bytes: u64,
}

/// `message` as one line.
pub fn encode<T: Serialize>(message: &T) -> String {
    let mut line = serde_json::to_string(message).expect("messages are plain data with text keys");
    line.push('\n');
    line
}

/// The message on `line`; `None` when there is none.
pub fn decode<'l, T: Deserialize<'l>>(line: &'l str) -> Option<T> {
    serde_json::from_str(line.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_lines_and_come_back() {
        let step = Request::Step(Step {
            roles: vec![Role {
                rate: 80_000.0,
                time_every: 16,
                ..Role::new(Act::MultiGet(32), 2)
            }],
            seconds: Some(5),
            ..Step::default()
        });
        let line = encode(&step);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(decode::<Request>(&line), Some(step));
        assert_eq!(decode::<Answer>("LevelDB says hello"), None);
        let failed = Answer::Failed {
            message: "two\nlines".to_owned(),
        };
        assert_eq!(decode::<Answer>(&encode(&failed)), Some(failed));
    }
}
