//! The parts of a measurement.

use std::path::PathBuf;
use std::str::FromStr;

use drumlin_base::{Error, Result};
use drumlin_bench::datasets::Kind;

use super::{check, data, writes};
use crate::protocol::{Role, Step};

/// One of the published measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Lookups in memory beside a writer.
    R1,
    /// Reviews read under ever less memory.
    R2,
    /// The same through document servers.
    R2Servers,
    /// db_bench's lines, and their cost as the store grows.
    R3,
    /// Writes of large values while everything is compacted.
    R4,
    /// The same through the Redis server, beside the engine alone.
    R4Server,
    /// TPC-H lineitem, read while it is loaded and when it does not fit in memory.
    R5,
    /// The harness itself.
    Check,
}

impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "r1" => Self::R1,
            "r2" => Self::R2,
            "r2-servers" => Self::R2Servers,
            "r3" => Self::R3,
            "r4" => Self::R4,
            "r4-server" => Self::R4Server,
            "r5" => Self::R5,
            "check" => Self::Check,
            _ => {
                return Err(Error::invalid_argument(format!(
                    "'{text}': there is r1, r2, r2-servers, r3, r4, r4-server, r5 and check"
                )));
            }
        })
    }
}

impl Reference {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::R1 => "r1",
            Self::R2 => "r2",
            Self::R2Servers => "r2-servers",
            Self::R3 => "r3",
            Self::R4 => "r4",
            Self::R4Server => "r4-server",
            Self::R5 => "r5",
            Self::Check => "check",
        }
    }
}

impl Reference {
    /// How often it is repeated, unless told otherwise: as often as ten minutes allow.
    pub fn rounds(self) -> usize {
        match self {
            Self::R1 | Self::R2 | Self::R2Servers | Self::R3 | Self::R5 => 3,
            Self::R4 | Self::R4Server => 2,
            // Two equal engines are on one side of 1 in all seven by chance once in 64 lines.
            Self::Check => 7,
        }
    }
}

/// How a stage opens the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Opening {
    /// Whether it starts empty.
    pub is_fresh: bool,
    /// db_bench's flags beside the directory.
    pub flags: Vec<String>,
    /// Memory of the process, as a share of the data's bytes.
    pub memory_share: Option<f64>,
    /// Reads a second from the disk.
    pub read_iops: Option<u64>,
}

/// Something every engine does, measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its name in the report.
    pub label: String,
    /// Entries in the store, where cost is shown against size.
    pub entries: Option<u64>,
    /// Opens the store anew, in a process of its own, before the step.
    pub opening: Option<Opening>,
    /// The step.
    pub step: Step,
}

/// Records to measure with.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// About so many bytes of a data set that is made.
    Made(Kind, u64),
    /// Lines of a key, a TAB and a value, as `drumlin gen` writes them.
    File(PathBuf),
}

/// A measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its title.
    pub title: String,
    /// Differences from the published one, and notes for its reader.
    pub notes: Vec<String>,
    /// The records, where it has any.
    pub data: Option<Data>,
    /// Whether the stores are in memory.
    pub in_memory: bool,
    /// Whether the first two engines should come to the same.
    pub are_equals: bool,
    /// The stages, in order.
    pub stages: Vec<Stage>,
}

/// `reference` at `scale` (1: as it fits two cores and ten minutes), its timed stages of `seconds`.
pub fn plan(reference: Reference, scale: f64, seconds: u64) -> Plan {
    let scaled = |number: u64| ((number as f64 * scale) as u64).max(1);
    match reference {
        Reference::R1 => writes::in_memory(scaled(2_000_000), seconds),
        Reference::R2 => data::reviews(scaled(300_000_000), seconds),
        Reference::R2Servers => data::served_reviews(scaled(300_000_000), seconds),
        Reference::R3 => writes::lines([200_000, 700_000, 2_000_000].map(scaled)),
        Reference::R4 => writes::stalls(scaled(2_000_000_000), seconds * 5),
        Reference::R4Server => writes::served_stalls(scaled(2_000_000_000), seconds * 5),
        Reference::R5 => data::lineitem(scaled(1_200_000_000), seconds),
        Reference::Check => check::harness(scaled(1_000_000)),
    }
}

/// R2 with the records of the file at `path`, about `bytes` of them.
pub fn plan_of_records(path: PathBuf, bytes: u64, seconds: u64) -> Plan {
    data::given_records(path, bytes, seconds)
}

/// A stage that goes on in the open store.
pub(super) fn stage(label: &str, step: Step) -> Stage {
    Stage {
        label: label.to_owned(),
        entries: None,
        opening: None,
        step,
    }
}

/// One role until it is done, and then a wait for its background work.
pub(super) fn alone(role: Role) -> Step {
    let settles = role.act.is_write();
    Step {
        roles: vec![role],
        settles,
        ..Step::default()
    }
}

pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use drumlin_bench::Flags;

    use super::*;
    use crate::protocol::Act;

    #[test]
    fn every_measurement_starts_empty_and_has_sound_flags() {
        for name in [
            "r1",
            "r2",
            "r2-servers",
            "r3",
            "r4",
            "r4-server",
            "r5",
            "check",
        ] {
            let reference: Reference = name.parse().expect(name);
            assert_eq!(reference.name(), name);
            let plan = plan(reference, 0.01, 3);
            let first = plan.stages.first().and_then(|stage| stage.opening.as_ref());
            assert!(first.is_some_and(|opening| opening.is_fresh), "{name}");
            for stage in &plan.stages {
                if let Some(opening) = &stage.opening {
                    Flags::parse(&opening.flags).expect(name);
                }
                assert!(
                    !stage.step.roles.is_empty() && !stage.label.is_empty(),
                    "{name}"
                );
                // A step ends by its time or by its operations.
                let ends = |role: &Role| {
                    role.operations > 0
                        || matches!(
                            role.act,
                            Act::LoadRecords | Act::Forward | Act::Backward | Act::Compact
                        )
                };
                assert!(
                    stage.step.seconds.is_some() || stage.step.roles.iter().any(ends),
                    "{name} {}",
                    stage.label
                );
            }
        }
        assert!("r6".parse::<Reference>().is_err());
    }

    #[test]
    fn given_records_go_the_way_of_reviews() {
        let reviews = plan(Reference::R2, 1.0, 3);
        let given = plan_of_records(PathBuf::from("records"), 300_000_000, 3);
        assert_eq!(given.stages, reviews.stages);
        assert_eq!(given.data, Some(Data::File(PathBuf::from("records"))));
    }
}
