//! A db_bench process, from its start to its lines.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::Env;

use super::command::arguments;
use super::line::{Line, parse};
use crate::engine::Moment;
use crate::places::disk_bytes;
use crate::process::{ProcessUse, page_cache_bytes};
use crate::protocol::{Done, RoleDone, Second, Step, StoreState};

/// How long the watcher sleeps between looks.
const NAP: Duration = Duration::from_millis(20);
/// How long a stage may take before its process is taken to hang.
const STAGE_MAX: Duration = Duration::from_secs(6 * 3600);

/// A store that db_bench works on, one process a stage. It compares no values, and prints neither
/// percentiles nor the figures of its writer beside readers; these are left out.
#[derive(Debug)]
pub struct DbBench {
    program: PathBuf,
    dir: PathBuf,
    flags: Vec<String>,
    is_fresh: bool,
    /// Resources used by the last process.
    used: ProcessUse,
}

impl DbBench {
    /// `program` on the store in `dir`, under `flags`. Nothing is started yet.
    pub fn new(program: &Path, dir: &Path, flags: &[String], is_fresh: bool) -> Self {
        Self {
            program: program.to_owned(),
            dir: dir.to_owned(),
            flags: flags.to_vec(),
            is_fresh,
            used: ProcessUse::default(),
        }
    }

    /// Its name and version.
    pub fn version(&self) -> String {
        let output = Command::new(&self.program).arg("--version").output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        format!(
            "a process for each stage; {}",
            text.unwrap_or_default().trim()
        )
    }

    /// Resources used by the last stage's process.
    pub fn used(&self) -> ProcessUse {
        self.used.clone()
    }

    /// Runs `step` and shows each second to `on_moment`. Nothing is done, and `Done` has no roles, where
    /// db_bench has no such workload.
    ///
    /// # Errors
    /// `Io` when it cannot be started; `Aborted` when it failed; `Corruption` when a key that must be
    /// there was not found.
    pub fn step(
        &mut self,
        step: &Step,
        env: &Env,
        on_moment: &mut dyn FnMut(Moment),
    ) -> Result<Done> {
        self.used = ProcessUse::default();
        let Some(arguments) = arguments(step, &self.flags, &self.dir, self.is_fresh)? else {
            return Ok(Done::default());
        };
        let program = self.program.clone();
        let output = run(&program, &arguments, &mut |child| {
            self.watch(child, env, on_moment)
        })?;
        let line = output.lines().find_map(parse);
        let line = line.ok_or_else(|| failed(&program, &arguments)("it printed no figures"))?;
        let lost = line.found.filter(|(found, asked)| found < asked);
        if let Some((found, asked)) = lost
            && step
                .roles
                .iter()
                .any(|role| role.must_find && !role.act.is_write())
        {
            let message = format!("db_bench found {found} of {asked} keys that were all written");
            return Err(Error::corruption(message));
        }
        self.is_fresh = false;
        Ok(self.done(step, line, env))
    }

    /// Looks once in a while until the process has ended, and reports one second of it at a time.
    fn watch(
        &mut self,
        child: &mut Child,
        env: &Env,
        on_moment: &mut dyn FnMut(Moment),
    ) -> Result<()> {
        let began = env.clock.monotonic();
        let mut end = Duration::from_secs(1);
        loop {
            if has_ended(child)? {
                return Ok(());
            }
            let used = ProcessUse::of(child.id());
            if used.resident_bytes > 0 {
                self.used = used.clone();
            }
            if env.clock.monotonic() - began >= end {
                on_moment(Moment {
                    second: Second {
                        end: end.as_secs_f64(),
                        length: 1.0,
                        // Its operations in the second are not known.
                        roles: Vec::new(),
                        is_compacting: false,
                        store: self.state(env),
                    },
                    used,
                    page_cache_bytes: page_cache_bytes(),
                });
                end += Duration::from_secs(1);
            }
            if env.clock.monotonic() - began >= STAGE_MAX {
                return Err(late(STAGE_MAX));
            }
            env.clock.sleep(NAP);
        }
    }

    fn state(&self, env: &Env) -> StoreState {
        StoreState {
            disk_bytes: disk_bytes(env, &self.dir),
            ..StoreState::default()
        }
    }

    fn done(&self, step: &Step, line: Line<'_>, env: &Env) -> Done {
        let spoken_of = step
            .roles
            .iter()
            .position(|role| !role.act.is_write())
            .unwrap_or(0);
        let roles = step.roles.iter().enumerate().map(|(index, role)| {
            if index != spoken_of {
                return RoleDone::default();
            }
            let found = line.found.map_or(0, |(found, _)| found);
            RoleDone {
                operations: line.operations,
                thread_seconds: line.micros * line.operations as f64 / 1e6,
                found,
                missing: line.found.map_or(0, |(found, asked)| asked - found),
                // Its own sizes of keys and values are those of the flags.
                written_bytes: if role.act.is_put() {
                    self.bytes(line.operations)
                } else {
                    0
                },
                ..RoleDone::default()
            }
        });
        let spent = line.micros * line.operations as f64 / 1e6;
        Done {
            roles: roles.collect(),
            seconds: line.seconds.unwrap_or(spent),
            store: self.state(env),
            ..Done::default()
        }
    }

