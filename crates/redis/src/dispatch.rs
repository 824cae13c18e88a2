//! From the arguments of a command to its effects: what may run, in MULTI or at once, and who is told of it.

use std::sync::Arc;
use std::time::Duration;

use drumlin_redis_store::{Failure, Keyspace, Mark, Outcome, ReadFrom};
use drumlin_resp::{Args, ReplyWriter};

use crate::cluster;
use crate::command::{Command, Flags};
use crate::dispatch_multi::{end_multi, refuse};
use crate::facts::Facts;
use crate::hands::lend;
use crate::log::Level;
use crate::memory::refusal;
use crate::migrate::hold::holds;
use crate::pause;
use crate::permit;
use crate::ran;
use crate::replica::admit::admit;
use crate::round::{Cold, Round, Stage, Terms, run};
use crate::script::run::{Evaluated, Evaluation};
use crate::session::{Kept, Multi, Session, Silence};
use crate::state::ServerState;
use crate::table::Table;
use crate::wait::Wait;

/// What became of a command.
#[derive(Debug)]
pub(crate) enum Ran {
    /// It is answered. Whether it may have written.
    Answered { wrote: bool },
    /// It waits for keys.
    Waits(Kept, Wait),
    /// Commands that need the disk: those of an EXEC, the one of a script, or one that the client sent.
    Cold(Cold),
    /// It writes, and writes have to wait.
    Later,
    /// It waits for the end of a pause.
    Paused,
}

/// Where a command runs, and what becomes of it besides its reply.
struct Place<'a> {
    may_wait: bool,
    /// Whether it may have written.
    wrote: &'a mut bool,
    /// The command of a script that needs the disk.
    of_script: &'a mut Option<Cold>,
}

/// The round and the rest of what commands are run with.
pub(crate) struct Dispatcher<'a> {
    pub(crate) server: &'a mut ServerState,
    pub(crate) table: &'a Table,
    pub(crate) round: &'a mut Round,
    pub(crate) terms: Terms,
    /// Whether the EXEC that runs is answered with an error.
    pub(crate) exec_failed: bool,
}

