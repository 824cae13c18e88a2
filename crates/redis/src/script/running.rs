//! A script that runs: the commands that it calls, and its end before its time.

use std::sync::Arc;
use std::time::Duration;

use drumlin_fs::net::Events;
use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::{Args, OwnedArgs, Protocol, ReplyWriter};

use crate::catalog;
use crate::command::{Command, Flags};
use crate::hands::lend;
use crate::memory::refusal;
use crate::permit;
use crate::ran;
use crate::replica::admit::admit;
use crate::round::{Cold, Round, Stage, Terms, run};
use crate::script::flags::ScriptFlags;
use crate::session::{Kept, Session};
use crate::state::ServerState;
use crate::table::Table;

/// Why a script ends before its time. Nothing that it calls can catch that.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A command that it called needs the disk: the script is run anew once that command is warm.
    Cold(Cold),
    /// By SCRIPT KILL or FUNCTION KILL.
    Killed,
    /// By SHUTDOWN NOSAVE.
    ShutDown,
}

/// What a script runs with.
pub(crate) struct Running<'a> {
    pub(crate) server: &'a mut ServerState,
    pub(crate) table: &'a Table,
    pub(crate) round: &'a mut Round,
    pub(crate) session: &'a mut Session,
    pub(crate) terms: Terms,
    /// Of the replies of its commands.
    pub(crate) protocol: Protocol,
    pub(crate) is_read_only: bool,
    /// What it declares.
    pub(crate) flags: ScriptFlags,
    /// It came by EVAL or EVALSHA, not by FCALL.
    pub(crate) is_eval: bool,
    /// The name of the function, and the command that called it.
    pub(crate) name: &'a str,
    pub(crate) args: Args<'a>,
    pub(crate) wrote: bool,
    /// Nothing was changed in the round before it.
    pub(crate) is_first_to_write: bool,
    pub(crate) started: Duration,
    /// It has run for so long that others are answered meanwhile.
    pub(crate) is_busy: bool,
    pub(crate) stop: Option<Stop>,
    /// Messages that it published: they go out when it cannot be undone any more.
    pub(crate) published: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) events: Option<Events>,
}

/// Families of subcommands none of which a script may call, but for HELP.
const NOT_FOR_SCRIPTS: [&str; 7] = [
    "acl", "client", "config", "function", "latency", "module", "script",
];
/// Commands that change nothing here, and that a script that only reads may not call for what they change elsewhere.
const MAY_REPLICATE: [&str; 3] = ["pfcount", "publish", "spublish"];

