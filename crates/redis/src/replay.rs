//! The commands of append-only files, run as if a client had sent them: one after the other, and written in batches.
//!
//! As in Redis, no key expires meanwhile, and a command that fails is passed over; one that is refused before it runs ends the
//! load. A file that is cut within a command or a transaction counts up to there, if it is the last and `aof-load-truncated` is
//! on; the file itself stays as it is.

use std::path::Path;
use std::sync::Arc;

use drumlin::{Error, Result};
use drumlin_fs::Env;
use drumlin_fs::net::{Network, PosixNetwork};
use drumlin_rdb::aof::{Command, Commands, Tail, begins_as_rdb};
use drumlin_redis_store::{ReadFrom, Store};
use drumlin_resp::OwnedArgs;

use crate::config::Config;
use crate::dispatch::{Dispatcher, Ran};
use crate::net::Net;
use crate::persist::load::{Loaded, load_base};
use crate::round::{Round, Terms};
use crate::session::Session;
use crate::state::ServerState;
use crate::table::Table;

/// Bytes of one read.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes of commands, and changes, that are written at once, about.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_CHANGES: usize = 1 << 16;
/// Most arguments of a command.
const ARGUMENTS_MAX: usize = 1 << 24;
/// Bytes that tell what a file begins with.
const HEAD_BYTES: usize = 5;

/// See the module.
pub(crate) struct Replay<'e> {
    env: &'e Env,
    state: ServerState,
    table: Table,
    round: Round,
    /// Bytes of the commands in it.
    bytes: u64,
    may_be_cut: bool,
    done: Loaded,
}

impl<'e> Replay<'e> {
    /// For the data of `store`.
    ///
    /// # Errors
    /// Of the system, and of libraries that were stored.
    pub(crate) fn new(store: Arc<Store>, config: &Config, env: &'e Env) -> Result<Self> {
        // No client ever comes.
        let network = Arc::new(PosixNetwork::new());
        let net = Net::new(network.poller()?, Vec::new());
        let table = Table::new(&[]).map_err(Error::invalid_argument)?;
        let commands = Arc::new(table.known());
        let round = Round::new(&store, 0);
        let state = ServerState::new(store, commands, config.clone(), env, net, network);
        let mut replay = Self {
            env,
            may_be_cut: config.get("aof-load-truncated") == "yes",
            state,
            table,
            round,
            bytes: 0,
            done: Loaded::default(),
        };
        replay.begin_batch();
        Ok(replay)
    }

    /// What is loaded.
    pub(crate) fn done(&self) -> Loaded {
        self.done
    }

    /// Loads a file: an RDB file, commands, or the first and then the second.
    ///
    /// # Errors
    /// With the file, the offset and the command. What comes before is loaded then.
    pub(crate) fn file(
        &mut self,
        path: &Path,
        is_last: bool,
        tell: &mut dyn FnMut(&Loaded),
    ) -> Result<()> {
        let open = self.env.files.open(path);
        let file = open.map_err(|error| error.with_file(path))?;
        let (before, size) = (self.done.bytes, file.size());
        let mut head = [0; HEAD_BYTES];
        let read = file.read_at(0, &mut head)?;
        let mut at = 0;
        if begins_as_rdb(head.get(..read).unwrap_or_default()) == Some(true) {
            let mut done = self.done;
            let store = Arc::clone(&self.state.store);
            let (loaded, end) = load_base(&store, self.env, path, &mut |part| {
                done.bytes = before + part.bytes;
                tell(&done);
            })?;
            self.done.keys += loaded.keys;
            self.done.libraries += loaded.libraries;
            self.state.scripts.load_stored(&store)?;
            self.begin_batch();
            at = end;
        }
        let mut commands = Commands::new(at, self.state.limits.string_bytes_max, ARGUMENTS_MAX);
        let mut session = Session {
            is_authenticated: true,
            is_primary: true,
            ..Session::default()
        };
        let mut piece = vec![0; PIECE_BYTES];
        let outcome = loop {
            if let Err(error) = self.commands(&mut commands, &mut session) {
                break Err(error);
            }
            let read = file.read_at(at, &mut piece)?;
            if read == 0 {
                break self.finish(commands.finish(), size, is_last);
            }
            at += read as u64;
            commands.push(piece.get(..read).unwrap_or_default());
            self.done.bytes = before + at;
            tell(&self.done);
        };
        self.commit()?;
        self.state.store.db().sync_wal()?;
        self.done.bytes = before + size;
        let loaded = self.done.commands;
        outcome.map_err(|error| {
            let loaded = format!("{loaded} commands are loaded, and then");
            error.context(loaded).with_file(path)
        })
    }

    /// Runs the commands that have come.
    fn commands(&mut self, commands: &mut Commands, session: &mut Session) -> Result<()> {
        while let Some(command) = commands.command()? {
            self.command(&command, session)?;
            self.done.commands += 1;
            self.bytes += bytes_of(&command);
            let is_large = self.round.overlay.changes() >= BATCH_CHANGES;
            if is_large || self.bytes >= BATCH_BYTES {
                self.commit()?;
            }
        }
        Ok(())
    }

    fn command(&mut self, command: &Command, session: &mut Session) -> Result<()> {
        let args: OwnedArgs = command.arguments.iter().map(Vec::as_slice).collect();
        let mut dispatcher = Dispatcher {
            server: &mut self.state,
            table: &self.table,
            round: &mut self.round,
            terms: Terms {
                from: ReadFrom::Disk,
                may_write: true,
            },
            exec_failed: false,
        };
        let ran = dispatcher.dispatch(session, args.args());
        let reply = std::mem::take(&mut session.out);
        let refusal = match (self.state.replication.last_error.take(), ran) {
            (Some(text), _) => text,
            (None, Ran::Answered { .. }) => {
                self.done.failed += u64::from(reply.first() == Some(&b'-'));
                return Ok(());
            }
            (None, _) => "it waits".to_owned(),
        };
        let name = command.arguments.first().map(Vec::as_slice);
        let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
        let from = command.end.saturating_sub(bytes_of(command));
        let message = format!("the command {name:?} cannot be run: {refusal}");
        Err(Error::not_supported(message).with_offset(from))
    }

    fn finish(&mut self, tail: Tail, size: u64, is_last: bool) -> Result<()> {
        let Tail::Cut(sound) = tail else {
            return Ok(());
        };
        if is_last && self.may_be_cut {
            self.done.cut = size.saturating_sub(sound);
            return Ok(());
        }
        let reason = match is_last {
            true => "aof-load-truncated is off",
            false => "it is not the last file",
        };
        let message = format!("the file ends within a command or a transaction, and {reason}");
        Err(Error::corruption(message).with_offset(sound))
    }

    fn begin_batch(&mut self) {
        self.bytes = 0;
        self.state.set_time(self.env.clock.unix_time());
        self.round = Round::new(&self.state.store, self.state.now_micros / 1_000);
    }

    fn commit(&mut self) -> Result<()> {
        if !self.round.overlay.is_empty() {
            self.state.store.commit(&mut self.round.overlay)?;
        }
        self.begin_batch();
        Ok(())
    }
}

/// Bytes of a command in its file.
fn bytes_of(command: &Command) -> u64 {
    let line = |number: usize| 3 + number.to_string().len() as u64;
    let arguments = command.arguments.iter();
    let arguments = arguments.map(|it| line(it.len()) + it.len() as u64 + 2);
    line(command.arguments.len()) + arguments.sum::<u64>()
}