impl Dispatcher<'_> {
    /// Runs a command that a client sent.
    pub(crate) fn dispatch(&mut self, session: &mut Session, args: Args<'_>) -> Ran {
        if is_of_a_browser(args) {
            let fields = [("address", session.address.clone())];
            let message = "a request over HTTP came, perhaps from a browser that a page misuses";
            let journal = &mut self.server.journal;
            journal.tell_once(Level::Warning, "http", message, &fields);
            session.is_killed = true;
            return Ran::Answered { wrote: false };
        }
        let out = std::mem::take(&mut session.out);
        let written = out.len();
        let mut reply = ReplyWriter::append_to(out, session.protocol);
        self.server.replicas.unit.clear();
        let ran = match self.admit(session, args) {
            Err(refusal) => {
                let found = self.table.find(args.get(0).unwrap_or_default());
                let name = found.map(|it| it.facts.name);
                let text = refuse(self.server, session, name, &refusal);
                if session.is_primary {
                    self.server.replication.last_error = Some(text.clone());
                }
                ran::refused(self.server, found.map(|it| it.facts), args, &text);
                reply.error(text.as_bytes());
                Ran::Answered { wrote: false }
            }
            Ok(command) if pause::holds(self.server, session, &command.facts) => Ran::Paused,
            Ok(command) if holds(self.server, session, &command.facts, args) => Ran::Later,
            Ok(command) => match &mut session.multi {
                Some(multi) if is_queued(command.facts.name) => {
                    multi.queue.push(Kept::new(&command.facts, args));
                    reply.simple(b"QUEUED");
                    Ran::Answered { wrote: false }
                }
                _ if runs_others(&command.facts) => {
                    let counted = self.server.counters.counted;
                    self.server.observer.stats.begin_to_note();
                    let ran = self.many(session, &mut reply, &command, args);
                    let is_undone = matches!(ran, Ran::Cold(_));
                    let errors = self.server.observer.stats.end_to_note(is_undone);
                    if is_undone {
                        self.server.counters.counted = counted;
                        self.server.counters.errors -= errors;
                    }
                    ran
                }
                _ => self.one(session, &mut reply, &command, args),
            },
        };
        session.out = reply.take();
        // Confirmations of subscriptions are messages: they come also to a client that wants no replies.
        let is_told = session.last_command.ends_with("subscribe");
        if matches!(ran, Ran::Answered { .. }) && !is_told {
            silence(session, written);
        }
        ran
    }

    /// Runs a command that runs others.
    fn many(
        &mut self,
        session: &mut Session,
        reply: &mut ReplyWriter,
        command: &Command,
        args: Args<'_>,
    ) -> Ran {
        if command.facts.name != "exec" {
            return self.one(session, reply, command, args);
        }
        let began = self.server.observer.began();
        let ran = self.exec(session, reply);
        self.exec_ran(session, (&command.facts, args), began, &ran);
        ran
    }

    /// The command, if the client may send it now.
    fn admit(&mut self, session: &mut Session, args: Args<'_>) -> Outcome<Command> {
        let found = self.table.find(args.get(0).unwrap_or_default());
        let mut command = *found.ok_or_else(|| unknown(args))?;
        if command.facts.flags.has(Flags::SCRIPT) {
            let declared = self.server.scripts.declared(command.facts.name, args);
            let flags = declared.map(|it| it.of_command(command.facts.flags));
            command.facts.flags = flags.unwrap_or(command.facts.flags);
        }
        let Facts { name, flags, .. } = command.facts;
        session.last_command = name;
        if !command.facts.takes(args.len()) {
            return Err(Failure::because(format!(
                "ERR wrong number of arguments for '{name}' command"
            )));
        }
        let entry = command.facts.resolve(args)?;
        session.last_command = entry.name;
        permit::protected(self.server, session, entry)?;
        permit::authenticated(self.server, session, entry)?;
        if session.multi.is_some() && flags.has(Flags::NO_MULTI) {
            return Err(Failure::refused(
                "ERR Command not allowed inside a transaction",
            ));
        }
        permit::may_send(self.server, session, (entry, args))?;
        refusal::admit(self.server, session, &command.facts, args)?;
        admit(self.server, session, &command.facts)?;
        if session.is_subscriber() && !FOR_SUBSCRIBERS.contains(&name) {
            return Err(Failure::because(format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT \
                 / RESET are allowed in this context"
            )));
        }
        if self.server.is_cluster {
            cluster::check(session, &command.facts, args)?;
        }
        Ok(command)
    }

    fn one(
        &mut self,
        session: &mut Session,
        reply: &mut ReplyWriter,
        command: &Command,
        args: Args<'_>,
    ) -> Ran {
        let flags = command.facts.flags;
        let mut wrote = false;
        let kept = || Kept::new(&command.facts, args);
        if flags.may_write() && !self.terms.may_write {
            return Ran::Later;
        }
        let cold = |db: u16| Cold {
            kept: vec![kept()],
            db,
            is_part: false,
        };
        if flags.has(Flags::WALKS) && self.terms.from == ReadFrom::Memory {
            return Ran::Cold(cold(session.db));
        }
        let mark = self.round.overlay.mark();
        let mut of_script = None;
        let place = Place {
            // What follows in the stream cannot wait.
            may_wait: !session.is_primary,
            wrote: &mut wrote,
            of_script: &mut of_script,
        };
        let outcome = self.run_any(command, args, session, reply, place);
        let waits = match outcome {
            Ok(waits) => waits,
            Err(Failure::Cold) => {
                return Ran::Cold(of_script.unwrap_or_else(|| cold(session.db)));
            }
            Err(failure) => {
                reply.error(failure.to_string().as_bytes());
                // Of keys that it found expired.
                tell(self.server, session, self.round, mark);
                return Ran::Answered { wrote: false };
            }
        };
        tell(self.server, session, self.round, mark);
        match waits {
            None => Ran::Answered { wrote },
            Some(mut wait) => {
                let mut kept = kept();
                kept.args = wait.args.take().unwrap_or(kept.args);
                Ran::Waits(kept, wait)
            }
        }
    }

    fn run(
        &mut self,
        command: &Command,
        args: Args<'_>,
        session: &mut Session,
        reply: &mut ReplyWriter,
        may_wait: bool,
    ) -> Outcome<Option<Wait>> {
        lend::before(self.server, &command.facts, args);
        let store = Arc::clone(&self.server.store);
        let stage = Stage {
            store: &store,
            from: self.terms.from,
            limits: self.server.limits,
            may_wait,
            counts: command.facts.counts_lookups(),
            may_write: self.terms.may_write,
            woken_by: None,
            server: Some(self.server),
        };
        let outcome = run(command.handler, args, session, reply, self.round, stage);
        // A key that the command changes and reads is remembered as it is after that.
        let overlay = &mut self.round.overlay;
        self.server.tracker.note(overlay, session.id);
        ran::ran(self.server, session, &command.facts, args, &outcome);
        outcome
    }

    /// Notes that EXEC, which began at `began`, has run the commands that were queued.
    fn exec_ran(
        &mut self,
        session: &Session,
        (facts, args): (&Facts, Args<'_>),
        began: Duration,
        ran: &Ran,
    ) {
        if matches!(ran, Ran::Answered { .. }) {
            let failed = std::mem::take(&mut self.exec_failed);
            self.server.observer.begin_at(began);
            let micros = self.server.observer.lap();
            self.server.counters.counted.commands += 1;
            ran::ended(self.server, session, facts, args, (micros, failed));
            ran::monitor(self.server, session, facts, args);
        }
    }

    /// The error of an EXEC.
    fn fail_exec(&mut self, reply: &mut ReplyWriter, text: &str) {
        self.exec_failed = true;
        ran::error(self.server, text);
        reply.error(text.as_bytes());
    }

    /// Runs a command by its handler, or the script that it calls.
    fn run_any(
        &mut self,
        command: &Command,
        args: Args<'_>,
        session: &mut Session,
        reply: &mut ReplyWriter,
        place: Place<'_>,
    ) -> Outcome<Option<Wait>> {
        if !command.facts.flags.has(Flags::SCRIPT) {
            *place.wrote |= command.facts.flags.may_write();
            return self.run(command, args, session, reply, place.may_wait);
        }
        ran::monitor(self.server, session, &command.facts, args);
        let began = self.server.observer.began();
        let evaluation = Evaluation {
            server: self.server,
            table: self.table,
            round: self.round,
            session,
            terms: self.terms,
            command: command.facts.name,
            args,
        };
        let outcome = evaluation.run(reply);
        let failed = match &outcome {
            Ok(Evaluated::Cold(_)) => None,
            Ok(Evaluated::Answered { failed, .. }) => Some(*failed),
            Err(failure) => {
                ran::error(self.server, &failure.to_string());
                Some(true)
            }
        };
        if let Some(failed) = failed {
            self.server.observer.begin_at(began);
            let micros = self.server.observer.lap();
            self.server.counters.counted.commands += 1;
            ran::ended(self.server, session, &command.facts, args, (micros, failed));
            self.server
                .tracker
                .note(&mut self.round.overlay, session.id);
            ran::remember(self.server, session, &command.facts, args);
        }
        match outcome? {
            Evaluated::Cold(cold) => {
                *place.of_script = Some(cold);
                Err(Failure::Cold)
            }
            Evaluated::Answered { wrote, .. } => {
                *place.wrote |= wrote;
                Ok(None)
            }
        }
    }

    /// EXEC: all commands that were queued, or none.
    fn exec(&mut self, session: &mut Session, reply: &mut ReplyWriter) -> Ran {
        let answered = Ran::Answered { wrote: false };
        let Some(multi) = session.multi.take() else {
            self.fail_exec(reply, "ERR EXEC without MULTI");
            return answered;
        };
        if !self.terms.may_write {
            session.multi = Some(multi);
            return Ran::Later;
        }
        if multi.is_broken {
            end_multi(self.server, session);
            let text = "EXECABORT Transaction discarded because of previous errors.";
            self.fail_exec(reply, text);
            return answered;
        }
        let mark = self.round.overlay.mark();
        let (written, db) = (reply.bytes().len(), session.db);
        let libraries = Arc::clone(&self.server.scripts.libraries);
        let mut of_script = None;
        match self.exec_queue(session, reply, &multi, &mut of_script) {
            Ok(wrote) => {
                end_multi(self.server, session);
                tell(self.server, session, self.round, mark);
                Ran::Answered { wrote }
            }
            Err(failure) => {
                reply.buffer_mut().truncate(written);
                self.round.overlay.undo(mark);
                session.db = db;
                self.server.scripts.libraries = libraries;
                if let Failure::Cold = failure {
                    let cold = of_script.unwrap_or_else(|| Cold {
                        kept: multi.queue.clone(),
                        db,
                        is_part: true,
                    });
                    session.multi = Some(multi);
                    return Ran::Cold(cold);
                }
                end_multi(self.server, session);
                self.fail_exec(reply, &failure.to_string());
                answered
            }
        }
    }

    fn exec_queue(
        &mut self,
        session: &mut Session,
        reply: &mut ReplyWriter,
        multi: &Multi,
        of_script: &mut Option<Cold>,
    ) -> Outcome<bool> {
        if session.is_dirty || self.any_expired(session)? {
            reply.null_array();
            return Ok(false);
        }
        reply.array(multi.queue.len());
        let mut wrote = false;
        for Kept { facts, args } in &multi.queue {
            let command = self.table.get(facts);
            let call = (facts.resolve(args.args())?, args.args());
            if !drumlin_base::bug!("redis-queued-before-the-ban")
                && let Err(refusal) = permit::may_run_queued(self.server, session, call)
            {
                ran::error(self.server, &refusal.to_string());
                reply.error(refusal.to_string().as_bytes());
                continue;
            }
            let place = Place {
                may_wait: false,
                wrote: &mut wrote,
                of_script,
            };
            match self.run_any(&command, args.args(), session, reply, place) {
                Ok(_) => {}
                Err(Failure::Cold) => return Err(Failure::Cold),
                Err(failure) => {
                    reply.error(failure.to_string().as_bytes());
                }
            }
        }
        Ok(wrote)
    }

    /// Whether a watched key has expired since it was watched.
    fn any_expired(&mut self, session: &Session) -> Outcome<bool> {
        let store = &self.server.store;
        let Round {
            view,
            overlay,
            now_ms,
            ..
        } = &mut *self.round;
        for (watched, had_expired) in &session.watched {
            let keys = Keyspace::new(store, view, overlay, watched.db, *now_ms, self.terms.from);
            if !had_expired && keys.has_expired(&watched.key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Commands of a client of RESP2 that has subscriptions.
const FOR_SUBSCRIBERS: [&str; 9] = [
    "ping",
    "subscribe",
    "unsubscribe",
    "psubscribe",
    "punsubscribe",
    "ssubscribe",
    "sunsubscribe",
    "quit",
    "reset",
];

/// Whether it is the beginning of a request over HTTP: a page has a browser send those to servers that the attacker cannot reach.
fn is_of_a_browser(args: Args<'_>) -> bool {
    let name = args.get(0).unwrap_or_default();
    [b"post".as_slice(), b"host:"]
        .iter()
        .any(|it| it.eq_ignore_ascii_case(name))
}

/// Whether MULTI queues the command called `name`.
fn is_queued(name: &str) -> bool {
    !["exec", "discard", "multi", "watch", "quit", "reset"].contains(&name)
}

/// Whether a command runs others, which are undone with it.
fn runs_others(facts: &Facts) -> bool {
    facts.name == "exec" || facts.flags.has(Flags::SCRIPT)
}

/// Drops the reply if the client wants none.
fn silence(session: &mut Session, written: usize) {
    match session.silence {
        Silence::None => {}
        Silence::AfterThis => {
            session.out.truncate(written);
            session.silence = Silence::Next;
        }
        Silence::Next => {
            session.out.truncate(written);
            session.silence = Silence::None;
        }
        Silence::Off => session.out.truncate(written),
    }
}

/// The error of a name that is no command: with the first arguments, up to 128 bytes, as Redis words it.
fn unknown(args: Args<'_>) -> Failure {
    let cut = |bytes: &[u8]| {
        let bytes = bytes.get(..128).unwrap_or(bytes);
        String::from_utf8_lossy(bytes).into_owned()
    };
    let mut rest = String::new();
    for arg in args.iter().skip(1) {
        if rest.len() >= 128 {
            break;
        }
        let left = 128 - rest.len();
        let arg = arg.get(..left).unwrap_or(arg);
        rest.push_str(&format!("'{}' ", String::from_utf8_lossy(arg)));
    }
    let name = cut(args.get(0).unwrap_or_default());
    Failure::because(format!(
        "ERR unknown command '{name}', with args beginning with: {rest}"
    ))
}

/// Tells of the changes since `mark` those who watch, who wait and who subscribed to events. They cannot be taken back
/// after that.
pub(crate) fn tell(server: &mut ServerState, session: &mut Session, round: &mut Round, mark: Mark) {
    let ServerState {
        watching,
        waiting,
        clients,
        pubsub,
        notify,
        tracker,
        ..
    } = server;
    tracker.note(&mut round.overlay, session.id);
    for (db, key) in round.overlay.touched_since(mark) {
        for client in watching.of(db, key) {
            match clients.get_mut(client) {
                Some(other) => other.is_dirty = true,
                None if client == session.id => session.is_dirty = true,
                None => {}
            }
        }
        waiting.signal(db, key);
    }
    for (db, key) in round.overlay.gone_since(mark) {
        for client in watching.of(db, key) {
            let watcher = match clients.get_mut(client) {
                None if client == session.id => Some(&mut *session),
                other => other,
            };
            watcher.into_iter().for_each(|it| it.sees_gone(db, key));
        }
        waiting.signal(db, key);
    }
    if !notify.is_empty() {
        for event in round.overlay.events_since(mark) {
            notify.tell(event, pubsub, clients);
        }
    }
    round.overlay.keep();
    if server.replicas.collects {
        server.replicas.keep_unit();
        session.stream_offset = server.replicas.offset();
    }
}
