//! The store's health: the events that worsen and better it, and the calls refused because of it.

use std::sync::atomic::Ordering;

use drumlin_base::{Error, ErrorKind, Result};

use crate::store::state::State;
use crate::store::store::Store;
use crate::version::JobFiles;
use crate::watch::events::Health;
use crate::watch::notices::Notice;

impl Store {
    pub(crate) fn health(&self) -> Health {
        match self.health.load(Ordering::Acquire) {
            0 => Health::Healthy,
            1 => Health::BackgroundPaused,
            2 => Health::WriteStopped,
            _ => Health::Poisoned,
        }
    }

    /// Worsens the health to `to` because of `error`; never betters it.
    pub(crate) fn degrade(&self, state: &mut State, to: Health, error: &Error) {
        let from = self.health();
        self.watch.report_error(error);
        if to <= from {
            return;
        }
        self.health.store(to as u8, Ordering::Release);
        state.failure = Some(error.duplicate());
        tracing::error!(?from, ?to, %error, "the database's health got worse");
        self.watch.notices.note(|| Notice::HealthChanged {
            from,
            to,
            cause: error.to_string(),
        });
        self.changed.notify_all();
    }

    /// Betters the health, unless the database is poisoned: to `Healthy`, or, where damage keeps
    /// compactions from running, to `BackgroundPaused`.
    pub(crate) fn recover_health(&self, state: &mut State) {
        let from = self.health();
        state.failures_in_row = 0;
        let left = state.compaction_blocked.as_ref().map(Error::duplicate);
        let to = match &left {
            Some(_) => Health::BackgroundPaused,
            None => Health::Healthy,
        };
        if from <= to || from == Health::Poisoned {
            return;
        }
        self.health.store(to as u8, Ordering::Release);
        self.watch.statistics.resumes.bump();
        tracing::info!(?from, ?to, "the database's health got better");
        self.watch.notices.note(|| {
            let why = left.as_ref().map(ToString::to_string);
            let cause = why.unwrap_or_else(|| "the cause is gone".to_owned());
            Notice::HealthChanged { from, to, cause }
        });
        state.failure = left;
        self.changed.notify_all();
        self.retry.notify_all();
    }

    /// The error a refused writer gets.
    pub(crate) fn refusal(&self, state: &State) -> Error {
        let cause = state.failure.as_ref();
        let kind = match (self.health(), cause.map(Error::kind)) {
            (Health::Poisoned, _) if !drumlin_base::bug!("poison-told-as-its-cause") => {
                ErrorKind::Poisoned
            }
            (_, Some(kind)) => kind,
            (_, None) => ErrorKind::Io,
        };
        let why = cause.map_or_else(|| "an earlier failure".to_owned(), ToString::to_string);
        let advice = if kind == ErrorKind::Poisoned {
            "; reopen the database to recover"
        } else {
            ""
        };
        Error::new(kind, format!("writes are refused after {why}{advice}"))
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        match self.closing.load(Ordering::Acquire) {
            true => Err(Error::new(
                ErrorKind::Shutdown,
                "the database is being closed",
            )),
            false => Ok(()),
        }
    }

    /// Refuses changes to a database that was opened for reading.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.id.read_only {
            true => Err(Error::new(
                ErrorKind::ReadOnly,
                "the database was opened read-only",
            )),
            false => Ok(()),
        }
    }

    /// Announces a job that makes files. Closing waits until the guard is dropped.
    ///
    /// # Errors
    /// `Shutdown` once closing has begun.
    pub(crate) fn begin_job(&self) -> Result<JobFiles> {
        // In this order: either closing sees the job, or the job sees that it is too late.
        let job = self.files.numbers.begin_job();
        self.check_open()?;
        Ok(job)
    }
}
