//! The words between a replica and its primary before the stream.

use std::path::Path;

use drumlin::{Error, ErrorKind, Result};
use drumlin_fs::{CreateOptions, Env, FileKind};
use drumlin_resp::encode_command;

use super::state::Place;
use crate::wire::Wire;

/// Bytes of the mark behind data of unknown length.
const MARK_BYTES: usize = 40;

/// What a replica tells of itself.
#[derive(Clone, Debug)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
    /// The port that it listens at.
    pub(super) port: String,
    /// Where it is to be found, if not where its connection comes from.
    pub(super) address: String,
}

/// The primary's answer to PSYNC.
#[derive(Debug)]
pub(super) enum Answer {
    /// The stream goes on, perhaps under another name.
    GoesOn(Option<String>),
    /// All data comes, and then the stream from there on.
    AllData(Place),
    /// Neither, at least now.
    Refused(Error),
}

fn refused(step: &str, answer: &str) -> Error {
    Error::new(
        ErrorKind::Io,
        format!("the primary answers {step} with {answer}"),
    )
}

fn ask(wire: &mut Wire, words: &[&str]) -> Result<String> {
    let mut bytes = Vec::new();
    encode_command(&mut bytes, words);
    wire.send(&bytes)?;
    wire.line()
}

/// Greets the primary.
///
/// # Errors
/// Of the connection; when it wants a password.
pub(super) fn greet(wire: &mut Wire, own: &Credentials) -> Result<()> {
    let answer = ask(wire, &["PING"])?;
    let wants_password = answer.starts_with("-NOAUTH") || answer.starts_with("-NOPERM");
    if !answer.starts_with('+') && (!wants_password || own.password.is_empty()) {
        return Err(refused("PING", &answer));
    }
    if !own.password.is_empty() {
        let answer = match own.user.as_str() {
            "" => ask(wire, &["AUTH", &own.password])?,
            user => ask(wire, &["AUTH", user, &own.password])?,
        };
        if !answer.starts_with('+') {
            return Err(refused("AUTH", &answer));
        }
    }
    // Refusals of these are of old primaries, which do without.
    ask(wire, &["REPLCONF", "listening-port", &own.port])?;
    if !own.address.is_empty() {
        ask(wire, &["REPLCONF", "ip-address", &own.address])?;
    }
    ask(wire, &["REPLCONF", "capa", "eof", "capa", "psync2"])?;
    Ok(())
}

/// Asks for the stream from behind `place`, or for all data. If it `hands_over`, the other is to be the primary first.
///
/// # Errors
/// Of the connection; for an offset that is no number.
pub(super) fn psync(wire: &mut Wire, place: Option<&Place>, hands_over: bool) -> Result<Answer> {
    let (id, next) = match place {
        Some(place) => (place.id.as_str(), (place.offset + 1).to_string()),
        None => ("?", "-1".to_owned()),
    };
    let answer = match hands_over {
        true => ask(wire, &["PSYNC", id, &next, "FAILOVER"])?,
        false => ask(wire, &["PSYNC", id, &next])?,
    };
    let words: Vec<_> = answer.split_ascii_whitespace().collect();
    match words.as_slice() {
        ["+CONTINUE"] if place.is_some() => Ok(Answer::GoesOn(None)),
        ["+CONTINUE", id] if place.is_some() => Ok(Answer::GoesOn(Some((*id).to_owned()))),
        ["+FULLRESYNC", id, offset] => {
            let offset = offset.parse().map_err(|_| refused("PSYNC", &answer))?;
            let (id, db) = ((*id).to_owned(), 0);
            Ok(Answer::AllData(Place { id, offset, db }))
        }
        _ => Ok(Answer::Refused(refused("PSYNC", &answer))),
    }
}

/// Takes the data that follows into the file at `path`: of a length that is told first, or up to a mark that is told first.
///
/// # Errors
/// Of the connection and of the file.
pub(super) fn take_data(wire: &mut Wire, env: &Env, path: &Path) -> Result<()> {
    let head = wire.line()?;
    let length = head
        .strip_prefix('$')
        .ok_or_else(|| refused("PSYNC", &head))?;
    let mark = length.strip_prefix("EOF:").map(str::as_bytes);
    if mark.is_some_and(|mark| mark.len() != MARK_BYTES) {
        return Err(refused("PSYNC", &head));
    }
    let mut left: u64 = match mark {
        Some(_) => u64::MAX,
        None => length.parse().map_err(|_| refused("PSYNC", &head))?,
    };
    let mut file = env
        .files
        .create(path, CreateOptions::new(FileKind::Other))?;
    while left > 0 {
        if wire.buffer().is_empty() {
            wire.fill()?;
        }
        let here = wire.buffer().len();
        let Some(mark) = mark else {
            let part = wire.take(usize::try_from(left).unwrap_or(here).min(here));
            left -= part.len() as u64;
            file.append(&part)?;
            continue;
        };
        // Nothing follows the mark before it is acknowledged.
        if wire.buffer().ends_with(mark) {
            let data = wire.take(here - MARK_BYTES);
            wire.take(MARK_BYTES);
            file.append(&data)?;
            break;
        }
        let part = wire.take(here.saturating_sub(MARK_BYTES));
        file.append(&part)?;
        wire.fill()?;
    }
    file.close()
}
