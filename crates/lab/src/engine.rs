//! A process with an engine in it, from the laboratory's side.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{Clock, Env};

use crate::group::{ControlGroup, GroupMemory, Limits};
use crate::process::{ProcessUse, page_cache_bytes};
use crate::protocol::{Answer, Done, Request, Second, decode, encode};
use crate::time_limit::TimeLimit;

/// A process that uses less of a processor than this is idle.
const IDLE_SHARE: f64 = 0.03;
/// How long it must be idle to count as at rest, and how long that is waited for.
const IDLE_FOR: Duration = Duration::from_millis(500);
const IDLE_MAX: Duration = Duration::from_secs(60);
/// How long an engine may be silent before it is taken to hang. It reports each second of a step; it is
/// silent while it opens a store or reads a file of records.
const SILENCE_MAX: Duration = Duration::from_secs(2 * 3600);
/// Time between two polls of a process that is ending.
const NAP: Duration = Duration::from_millis(5);

/// How an engine is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Starter {
    /// A program that carries out requests from standard input ([`crate::agent`]).
    Agent {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// RocksDB's db_bench ([`crate::db_bench`]).
    DbBench {
        /// The program.
        program: PathBuf,
    },
}

/// One second of a step with the process's use.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The engine's own figures.
    pub second: Second,
    /// Resources used since the process started.
    pub used: ProcessUse,
    /// Files in the page cache: of the group where there is one, else of the machine.
    pub page_cache_bytes: u64,
}

/// A running engine. Killed when dropped before it was closed.
#[derive(Debug)]
pub struct EngineProcess {
    name: String,
    id: u32,
    /// Locked for moments only, so that one that hangs can be killed by another thread.
    child: Arc<Mutex<Child>>,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    group: Option<ControlGroup>,
    version: String,
    has_ended: bool,
    silence_max: Duration,
    env: Env,
}

