//! The failure of a command: its message, its advice, and the exit code.
//!
//! Exit codes: 0 done; 1 not found (a key, a family, a database); 2 the command was not understood;
//! 3 the data is damaged, or a check failed; 4 the system refused (I/O, lock, disk space); 5 the
//! data uses a feature that cannot be served; 6 anything else; 130 CTRL-C ended it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use drumlin_base::{Error, ErrorKind};

use crate::interrupt::INTERRUPTED;

/// The reason why a command did not complete.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine reported this.
    Engine(Error),
    /// The engine reported this of a directory of backups.
    Backup(Error),
    /// The command line asks for something impossible.
    Usage(String),
    /// The thing asked for does not exist. Silent with an empty message.
    NotFound(String),
    /// There is no database in this directory.
    NoDatabase(PathBuf),
    /// A check failed.
    Check(String),
    /// CTRL-C ended it; what is done.
    Interrupted(String),
    /// Reading or printing failed.
    Io(io::Error),
}

/// The result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// The process's exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound(_) | Self::NoDatabase(_) => 1,
            Self::Usage(_) => 2,
            Self::Check(_) => 3,
            Self::Interrupted(_) => INTERRUPTED,
            Self::Io(_) => 4,
            Self::Engine(error) | Self::Backup(error) => match error.kind() {
                ErrorKind::NotFound => 1,
                ErrorKind::InvalidArgument | ErrorKind::TooLarge => 2,
                ErrorKind::Corruption => 3,
                ErrorKind::Io
                | ErrorKind::NoSpace
                | ErrorKind::Locked
                | ErrorKind::ReadOnly
                | ErrorKind::Poisoned => 4,
                ErrorKind::NotSupported => 5,
                _ => 6,
            },
        }
    }

    /// Whether the reader of the output has closed it, which is no failure.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The advice to the user.
    fn advice(&self) -> Option<&'static str> {
        let error = match self {
            Self::Backup(error) if error.is_corruption() => {
                return Some(
                    "run `drumlin backup verify DIR --checksums` to see which backups are whole, and \
                     restore another one by its ID",
                );
            }
            Self::Backup(error) => error,
            Self::Engine(error) => error,
            Self::NoDatabase(_) => {
                return Some(
                    "check --db; `drumlin put` and `drumlin load` create a database that is missing",
                );
            }
            _ => return None,
        };
        Some(match error.kind() {
            ErrorKind::Corruption => {
                "run `drumlin verify` to see how far the damage goes; copy the directory before \
                 `drumlin repair`, or restore a backup"
            }
            ErrorKind::Locked => {
                "stop the process that has it open; reading commands (get, scan, stats, levels, \
                 verify) need no lock"
            }
            ErrorKind::NoSpace => "free space on the disk and run the command again",
            ErrorKind::ReadOnly => "the file system is mounted read-only; use a copy elsewhere",
            ErrorKind::Poisoned => "look at the disk first, then run the command again",
            ErrorKind::NotSupported => {
                "open it with the program that wrote it, and compact or export it there"
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) | Self::Backup(error) => write!(f, "{error}")?,
            Self::Usage(text) | Self::NotFound(text) | Self::Check(text) => write!(f, "{text}")?,
            Self::Interrupted(text) => write!(f, "ended by CTRL-C: {text}")?,
            Self::NoDatabase(dir) => write!(f, "there is no database in {}", dir.display())?,
            Self::Io(error) => write!(f, "{error}")?,
        }
        match self.advice() {
            Some(advice) => write!(f, "\n  what to do: {advice}"),
            None => Ok(()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_the_documented_ones() {
        let engine = |kind| Failure::Engine(Error::new(kind, "x")).exit_code();
        assert_eq!(engine(ErrorKind::NotFound), 1);
        assert_eq!(engine(ErrorKind::InvalidArgument), 2);
        assert_eq!(engine(ErrorKind::Corruption), 3);
        assert_eq!((engine(ErrorKind::Io), engine(ErrorKind::Locked)), (4, 4));
        assert_eq!(engine(ErrorKind::NotSupported), 5);
        assert_eq!(engine(ErrorKind::Aborted), 6);
        assert_eq!(Failure::Check(String::new()).exit_code(), 3);
        assert_eq!(Failure::NotFound(String::new()).exit_code(), 1);
    }

    #[test]
    fn a_damaged_backup_is_no_matter_of_the_database() {
        let damage = || Error::new(ErrorKind::Corruption, "cut");
        let text = Failure::Backup(damage()).to_string();
        assert!(text.contains("`drumlin backup verify"), "{text}");
        assert!(!text.contains("repair"), "{text}");
        assert_eq!(Failure::Backup(damage()).exit_code(), 3);
    }

    #[test]
    fn a_locked_database_says_who_may_still_read() {
        let text = Failure::Engine(Error::new(ErrorKind::Locked, "held by 7")).to_string();
        assert!(
            text.starts_with("held by 7\n  what to do: stop the process"),
            "{text}"
        );
    }
}
