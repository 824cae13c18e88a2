//! ycsb: YCSB's workloads on Drumlin.

use std::sync::Arc;
use std::time::Duration;

use drumlin_bench::{DrumlinStore, Flags, Store};
use drumlin_fs::Env;
use drumlin_ycsb::{Phase, Properties, Run, Status, StoreBinding};

use crate::failure::{Failure, Outcome};
use crate::output::{Output, remark};

const USAGE: &str = "\
drumlin ycsb load|run --db DIR [-P FILE]... [-p NAME=VALUE]... [-threads N] [-target N] [-s]

Runs YCSB's core workload, or the file workload, on a Drumlin store and prints YCSB's report. `load` \
writes the records, `run` carries out the operations; both ask for the same properties.

  -P FILE        property file; workloada to workloadf are built in
  -p NAME=VALUE  one property; later ones hold
  -threads N     threadcount;  -target N  operations a second of all threads
  -s             tell on standard error how far it is, every status.interval seconds (10)

drumlin.flags=... gives the store flags of `drumlin bench`, with blanks between them: \
-p \"drumlin.flags=--memory_budget=500000000 --compression_type=zstd\".

A read that finds nothing, or not what was written, ends the command with exit code 3 after its report.";

/// The parsed words after `ycsb`.
#[derive(Debug)]
struct Wanted {
    phase: Phase,
    db: String,
    properties: Properties,
    tells: bool,
}

/// Runs the phases that `words` ask for.
pub(crate) fn ycsb(words: &[String], out: &mut Output) -> Outcome {
    if words
        .iter()
        .any(|word| matches!(word.as_str(), "--help" | "-h"))
    {
        return out.text(USAGE);
    }
    let env = Env::system();
    let wanted = parse(words, &env)?;
    let flags = store_flags(&wanted)?;
    let store = Arc::new(DrumlinStore::open(&flags, &env)?);
    let binding = StoreBinding::new(Arc::clone(&store), flags);
    let mut tell = |status: Status| {
        if wanted.tells {
            remark(status_line(status));
        }
    };
    let run = Run::carry_out(wanted.phase, &wanted.properties, &binding, &env, &mut tell)?;
    drop(binding);
    if let Some(store) = Arc::into_inner(store) {
        store.close()?;
    }
    let title = match wanted.phase {
        Phase::Load => "load",
        Phase::Run => "run",
    };
    let settings: Vec<String> = wanted
        .properties
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    out.text(format!("{title} {}", settings.join(" ")))?;
    out.text(run.report().trim_end())?;
    match run.measurements.failed() {
        0 => Ok(()),
        failed => Err(Failure::Check(format!(
            "{failed} operations did not find what was written"
        ))),
    }
}

fn parse(words: &[String], env: &Env) -> Outcome<Wanted> {
    let mut words = words.iter().map(String::as_str);
    let phase = match words.next() {
        Some("load") => Phase::Load,
        Some("run") => Phase::Run,
        _ => return Err(Failure::Usage(USAGE.to_owned())),
    };
    let mut wanted = Wanted {
        phase,
        db: String::new(),
        properties: Properties::default(),
        tells: false,
    };
    while let Some(word) = words.next() {
        if word == "-s" {
            wanted.tells = true;
            continue;
        }
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (word, None),
        };
        if !matches!(
            name,
            "--db" | "-P" | "-p" | "-threads" | "--threads" | "-target" | "--target"
        ) {
            return Err(Failure::Usage(format!(
                "'{word}' is not understood; `drumlin ycsb --help` tells"
            )));
        }
        let value = attached.or_else(|| words.next());
        let value = value.ok_or_else(|| Failure::Usage(format!("{name} needs a value")))?;
        match name {
            "--db" => value.clone_into(&mut wanted.db),
            "-P" => wanted.properties.add_file(value, env)?,
            "-p" => {
                let Some((name, value)) = value.split_once('=') else {
                    return Err(Failure::Usage(format!("-p {value}: NAME=VALUE is wanted")));
                };
                wanted.properties.set(name, value);
            }
            "-threads" | "--threads" => wanted.properties.set("threadcount", value),
            _ => wanted.properties.set("target", value),
        }
    }
    if wanted.db.is_empty() {
        return Err(Failure::Usage(
            "which directory? Name it with --db".to_owned(),
        ));
    }
    Ok(wanted)
}

/// The store's flags: those of the property, and LZ4, the engine's own default, if it names no
/// compression.
fn store_flags(wanted: &Wanted) -> Outcome<Flags> {
    let given = wanted.properties.text("drumlin.flags", "");
    let mut words = vec![
        format!("--db={}", wanted.db),
        "--compression_type=lz4".to_owned(),
    ];
    words.extend(given.split_whitespace().map(str::to_owned));
    Ok(Flags::parse(&words)?)
}

fn status_line(status: Status) -> String {
    let Status {
        elapsed,
        operations,
        rate,
    } = status;
    let seconds = Duration::from_secs(elapsed.as_secs()).as_secs();
    format!("{seconds} sec: {operations} operations; {rate:.1} current ops/sec")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Outcome<Wanted> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&words, &Env::system())
    }

    #[test]
    fn properties_come_from_files_and_words_in_order() {
        let wanted = parse_line(
            "run --db /x -P workloads/workloada -p recordcount=7 -threads 4 -target=9 -s",
        );
        assert!(matches!(wanted, Err(Failure::Usage(_))));
        let wanted = parse_line(
            "run --db /x -P workloads/workloada -p recordcount=7 -threads 4 --target=9 -s",
        );
        let wanted = wanted.expect("sound words");
        assert!(wanted.phase == Phase::Run && wanted.tells && wanted.db == "/x");
        let get = |name| wanted.properties.get(name);
        assert_eq!(
            (get("recordcount"), get("threadcount"), get("target")),
            (Some("7"), Some("4"), Some("9"))
        );
        assert_eq!(get("updateproportion"), Some("0.5"));
    }

    #[test]
    fn mistakes_are_usage() {
        for line in [
            "",
            "start --db x",
            "load",
            "load --db",
            "load --db x -p y",
            "load --db x more",
        ] {
            assert_eq!(parse_line(line).expect_err(line).exit_code(), 2, "{line}");
        }
    }
}