impl EngineProcess {
    /// Starts `program` as `name`, in a control group if there are limits.
    ///
    /// # Errors
    /// `NotSupported` without the right to limit; `Io` when the program cannot be started.
    pub fn start(
        name: &str,
        program: &Path,
        arguments: &[String],
        limits: &Limits,
        env: &Env,
    ) -> Result<Self> {
        let group = match limits.is_any() {
            true => {
                let group_name = format!("drumlin-lab-{}-{name}", std::process::id());
                Some(ControlGroup::new(&group_name, limits, env)?)
            }
            false => None,
        };
        let mut command = match &group {
            Some(group) => group.command(program),
            None => Command::new(program),
        };
        let child = command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| {
            let program = program.display();
            Error::new(ErrorKind::Io, format!("cannot start {program}: {error}"))
        })?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.expect("both were asked for above");
        Ok(Self {
            name: name.to_owned(),
            id: child.id(),
            child: Arc::new(Mutex::new(child)),
            input,
            output: BufReader::new(output),
            group,
            version: String::new(),
            has_ended: false,
            silence_max: SILENCE_MAX,
            env: env.clone(),
        })
    }

    /// The engine's name and version, once its store was opened.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Sends the request, shows each second to `on_moment`, and returns the result.
    ///
    /// # Errors
    /// The engine's error; `Aborted` when the process ended, or hung and was killed.
    pub fn ask(&mut self, request: &Request, on_moment: &mut dyn FnMut(Moment)) -> Result<Done> {
        let gone = |error: std::io::Error| {
            Error::new(ErrorKind::Aborted, format!("the process is gone: {error}"))
        };
        let (limit, is_late) = self.limit()?;
        self.input
            .write_all(encode(request).as_bytes())
            .and_then(|()| self.input.flush())
            .map_err(gone)?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).map_err(gone)? == 0 {
                let status = self.wait().map_err(gone)?;
                self.has_ended = true;
                let (name, silence) = (&self.name, self.silence_max);
                // Acquire: pairs with the release in `limit`.
                let message = match is_late.load(Ordering::Acquire) {
                    true => format!("{name} said nothing for {silence:?} and was killed"),
                    false => format!("{name} ended before its answer, with {status}"),
                };
                return Err(Error::new(ErrorKind::Aborted, message));
            }
            limit.goes_on();
            match decode::<Answer>(&line) {
                None => {}
                Some(Answer::Ready { version }) => {
                    self.version = version;
                    return Ok(Done::default());
                }
                Some(Answer::Second(second)) => on_moment(Moment {
                    second,
                    used: self.used(),
                    page_cache_bytes: self.page_cache_bytes(),
                }),
                Some(Answer::Done(done)) => return Ok(done),
                Some(Answer::Failed { message }) => {
                    let message = format!("{}: {message}", self.name);
                    return Err(Error::new(ErrorKind::Aborted, message));
                }
            }
        }
    }

    /// Starts a limit that kills the process when it is silent for too long; the flag is set when
    /// it did.
    fn limit(&self) -> Result<(TimeLimit, Arc<AtomicBool>)> {
        let (child, is_late) = (Arc::clone(&self.child), Arc::new(AtomicBool::new(false)));
        let tell = Arc::clone(&is_late);
        let limit = TimeLimit::start(self.silence_max, &self.env, move || {
            tell.store(true, Ordering::Release);
            kill(&child);
        })?;
        Ok((limit, is_late))
    }

    /// Waits for its end, and lets others kill it meanwhile.
    fn wait(&self) -> std::io::Result<ExitStatus> {
        loop {
            let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            drop(child);
            self.env.clock.sleep(NAP);
        }
    }

    /// Waits until the process uses next to no processor time, for engines that do not report the end of
    /// their background work. Returns the time waited.
    pub fn wait_until_idle(&self, clock: &dyn Clock) -> Duration {
        let began = clock.monotonic();
        loop {
            let before = (clock.monotonic(), self.used().cpu_seconds());
            clock.sleep(IDLE_FOR);
            let (now, cpu) = (clock.monotonic(), self.used().cpu_seconds());
            let share = (cpu - before.1) / (now - before.0).as_secs_f64();
            if share < IDLE_SHARE || now - began > IDLE_MAX {
                return before.0 - began;
            }
        }
    }

    /// Resources used so far.
    pub fn used(&self) -> ProcessUse {
        ProcessUse::of(self.id)
    }

    /// Memory charged to its group, if it has one.
    pub fn group_memory(&self) -> Option<GroupMemory> {
        self.group.as_ref().and_then(ControlGroup::memory)
    }

    /// How often the limit of memory was met, if there is one.
    pub fn times_full(&self) -> Option<u64> {
        self.group.as_ref().and_then(ControlGroup::times_full)
    }

    fn page_cache_bytes(&self) -> u64 {
        let of_group = self.group_memory().map(|memory| memory.page_cache);
        of_group.unwrap_or_else(page_cache_bytes)
    }

    /// Closes the store and waits for the process.
    ///
    /// # Errors
    /// The error of closing.
    pub fn close(mut self) -> Result<()> {
        self.ask(&Request::Close, &mut |_| {})?;
        let (_limit, _) = self.limit()?;
        let ended = self.wait();
        self.has_ended = true;
        ended
            .map(|_| ())
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot wait: {error}")))
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        if !self.has_ended {
            // It may have ended by itself; either way there is nothing left to do about it.
            kill(&self.child);
            let _ended = self.wait();
        }
    }
}

/// Kills a process; one that ended by itself was waited for, so that no other one is meant.
fn kill(child: &Mutex<Child>) {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    // The thread that waits for it sees the result.
    let _killed = child.kill();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_hangs_is_killed_and_named() {
        let (program, seconds) = (Path::new("sleep"), ["1000".to_owned()]);
        let env = Env::system();
        let started = EngineProcess::start("sleeper", program, &seconds, &Limits::default(), &env);
        let mut engine = started.expect("a program that is everywhere");
        engine.silence_max = Duration::from_millis(10);
        let error = engine.ask(&Request::Close, &mut |_| {});
        let error = error.expect_err("it says nothing").to_string();
        assert!(error.contains("sleeper said nothing for 10ms"), "{error}");
        assert!(engine.has_ended);
    }
}
