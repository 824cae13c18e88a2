//! lab: measurements under limits.

use std::path::PathBuf;

use drumlin_lab::group::{ControlGroup, Limits};

use crate::args::{Lab, Limited, Place};
use crate::failure::{Failure, Outcome};
use crate::output::remark;
use crate::units;

/// Carries `task` out.
pub(crate) fn lab(place: &Place, task: &Lab) -> Outcome {
    match task {
        Lab::Limited(wanted) => limited(place, wanted),
    }
}

/// Runs a program in a control group and ends as it did.
fn limited(place: &Place, wanted: &Limited) -> Outcome {
    let dir = place.db.clone().unwrap_or_else(|| PathBuf::from("."));
    let limits = Limits {
        memory_bytes: wanted.memory,
        disk_reads: wanted.read_iops.map(|reads| (reads, dir)),
    };
    let Some((program, arguments)) = wanted.command.split_first() else {
        return Err(Failure::Usage("which program? It follows --".to_owned()));
    };
    if !limits.is_any() {
        let text = "which limit? --memory, --read-iops or both";
        return Err(Failure::Usage(text.to_owned()));
    }
    let name = format!("drumlin-{}", std::process::id());
    let group = ControlGroup::new(&name, &limits).map_err(|error| {
        Failure::Engine(error.context(
            "without a limit from the system, bound what the store keeps itself: --memory_budget and \
             --use_direct_io_for_flush_and_compaction of `drumlin bench`",
        ))
    })?;
    let ended = group.command(program).args(arguments).status()?;
    if let Some(times) = group.times_full() {
        remark(format!(
            "the limit of memory was met {} times",
            units::count(times)
        ));
    }
    if ended.success() {
        return Ok(());
    }
    Err(Failure::Check(format!("{program} ended with {ended}")))
}