    /// Bytes of so many entries.
    fn bytes(&self, entries: u64) -> u64 {
        let flags = drumlin_bench::Flags::parse(&self.flags).unwrap_or_default();
        entries * (flags.key_size + flags.value_size) as u64
    }
}

/// Runs `program` until it has ended, kills it after `limit`, and returns its output.
///
/// # Errors
/// `Io` when it cannot be started; `Aborted` when it failed, with its output, or took too long.
pub fn run_within(
    program: &Path,
    arguments: &[String],
    limit: Duration,
    env: &Env,
) -> Result<String> {
    let began = env.clock.monotonic();
    run(program, arguments, &mut |child| {
        while !has_ended(child)? {
            if env.clock.monotonic() - began >= limit {
                return Err(late(limit));
            }
            env.clock.sleep(NAP);
        }
        Ok(())
    })
}

/// Runs `program` while `watch` waits for its end, and returns its output. Kills it when `watch`
/// fails.
fn run(
    program: &Path,
    arguments: &[String],
    watch: &mut dyn FnMut(&mut Child) -> Result<()>,
) -> Result<String> {
    let failed = failed(program, arguments);
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| {
        let program = program.display();
        Error::new(ErrorKind::Io, format!("cannot start {program}: {error}"))
    })?;
    let (watched, output, errors) = while_read(&mut child, watch);
    let status = child.wait().map_err(|error| failed(&error.to_string()))?;
    watched.map_err(|error| error.context(program.display()))?;
    match status.success() {
        true => Ok(output),
        false => Err(failed(&format!("{status}: {}", errors.trim()))),
    }
}

fn has_ended(child: &mut Child) -> Result<bool> {
    child
        .try_wait()
        .map(|status| status.is_some())
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot wait for it: {error}")))
}

fn late(limit: Duration) -> Error {
    let message = format!("not done after {limit:?}, and killed");
    Error::new(ErrorKind::Aborted, message)
}

/// An error that names the command.
fn failed(program: &Path, arguments: &[String]) -> impl Fn(&str) -> Error {
    let command = format!("{} {}", program.display(), arguments.join(" "));
    move |why| Error::new(ErrorKind::Aborted, format!("{command}: {why}"))
}

/// Runs `work` on `child` while threads read its output: a child whose pipe is full waits for ever.
/// Returns the result of `work`, standard output and standard error.
fn while_read(
    child: &mut Child,
    work: impl FnOnce(&mut Child) -> Result<()>,
) -> (Result<()>, String, String) {
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let output = scope.spawn(|| text(output));
        let errors = scope.spawn(|| text(errors));
        let worked = work(child);
        if worked.is_err() {
            // The pipes close with it, and so the reading threads end.
            let _may_have_ended = child.kill();
        }
        let read = |thread: std::thread::ScopedJoinHandle<'_, String>| thread.join();
        // `text` cannot panic; were it to, nothing would have been read.
        let (output, errors) = (read(output), read(errors));
        (
            worked,
            output.unwrap_or_default(),
            errors.unwrap_or_default(),
        )
    })
}

/// The text of `pipe` until it is closed.
fn text(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // The caller notices lines that could not be read.
        let _read = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(script: &str) -> Child {
        Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell")
    }

    #[test]
    fn a_child_that_prints_more_than_a_pipe_holds_comes_to_its_end() {
        let script = "head -c 300000 /dev/zero >&2; head -c 200000 /dev/zero; echo done";
        let mut child = child(script);
        let (waited, output, errors) = while_read(&mut child, |child| {
            let ended = child.wait().expect("a child of its own");
            assert!(ended.success());
            Ok(())
        });
        waited.expect("it ended");
        assert_eq!((output.len(), errors.len()), (200_005, 300_000));
        assert!(output.ends_with("done\n"));
    }

    #[test]
    fn a_program_that_hangs_is_killed_at_its_limit() {
        let (env, seconds) = (Env::system(), ["1000".to_owned()]);
        let limit = Duration::from_millis(10);
        let hung = run_within(Path::new("sleep"), &seconds, limit, &env);
        let error = hung.expect_err("it takes longer").to_string();
        assert!(error.contains("not done after 10ms"), "{error}");
        let words = ["-c".to_owned(), "echo done".to_owned()];
        let limit = Duration::from_secs(3600);
        let done = run_within(Path::new("sh"), &words, limit, &env);
        assert_eq!(done.expect("it ends"), "done\n");
        let words = ["-c".to_owned(), "echo why >&2; exit 3".to_owned()];
        let failed = run_within(Path::new("sh"), &words, limit, &env);
        let error = failed.expect_err("3").to_string();
        assert!(error.ends_with("why"), "{error}");
    }

    #[test]
    fn a_child_that_is_given_up_is_ended() {
        let mut child = child("echo begun; exec sleep 1000");
        let (gone, output, _) = while_read(&mut child, |_| Err(Error::corruption("lost")));
        assert!(gone.is_err());
        assert!(output.is_empty() || output == "begun\n");
        assert!(!child.wait().expect("a child of its own").success());
    }
}
