//! A list under a set of options, judged line by line; a failing list is cut down.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::choice::Choice;
use crate::engine::World;
use crate::expected::{Trace, expect};
use crate::generate::{Profile, legalize};
use crate::op::Op;
use crate::progress::Progress;

/// The first difference between a history and the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The set of options.
    pub choice: String,
    /// The operation's index, and the operation; past the end for the closing check.
    pub index: usize,
    /// The operation as it stands in the list.
    pub op: String,
    /// The answer it must give.
    pub want: String,
    /// The answer it gave.
    pub said: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "under {} operation {}: {}",
            self.choice, self.index, self.op
        )?;
        writeln!(f, "must say: {}", self.want)?;
        write!(f, "but says: {}", self.said)
    }
}

/// Whether `choice` supports the operations in `ops`.
pub fn suits(choice: &Choice, ops: &[Op]) -> bool {
    !choice.is_plain() || Profile::of(ops) == Profile::Plain
}

/// Runs `ops` under those `choices` that suit, and returns the number of operations.
///
/// # Errors
/// The first difference.
pub fn run(ops: &[Op], choices: &[Choice]) -> Result<u64, Box<Mismatch>> {
    run_watched(ops, choices, &Progress::default())
}

/// As [`run`], with reports to `progress`.
///
/// # Errors
/// The first difference.
pub fn run_watched(
    ops: &[Op],
    choices: &[Choice],
    progress: &Progress,
) -> Result<u64, Box<Mismatch>> {
    let ops = legalize(ops);
    let trace = expect(&ops);
    let mut performed = 0;
    for choice in choices.iter().filter(|choice| suits(choice, &ops)) {
        progress.begin(&choice.name);
        run_one(&ops, &trace, choice, progress)?;
        performed += ops.len() as u64;
    }
    Ok(performed)
}

/// Runs legal `ops`, which lead to `trace`, under `choice`.
fn run_one(
    ops: &[Op],
    trace: &Trace,
    choice: &Choice,
    progress: &Progress,
) -> Result<(), Box<Mismatch>> {
    let mismatch = |index: usize, said: String| {
        Box::new(Mismatch {
            choice: choice.name.clone(),
            index,
            op: ops.get(index).map(Op::to_string).unwrap_or_default(),
            want: trace.lines.get(index).cloned().unwrap_or_default(),
            said,
        })
    };
    // Values that a panic leaves behind are dropped, unseen, before the next run.
    let mut at = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(choice, ops, trace)
            .map_err(|error| mismatch(ops.len(), format!("it does not open: {error:?}")))?;
        for (index, want) in trace.lines.iter().enumerate() {
            at = index;
            progress.step();
            let said = world.perform(index);
            if said != *want {
                return Err(mismatch(index, said));
            }
        }
        Ok(())
    }));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(mismatch(
            at,
            format!("a panic: {}", text.unwrap_or_default()),
        ))
    })
}

/// The shortest list found that still fails under `choice`, by leaving out ever smaller pieces; runs
/// it at most `runs_max` times, and reports each to `progress`. With threads a failure may not come
/// every time, so each try has three.
pub fn shrink(ops: &[Op], choice: &Choice, runs_max: usize, progress: &Progress) -> Vec<Op> {
    let tries = match choice.options.background_threads {
        Some(0) => 1,
        _ => 3,
    };
    let try_once = |ops: &[Op]| run_watched(ops, std::slice::from_ref(choice), progress);
    let mut runs = 0;
    let mut fails = |ops: &[Op]| {
        runs += 1;
        (runs <= runs_max).then(|| (0..tries).any(|_| try_once(ops).is_err()))
    };
    let mut left = ops.to_vec();
    if let Err(mismatch) = try_once(&left) {
        left.truncate(mismatch.index + 1);
    }
    let mut piece = left.len().div_ceil(2);
    while piece > 0 {
        let (mut start, before) = (0, left.len());
        while start < left.len() {
            let mut shorter = left.clone();
            shorter.drain(start..(start + piece).min(left.len()));
            match fails(&shorter) {
                None => return left,
                Some(true) => left = shorter,
                Some(false) => start += piece,
            }
        }
        if piece > 1 || left.len() == before {
            piece /= 2;
        }
    }
    shrink_edits(left, &mut fails)
}

/// Leaves out single edits of the remaining operations.
fn shrink_edits(mut left: Vec<Op>, fails: &mut impl FnMut(&[Op]) -> Option<bool>) -> Vec<Op> {
    for index in 0..left.len() {
        let mut edit = 0;
        while edit < left[index].edits.len() && left[index].edits.len() > 1 {
            let mut shorter = left.clone();
            shorter[index].edits.remove(edit);
            match fails(&shorter) {
                None => return left,
                Some(true) => left = shorter,
                Some(false) => edit += 1,
            }
        }
    }
    left
}
