//! MIGRATE.

use std::time::Duration;

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::integer;

use crate::call::{Call, NOT_AN_INTEGER, SYNTAX};
use crate::command::{Command, Flags, KeyPositions};
use crate::migrate::request::{Request, target};
use crate::wait::{TimeoutReply, Wait};

const KEY: KeyPositions = KeyPositions {
    first: 3,
    last: 3,
    step: 1,
};

pub(crate) const COMMANDS: &[Command] = &[Command::new(
    "migrate",
    -6,
    Flags::WRITE.and(Flags::MOVABLE_KEYS),
    KEY,
    migrate,
)];

/// The silence of a target that is borne if none is named.
const TIMEOUT_MS: u64 = 1_000;

#[derive(Debug, Default)]
struct Options {
    copies: bool,
    replaces: bool,
    auth: Vec<Vec<u8>>,
    /// Where the keys begin.
    keys_at: Option<usize>,
}

fn options(call: &Call<'_, '_>) -> Outcome<Options> {
    let mut options = Options::default();
    let mut at = 6;
    while at < call.len() {
        let behind = call.len() - 1 - at;
        let words = |count: usize| {
            let words = call.args.from(at + 1);
            words.iter().take(count).map(<[u8]>::to_vec).collect()
        };
        match () {
            () if call.is(at, "copy") => options.copies = true,
            () if call.is(at, "replace") => options.replaces = true,
            () if call.is(at, "auth") && behind >= 1 => {
                options.auth = words(1);
                at += 1;
            }
            () if call.is(at, "auth2") && behind >= 2 => {
                options.auth = words(2);
                at += 2;
            }
            () if call.is(at, "keys") => {
                if !call.arg(3).is_empty() {
                    return Err(Failure::refused(
                        "ERR When using MIGRATE KEYS option, the key argument must be set to the \
                         empty string",
                    ));
                }
                options.keys_at = Some(at + 1);
                break;
            }
            () => return Err(SYNTAX),
        }
        at += 1;
    }
    Ok(options)
}

fn migrate(call: &mut Call<'_, '_>) -> Outcome<()> {
    let options = options(call)?;
    let timeout_ms = integer(call.arg(5)).ok_or(NOT_AN_INTEGER)?;
    let target_db = integer(call.arg(4)).ok_or(NOT_AN_INTEGER)?;
    let wanted = match options.keys_at {
        Some(at) => call.args.from(at).iter().collect(),
        None => vec![call.arg(3)],
    };
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for key in wanted {
        if call.keys.lookup(key)?.is_some() {
            keys.push(key.to_vec());
        }
    }
    if keys.is_empty() {
        call.reply.simple(b"NOKEY");
        return Ok(());
    }
    if !call.may_wait {
        return Err(Failure::refused(
            "ERR MIGRATE waits for its target, and so is no part of a transaction or a script",
        ));
    }
    let target = target(call.arg(1), call.arg(2)).ok_or(Failure::refused(
        "IOERR error or timeout connecting to the client",
    ))?;
    let timeout_ms = u64::try_from(timeout_ms).unwrap_or(0);
    let timeout_ms = if timeout_ms == 0 {
        TIMEOUT_MS
    } else {
        timeout_ms
    };
    let (client, db) = (call.session.id, call.session.db);
    let server = call.server()?;
    let request = Request {
        client,
        names: keys.iter().cloned().collect(),
        keys,
        db,
        target_db,
        target,
        timeout: Duration::from_millis(timeout_ms),
        copies: options.copies,
        replaces: options.replaces,
        auth: options.auth,
        asks: server.is_cluster,
    };
    server.migrations.asked.push_back(request);
    // The end of the migration answers.
    call.wait_for(Wait {
        keys: Vec::new(),
        timeout: None,
        on_timeout: TimeoutReply::Null,
        args: None,
    });
    Ok(())
}
