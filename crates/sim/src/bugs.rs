//! Checks that the suite named in the catalogue detects each deliberate bug, and measures how soon.
//!
//! A suite is a range of simulation seeds, a range of small runs with imagined power cuts, or a
//! program with tests. A suite that aborts or does not end in its time has failed too: with no bug
//! each ends in a fraction of it. A suite that also fails without the bug has not detected it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use drumlin_fs::{Clock, SystemClock};
use drumlin_sim::seeded::{BUGS, Bug, CANARY};
use drumlin_sim::setup::Case;
use drumlin_sim::world::Report;

/// Real time in which the suite must detect its bug.
const SEEN_WITHIN: Duration = Duration::from_secs(60);
/// Real time after which a process is taken to hang.
const PATIENCE: Duration = Duration::from_secs(40);
/// The time between two looks at whether a process has ended.
const PAUSE: Duration = Duration::from_millis(2);

/// A program with tests, built with the bugs.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    name: String,
    path: PathBuf,
}

impl Program {
    /// The program that cargo says it has built in this line; `None` for its other lines.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        let (_, path) = line.trim().strip_prefix("Executable ")?.rsplit_once('(')?;
        let path = Path::new(path.strip_suffix(')')?);
        let (name, _) = path.file_name()?.to_str()?.rsplit_once('-')?;
        Some(Self {
            name: name.to_owned(),
            path: path.to_owned(),
        })
    }
}

/// The suite that runs against a bug; see the catalogue.
enum Suite<'a> {
    /// Seeds from one on, and the case of each.
    Seeds(u64, fn(u64) -> Case),
    /// Programs of one name, and the filter of their tests.
    Tests(Vec<&'a Program>, &'a str),
}

/// How a bug was seen.
struct Sighting {
    /// The seed or the test.
    place: String,
    why: String,
    took: Duration,
}

/// The small run of `seed` with imagined cuts.
fn with_cuts(seed: u64) -> Case {
    Case {
        rounds: 2,
        ops: 25,
        images: 1,
        ..Case::new(seed)
    }
}

impl<'a> Suite<'a> {
    /// The suite of this name; `None` when no such program was given.
    fn of(text: &'a str, programs: &'a [Program]) -> Option<Self> {
        let (name, filter) = text.split_once(':').unwrap_or((text, ""));
        let first = filter.parse().unwrap_or(0);
        match name {
            "sim" => return Some(Self::Seeds(first, Case::new)),
            "cuts" => return Some(Self::Seeds(first, with_cuts)),
            _ => {}
        }
        let named: Vec<_> = programs
            .iter()
            .filter(|program| program.name == name)
            .collect();
        (!named.is_empty()).then_some(Self::Tests(named, filter))
    }

    /// Asks for `bug`; `None` when it is not seen in time.
    fn see(&self, bug: &str) -> Option<Sighting> {
        let clock = SystemClock::new();
        let seen = |place, why| Sighting {
            place,
            why,
            took: clock.monotonic(),
        };
        match self {
            Self::Seeds(first, case) => (*first..)
                .take_while(|_| clock.monotonic() < SEEN_WITHIN)
                .find_map(|seed| {
                    let case = case(seed);
                    let why = apart(&case, Some(bug)).failure?;
                    let sighting = seen(format!("seed {seed}"), why);
                    sound(apart(&case, Some("")).failure, sighting)
                }),
            Self::Tests(programs, filter) => programs.iter().find_map(|program| {
                let place = program.failed_test(filter, bug)?;
                let sighting = seen(place, "a test failed".to_owned());
                sound(program.failed_test(filter, ""), sighting)
            }),
        }
    }
}

/// `sighting`, unless the same fails with no bug, too.
fn sound(without_bug: Option<String>, sighting: Sighting) -> Option<Sighting> {
    let Some(why) = without_bug else {
        return Some(sighting).filter(|seen| seen.took <= SEEN_WITHIN);
    };
    super::say(&format!("{}: fails without a bug: {why}", sighting.place));
    None
}

