//! Which suite sees each deliberate bug, and how soon.
//!
//! The suites are asked in turn until one fails: seeds of the simulation, small runs with power cuts
//! imagined in them, then programs with tests. A suite that aborts or does not end in its time has failed too:
//! with no bug each ends in a fraction of it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use drumlin_fs::{Clock, SystemClock};
use drumlin_sim::seeded;
use drumlin_sim::setup::Case;
use drumlin_sim::world::Report;

/// Seeds of the simulation, and as many with cuts, after which the next suite is asked.
const SEEDS_MAX: u64 = 120;
/// Real time after which a process does not end by itself any more.
const PATIENCE: Duration = Duration::from_secs(400);
/// How often one looks whether a process has ended.
const PAUSE: Duration = Duration::from_millis(2);

/// A program with tests, built with the bugs.
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    name: String,
    program: PathBuf,
}

impl std::str::FromStr for Suite {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, program) = text.split_once('=').ok_or("not NAME=PROGRAM")?;
        Ok(Self {
            name: name.to_owned(),
            program: program.into(),
        })
    }
}

/// How a bug was seen.
struct Sighting {
    suite: String,
    /// The seed or the test.
    place: String,
    why: String,
}

/// The small run of `seed` in which cuts are imagined.
fn with_cuts(seed: u64) -> Case {
    Case {
        rounds: 2,
        ops: 25,
        images: 1,
        ..Case::new(seed)
    }
}

fn see(bug: &str, suites: &[Suite]) -> Option<Sighting> {
    for seed in 0..SEEDS_MAX {
        for (suite, case) in [("sim", Case::new(seed)), ("cuts", with_cuts(seed))] {
            if let Some(why) = apart(&case, Some(bug)).failure {
                return Some(Sighting {
                    suite: suite.to_owned(),
                    place: format!("seed {seed}"),
                    why,
                });
            }
        }
    }
    suites.iter().find_map(|suite| suite.see(bug))
}

impl Suite {
    fn see(&self, bug: &str) -> Option<Sighting> {
        let outcome = Command::new(&self.program)
            .env("DRUMLIN_BUG", bug)
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .and_then(wait);
        let place = match outcome {
            Ok((true, _)) => return None,
            Ok((false, said)) => {
                let failed = said.lines().find_map(|line| {
                    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
                    Some(name.to_owned())
                });
                failed.unwrap_or_else(|| "does not end, or aborts".to_owned())
            }
            // A suite that cannot be run is no sighting.
            Err(error) => {
                let program = self.program.display();
                super::say(&format!("{program}: {error}"));
                return None;
            }
        };
        Some(Sighting {
            suite: self.name.clone(),
            why: "a test failed".to_owned(),
            place,
        })
    }
}

/// Waits for `child`, not for ever; whether it went well, and what it said.
fn wait(mut child: Child) -> std::io::Result<(bool, String)> {
    let mut out = child.stdout.take();
    let reader = std::thread::Builder::new().spawn(move || {
        let mut said = Vec::new();
        if let Some(out) = &mut out {
            // What was said before the pipe broke is enough.
            let _ = std::io::Read::read_to_end(out, &mut said);
        }
        String::from_utf8_lossy(&said).into_owned()
    })?;
    let clock = SystemClock::new();
    let well = loop {
        if let Some(status) = child.try_wait()? {
            break status.success();
        }
        if clock.monotonic() > PATIENCE {
            child.kill()?;
            child.wait()?;
            break false;
        }
        clock.sleep(PAUSE);
    };
    Ok((well, reader.join().unwrap_or_default()))
}

/// Runs `case` in a process of its own, so that nothing it leaves behind changes the next. With `bug`,
/// where the build can make it, a process that does not end has failed; else it may take its time.
pub(crate) fn apart(case: &Case, bug: Option<&str>) -> Report {
    let run =
        || -> std::io::Result<Report> {
            let arguments = case.arguments();
            let mut command = Command::new(std::env::current_exe()?);
            command
                .args(arguments.split(' '))
                .arg("--line")
                .env("DRUMLIN_BUG", bug.unwrap_or_default());
            let (said, complaints) = match bug {
                None => {
                    let output = command.output()?;
                    let complaints = String::from_utf8_lossy(&output.stderr);
                    let complaints = format!("{}: {complaints}", output.status);
                    let said = String::from_utf8_lossy(&output.stdout).into_owned();
                    (said, complaints)
                }
                Some(_) => {
                    let child = command.stdout(Stdio::piped()).stderr(Stdio::null());
                    (wait(child.spawn()?)?.1, "no line".to_owned())
                }
            };
            let report = Report::of_line(&said);
            Ok(report
                .unwrap_or_else(|| Report::failed(format!("the process ended with {complaints}"))))
        };
    run().unwrap_or_else(|error| Report::failed(format!("no process: {error}")))
}

/// Has every bug looked for; whether all were seen. Prints a line of JSON for each, then the table.
pub(crate) fn catch(suites: &[Suite]) -> bool {
    if !cfg!(feature = "seeded-bugs") {
        super::say("this build has no bugs: build it with --features seeded-bugs");
        return false;
    }
    let clock = SystemClock::new();
    let mut table =
        String::from("| bug | suite | seconds | seed or test |\n| --- | --- | ---: | --- |\n");
    let mut missed = 0;
    for bug in seeded::BUGS.iter().chain([&seeded::CANARY]) {
        let begin = clock.monotonic();
        let seen = see(bug, suites);
        let took = (clock.monotonic() - begin).as_secs_f64();
        missed += u64::from(seen.is_none());
        let none = || Sighting {
            suite: "not seen".to_owned(),
            place: String::new(),
            why: String::new(),
        };
        let Sighting { suite, place, why } = seen.unwrap_or_else(none);
        let why = why.replace(['"', '\\'], "'");
        super::say(&format!(
            "{{\"campaign\":\"seeded-bugs\",\"bug\":\"{bug}\",\"seconds\":{took:.1},\
             \"by\":\"{suite}\",\"place\":\"{place}\",\"why\":\"{why}\"}}"
        ));
        // Writing to a string cannot fail.
        let _ = writeln!(table, "| `{bug}` | `{suite}` | {took:.1} | {place} |");
    }
    super::say(&table);
    super::say(&format!("{missed} missed of {}", seeded::BUGS.len() + 1));
    missed == 0
}
