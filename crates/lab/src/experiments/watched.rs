//! Writes that go on for minutes: does a store keep its pace?

use drumlin_base::{Error, Result};
use drumlin_bench::Flags;

use super::plan::{Opening, Plan, Stage, alone, stage, words};
use crate::protocol::{Act, Role, Step};

/// Bytes of a key.
const KEY_BYTES: u64 = 16;

/// A load of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Random writes into an empty store, and a manual compaction of everything in the middle.
    Stall,
    /// Overwrites of a store that holds every key.
    Sustain,
}

/// When a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// After so many seconds.
    Seconds(u64),
    /// After so many writes of all threads.
    Writes(u64),
}

/// A load, and the stores it goes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// The load.
    pub load: Load,
    /// Bytes of a value; each size is a store of its own.
    pub value_sizes: Vec<u64>,
    /// Bytes of keys and values in a store that holds every key.
    pub store_bytes: u64,
    /// Writing threads.
    pub threads: usize,
    /// When it ends.
    pub end: End,
    /// db_bench's flags beside the sizes, in words.
    pub flags: Vec<String>,
}

impl Watched {
    /// The plan.
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown flag, no size, no thread, no end, or a stall that ends by writes.
    pub fn plan(&self) -> Result<Plan> {
        Flags::parse(&self.flags)?;
        let is_endless = matches!(self.end, End::Seconds(0) | End::Writes(0));
        if self.value_sizes.is_empty() || self.threads == 0 || is_endless {
            let text = "at least one size of values, one thread, and a second or a write";
            return Err(Error::invalid_argument(text));
        }
        if self.load == Load::Stall && matches!(self.end, End::Writes(_)) {
            let text = "a stall ends after seconds: its compaction is in the middle of them";
            return Err(Error::invalid_argument(text));
        }
        let title = match self.load {
            Load::Stall => "Random writes, everything compacted by hand in the middle",
            Load::Sustain => "Overwrites of a filled store",
        };
        Ok(Plan {
            title: title.to_owned(),
            notes: vec![
                format!(
                    "{} writing threads, stores of {:.1} GB. Flags of all engines: {}.",
                    self.threads,
                    self.store_bytes as f64 / 1e9,
                    self.flags.join(" ")
                ),
                "The load is closed: writes that could not even begin in a slow second are missing from the percentiles, \
                 not from the seconds."
                    .to_owned(),
            ],
            data: None,
            in_memory: false,
            are_equals: false,
            stages: self.value_sizes.iter().flat_map(|bytes| self.stages(*bytes)).collect(),
        })
    }

    /// The stages with values of `value_bytes`.
    fn stages(&self, value_bytes: u64) -> Vec<Stage> {
        let keys = (self.store_bytes / (value_bytes + KEY_BYTES)).max(1);
        let mut flags = words(&format!("--num={keys} --value_size={value_bytes}"));
        flags.extend(self.flags.iter().cloned());
        let opening = Some(Opening {
            is_fresh: true,
            flags,
            memory_share: None,
            read_iops: None,
        });
        let written = Stage {
            label: format!("write, values of {value_bytes} bytes"),
            entries: None,
            opening: None,
            step: self.step(),
        };
        match self.load {
            Load::Stall => vec![Stage { opening, ..written }],
            Load::Sustain => {
                let fill = Role {
                    operations: keys,
                    ..Role::new(Act::PutUnique, 1)
                };
                let label = format!("fill, values of {value_bytes} bytes");
                vec![
                    Stage {
                        opening,
                        ..stage(&label, alone(fill))
                    },
                    written,
                ]
            }
        }
    }

    fn step(&self) -> Step {
        let writes = Role::new(Act::PutRandom, self.threads);
        let (operations, seconds) = match self.end {
            End::Seconds(seconds) => (0, Some(seconds)),
            End::Writes(all) => ((all / self.threads.max(1) as u64).max(1), None),
        };
        let compacts = self.load == Load::Stall;
        Step {
            roles: vec![Role {
                operations,
                ..writes
            }],
            seconds,
            compact_at: seconds.filter(|_| compacts).map(|seconds| seconds / 2),
            settles: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(load: Load, end: End) -> Watched {
        Watched {
            load,
            value_sizes: vec![984, 84],
            store_bytes: 1_000_000,
            threads: 2,
            end,
            flags: words("--seed=1"),
        }
    }

    #[test]
    fn a_stall_is_compacted_in_the_middle() {
        let plan = watched(Load::Stall, End::Seconds(9))
            .plan()
            .expect("a sound load");
        assert_eq!(plan.stages.len(), 2);
        let step = &plan.stages[0].step;
        assert_eq!(
            (step.seconds, step.compact_at, step.roles[0].threads),
            (Some(9), Some(4), 2)
        );
        let opening = plan.stages[1].opening.as_ref().expect("a store of its own");
        assert_eq!(
            opening.flags,
            ["--num=10000", "--value_size=84", "--seed=1"]
        );
    }

    #[test]
    fn a_sustained_load_goes_to_a_filled_store_and_ends_by_count() {
        let plan = watched(Load::Sustain, End::Writes(5000))
            .plan()
            .expect("a sound load");
        let [fill, writes, ..] = plan.stages.as_slice() else {
            panic!("two stages a size");
        };
        assert_eq!(fill.step.roles[0].operations, 1000);
        assert!(fill.opening.is_some() && writes.opening.is_none());
        let step = &writes.step;
        assert_eq!(
            (step.roles[0].operations, step.seconds, step.compact_at),
            (2500, None, None)
        );
    }

    #[test]
    fn a_load_without_an_end_is_refused() {
        assert!(watched(Load::Sustain, End::Writes(0)).plan().is_err());
        assert!(watched(Load::Stall, End::Writes(5)).plan().is_err());
        let empty = Watched {
            value_sizes: Vec::new(),
            ..watched(Load::Sustain, End::Seconds(1))
        };
        assert!(empty.plan().is_err());
    }
}