impl Program {
    /// The test that fails, if one of those that `filter` names does.
    fn failed_test(&self, filter: &str, bug: &str) -> Option<String> {
        let mut command = Command::new(&self.path);
        if !filter.is_empty() {
            command.arg(filter);
        }
        let outcome = command
            .env("DRUMLIN_BUG", bug)
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .and_then(wait);
        match outcome {
            Ok((true, _)) => None,
            Ok((false, said)) => {
                let failed = said.lines().find_map(|line| {
                    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
                    Some(
                        name.strip_suffix(" - should panic")
                            .unwrap_or(name)
                            .to_owned(),
                    )
                });
                Some(failed.unwrap_or_else(|| format!("{filter} does not end, or aborts")))
            }
            // A suite that cannot be run is no sighting.
            Err(error) => {
                let program = self.path.display();
                super::say(&format!("{program}: {error}"));
                None
            }
        }
    }
}

/// Waits for `child`, not for ever. Returns whether it succeeded, and its output.
fn wait(mut child: Child) -> std::io::Result<(bool, String)> {
    let mut out = child.stdout.take();
    let reader = std::thread::Builder::new().spawn(move || {
        let mut said = Vec::new();
        if let Some(out) = &mut out {
            // The output before the pipe broke is enough.
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

/// The bugs to hunt, and the suites to run.
#[derive(Debug)]
pub(crate) struct Hunt<'a> {
    /// The programs that may run beside the simulation.
    pub(crate) programs: &'a [Program],
    /// Only bugs with this in their name or module.
    pub(crate) only: &'a str,
    /// Whether every program runs against a bug that its own suite misses.
    pub(crate) ask_all: bool,
}

impl Hunt<'_> {
    /// Runs the suite of every bug, and returns whether all were detected. Prints a line of JSON for
    /// each, then the table.
    pub(crate) fn catch(&self) -> bool {
        if !cfg!(feature = "seeded-bugs") {
            super::say("this build has no bugs: build it with --features seeded-bugs");
            return false;
        }
        let mut table = String::from(
            "| bug | module | suite | seconds | seed or test |\n| --- | --- | --- | ---: | --- |\n",
        );
        let (mut missed, mut asked) = (0, 0);
        for bug in BUGS.iter().chain([&CANARY]) {
            if !bug.name.contains(self.only) && !bug.module.contains(self.only) {
                continue;
            }
            asked += 1;
            let (name, module) = (bug.name, bug.module);
            let asked_first = bug.suite.split(':').next().unwrap_or_default();
            let Some(seen) = self.first_sighting(bug) else {
                missed += 1;
                super::say(&format!("{name}: not seen by {}", bug.suite));
                let _ = writeln!(table, "| `{name}` | `{module}` | not seen | | |");
                continue;
            };
            let Sighting { place, why, took } = seen;
            let (why, took) = (why.replace(['"', '\\'], "'"), took.as_secs_f64());
            super::say(&format!(
                "{{\"campaign\":\"seeded-bugs\",\"bug\":\"{name}\",\"seconds\":{took:.1},\
                 \"by\":\"{asked_first}\",\"place\":\"{place}\",\"why\":\"{why}\"}}"
            ));
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "| `{name}` | `{module}` | `{asked_first}` | {took:.1} | {place} |"
            );
        }
        super::say(&table);
        super::say(&format!("{missed} missed of {asked}"));
        missed == 0
    }

    /// The detection of `bug` by its suite. If it misses, the others may be run to find one that
    /// detects it.
    fn first_sighting(&self, bug: &Bug) -> Option<Sighting> {
        let suite = Suite::of(bug.suite, self.programs);
        let seen = suite.and_then(|suite| suite.see(bug.name));
        if seen.is_some() || !self.ask_all {
            return seen;
        }
        let programs = self.programs.iter().map(|program| &*program.name);
        for name in programs.chain(["sim", "cuts"]) {
            let suite = Suite::of(name, self.programs);
            if let Some(seen) = suite.and_then(|suite| suite.see(bug.name)) {
                let took = seen.took.as_secs_f64();
                let place = seen.place;
                super::say(&format!(
                    "{}: {name} sees it, {took:.1} s: {place}",
                    bug.name
                ));
            }
        }
        None
    }
}