impl Running<'_> {
    /// Runs a command; its reply, or the text of an error that Redis has only for scripts.
    pub(crate) fn call(&mut self, args: &OwnedArgs) -> Result<Vec<u8>, &'static str> {
        let args = args.args();
        let command = self.admit(args).inspect_err(|text| {
            let found = self.table.find(args.get(0).unwrap_or_default());
            ran::refused(
                self.server,
                found.map(|it| it.facts),
                args,
                &format!("ERR {text}"),
            );
        })?;
        let name = command.facts.name;
        let is_write = command.facts.flags.has(Flags::WRITE);
        let mut reply = ReplyWriter::new(self.protocol);
        let admitted = self.has_memory(&command, args);
        let admitted = admitted.and_then(|()| admit(self.server, self.session, &command.facts));
        self.wrote |= is_write && admitted.is_ok();
        if let Err(refusal) = admitted {
            let text = refusal.to_string();
            ran::refused(self.server, Some(command.facts), args, &text);
            reply.error(text.as_bytes());
            return Ok(reply.take());
        }
        if name == "publish" {
            let (channel, message) = (args.get(1), args.get(2));
            let (channel, message) = (channel.unwrap_or_default(), message.unwrap_or_default());
            reply.integer(self.server.pubsub.receivers(channel) as i64);
            self.published.push((channel.to_vec(), message.to_vec()));
            if self.server.replicas.collects {
                let said = args.iter().collect();
                self.server.replicas.unit.push(self.session.db, said);
            }
            ran::ran(self.server, self.session, &command.facts, args, &Ok(None));
            return Ok(reply.take());
        }
        match self.run(&command, args, &mut reply) {
            Ok(()) => {}
            Err(Failure::Cold) => {
                self.stop = Some(Stop::Cold(Cold {
                    kept: vec![Kept::new(&command.facts, args)],
                    db: self.session.db,
                    is_part: true,
                }));
            }
            Err(failure) => {
                reply.error(failure.to_string().as_bytes());
            }
        }
        Ok(reply.take())
    }

    /// Whether there is memory for the command. Once the script has written, it is not stopped half way.
    fn has_memory(&self, command: &Command, args: Args<'_>) -> Outcome<()> {
        let may_need = !self.wrote && self.flags.may_need_memory();
        match may_need && refusal::needs_memory(self.server, &command.facts, args) {
            true => Err(refusal::OOM),
            false => Ok(()),
        }
    }

    fn admit(&mut self, args: Args<'_>) -> Result<Command, &'static str> {
        const UNKNOWN: &str = "Unknown Redis command called from script";
        const WRONG: &str = "Wrong number of args calling Redis command from script";
        let found = self.table.find(args.get(0).unwrap_or_default());
        let command = *found.ok_or(UNKNOWN)?;
        if !command.facts.takes(args.len()) {
            return Err(WRONG);
        }
        let name = command.facts.name;
        if let Err(failure) = command.facts.resolve(args) {
            let is_unknown = failure.to_string().starts_with("ERR unknown");
            return Err(if is_unknown { UNKNOWN } else { WRONG });
        }
        let asks_help = args
            .get(1)
            .is_some_and(|it| it.eq_ignore_ascii_case(b"help"));
        let entry = catalog::lookup(command.facts.entry(), args).ok_or(UNKNOWN)?;
        let is_closed = NOT_FOR_SCRIPTS.contains(&name);
        let is_denied = command.facts.flags.has(Flags::NOSCRIPT) || entry.is("noscript");
        let is_denied = is_closed && !asks_help || !is_closed && is_denied;
        if is_denied && self.server.scripts.denies {
            return Err("This Redis command is not allowed from script");
        }
        permit::may_call(self.server, self.session, (entry, args))?;
        let changes = command.facts.flags.has(Flags::WRITE) || MAY_REPLICATE.contains(&name);
        if self.is_read_only && changes {
            return Err("Write commands are not allowed from read-only scripts.");
        }
        Ok(command)
    }

    fn run(
        &mut self,
        command: &Command,
        args: Args<'_>,
        reply: &mut ReplyWriter,
    ) -> Result<(), Failure> {
        lend::before(self.server, &command.facts, args);
        let store = Arc::clone(&self.server.store);
        let stage = Stage {
            store: &store,
            from: self.terms.from,
            limits: self.server.limits,
            may_wait: false,
            counts: command.facts.counts_lookups(),
            may_write: self.terms.may_write,
            woken_by: None,
            server: Some(self.server),
        };
        let (handler, facts) = (command.handler, &command.facts);
        let outcome = run(handler, args, self.session, reply, self.round, stage);
        ran::ran(self.server, self.session, facts, args, &outcome);
        outcome.map(|_| ())
    }

    /// Whether the user may run the command; `None` if there is no such command.
    pub(crate) fn may_call(&self, args: &OwnedArgs) -> Option<bool> {
        let args = args.args();
        let found = self.table.find(args.get(0).unwrap_or_default())?;
        let entry = catalog::lookup(found.facts.entry(), args)?;
        let Some(id) = self.session.user else {
            return Some(true);
        };
        let user = self.server.users.get(id);
        Some(user.is_some_and(|user| user.lacks(entry, args).is_none()))
    }

    /// Some time has passed; whether others are to be answered by now.
    pub(crate) fn tick(&mut self) -> bool {
        if !self.is_busy {
            let threshold = self.server.config.number("busy-reply-threshold");
            let elapsed = self.server.scripts.now().saturating_sub(self.started);
            self.is_busy = threshold > 0 && elapsed >= Duration::from_millis(threshold);
        }
        self.is_busy
    }
}
