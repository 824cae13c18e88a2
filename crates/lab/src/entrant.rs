//! A participant of a measurement: a process with an engine in it, or db_bench.

use std::path::Path;

use drumlin_base::Result;
use drumlin_fs::Env;

use crate::db_bench::DbBench;
use crate::engine::{EngineProcess, Moment, Starter};
use crate::group::Limits;
use crate::process::ProcessUse;
use crate::protocol::{Done, Request, Step};

/// A store that stages are carried out on.
#[derive(Debug)]
pub(crate) enum Entrant {
    /// By a process that keeps it open.
    Agent(Box<EngineProcess>),
    /// By a db_bench process for each stage.
    DbBench(DbBench),
}

impl Entrant {
    /// Opens the store in `dir` under `flags`; an empty one if `is_fresh`.
    ///
    /// # Errors
    /// `NotSupported` without the right to limit; those of opening.
    pub(crate) fn open(
        name: &str,
        starter: &Starter,
        limits: &Limits,
        (dir, flags): (&Path, &[String]),
        is_fresh: bool,
        env: &Env,
    ) -> Result<Self> {
        match starter {
            Starter::Agent { program, arguments } => {
                let mut engine = EngineProcess::start(name, program, arguments, limits, env)?;
                let mut flags = flags.to_vec();
                flags.push(format!("--db={}", dir.display()));
                engine.ask(&Request::Open { flags, is_fresh }, &mut |_| {})?;
                Ok(Self::Agent(Box::new(engine)))
            }
            Starter::DbBench { program } => {
                Ok(Self::DbBench(DbBench::new(program, dir, flags, is_fresh)))
            }
        }
    }

    /// Name and version.
    pub(crate) fn version(&self) -> String {
        match self {
            Self::Agent(engine) => engine.version().to_owned(),
            Self::DbBench(bench) => bench.version(),
        }
    }

    /// Hands the file of records over.
    ///
    /// # Errors
    /// The error of reading it.
    pub(crate) fn records(&mut self, path: &Path, count: u64, is_loaded: bool) -> Result<()> {
        let Self::Agent(engine) = self else {
            return Ok(());
        };
        let request = Request::Records {
            path: path.display().to_string(),
            count,
            is_loaded,
        };
        engine.ask(&request, &mut |_| {}).map(|_| ())
    }

    /// Carries `step` out. db_bench leaves out the parts it cannot do.
    ///
    /// # Errors
    /// The engine's error, a wrong or missing value included.
    pub(crate) fn step(
        &mut self,
        step: &Step,
        env: &Env,
        on_moment: &mut dyn FnMut(Moment),
    ) -> Result<Done> {
        match self {
            Self::Agent(engine) => engine.ask(&Request::Step(step.clone()), on_moment),
            Self::DbBench(bench) => bench.step(step, env, on_moment),
        }
    }

    /// Waits until the process is at rest, and returns the seconds that took.
    pub(crate) fn rest(&self, env: &Env) -> f64 {
        match self {
            Self::Agent(engine) => engine.wait_until_idle(&*env.clock).as_secs_f64(),
            // Its process is gone.
            Self::DbBench(_) => 0.0,
        }
    }

    /// Resources that the process of the next stage has used before it.
    pub(crate) fn used_before(&self) -> ProcessUse {
        match self {
            Self::Agent(engine) => engine.used(),
            Self::DbBench(_) => ProcessUse::default(),
        }
    }

    /// Resources used by the process of the last stage.
    pub(crate) fn used(&self) -> ProcessUse {
        match self {
            Self::Agent(engine) => engine.used(),
            Self::DbBench(bench) => bench.used(),
        }
    }

    /// How often the limit of memory was met, if there is one.
    pub(crate) fn times_full(&self) -> Option<u64> {
        match self {
            Self::Agent(engine) => engine.times_full(),
            Self::DbBench(_) => None,
        }
    }

    /// Closes the store.
    ///
    /// # Errors
    /// The error of closing.
    pub(crate) fn close(self) -> Result<()> {
        match self {
            Self::Agent(engine) => engine.close(),
            Self::DbBench(_) => Ok(()),
        }
    }
}
