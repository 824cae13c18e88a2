//! A db_bench process under the same flags, and its lines.

use std::path::Path;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::Env;

use super::contest::Contest;
use super::line::Line;
use super::result::Outcome;

/// Runs the lines of `contest` by `program`, one process for each stretch of lines with the same
/// settings, and returns what it printed; `None` for a line it cannot be asked for.
///
/// multireadrandom is left out: db_bench has one flag for the size of its batches, which would
/// change the fills as well.
pub(super) fn run(
    program: &str,
    contest: &Contest,
    round: usize,
    env: &Env,
) -> Result<Vec<Option<Outcome>>> {
    let dir = contest.dir.join("db_bench");
    let mut outcomes = Vec::with_capacity(contest.lines.len());
    let settings = |line: &Line| (line.threads, line.no_wal, line.name == "fillsync");
    let same = |a: &Line, b: &Line| settings(a) == settings(b);
    for stretch in contest.lines.chunk_by(same) {
        let asked: Vec<&Line> = stretch.iter().filter(|line| can_ask(line)).collect();
        let Some(first) = asked.first() else {
            outcomes.extend(stretch.iter().map(|_| None));
            continue;
        };
        let arguments = arguments(contest, &dir, &asked, first, round);
        let text =
            drumlin_lab::db_bench::run_within(Path::new(program), &arguments, contest.limit, env)?;
        let mut printed = text.lines().filter_map(parse);
        for line in stretch {
            if !can_ask(line) {
                outcomes.push(None);
                continue;
            }
            match printed.next() {
                Some((name, outcome)) if name == line.name => outcomes.push(Some(outcome)),
                _ => {
                    let message = format!("{program} printed no line for {}", line.name);
                    return Err(Error::new(ErrorKind::Aborted, message));
                }
            }
        }
    }
    match std::fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove directory", &dir, error))
        }
        _ => Ok(outcomes),
    }
}

fn can_ask(line: &Line) -> bool {
    line.name != "multireadrandom"
}

fn arguments(
    contest: &Contest,
    dir: &Path,
    asked: &[&Line],
    first: &Line,
    round: usize,
) -> Vec<String> {
    let flags = &contest.flags;
    let names: Vec<String> = asked
        .iter()
        .map(|line| match line.is_write {
            true => format!("{},waitforcompaction", line.name),
            false => line.name.clone(),
        })
        .collect();
    let mut arguments = vec![
        format!("--benchmarks={}", names.join(",")),
        format!("--db={}", dir.display()),
        format!("--use_existing_db={}", !first.is_fresh),
        format!("--num={}", flags.num),
        format!("--threads={}", first.threads),
        format!("--disable_wal={}", flags.disable_wal || first.no_wal),
        format!("--key_size={}", flags.key_size),
        format!("--value_size={}", flags.value_size),
        format!("--compression_type={}", flags.compression_type),
        format!("--cache_size={}", flags.cache_size),
        format!("--bloom_bits={}", flags.bloom_bits),
        format!("--seek_nexts={}", flags.seek_nexts),
        format!("--seed={}", flags.seed + round as u64 * 1000),
    ];
    let counts = [
        ("write_buffer_size", flags.write_buffer_size),
        ("max_background_jobs", flags.max_background_jobs as u64),
        ("reads", u64::try_from(flags.reads).unwrap_or_default()),
        ("duration", flags.duration),
    ];
    if first.name == "fillsync" {
        // Its own division by 1000 makes fewer keys and not fewer writes.
        arguments.push(format!("--writes={}", (flags.num / 1000).max(1)));
    }
    let given = counts.iter().filter(|(_, count)| *count > 0);
    arguments.extend(given.map(|(name, count)| format!("--{name}={count}")));
    arguments
}

/// What a line says, by name; `None` if it is no line of figures.
fn parse(line: &str) -> Option<(&str, Outcome)> {
    let line = drumlin_lab::db_bench::parse(line)?;
    let outcome = Outcome {
        micros: line.micros,
        operations: line.operations,
        found: line.found.map(|(found, _)| found),
        settle_seconds: None,
    };
    Some((line.name, outcome))
}
