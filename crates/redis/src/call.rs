//! One call of a command: its arguments, the keyspace it sees and the reply that it writes.

use std::time::Duration;

use drumlin_redis_store::{Failure, Keyspace, Outcome};
use drumlin_resp::{Args, ReplyWriter, integer};

use crate::limits::Limits;
use crate::replicas::state::Effects;
use crate::session::Session;
use crate::state::ServerState;
use crate::wait::{TimeoutReply, Wait};

/// See the module. `'k` is the round of commands, `'a` the call.
pub(crate) struct Call<'a, 'k> {
    /// The name and the arguments.
    pub(crate) args: Args<'a>,
    /// The database of the client.
    pub(crate) keys: &'a mut Keyspace<'k>,
    pub(crate) reply: &'a mut ReplyWriter,
    pub(crate) session: &'a mut Session,
    pub(crate) limits: Limits,
    /// Whether the call may wait for keys: not within MULTI.
    pub(crate) may_wait: bool,
    /// The changed key that a call is run again for, after it waited.
    pub(crate) woken_by: Option<&'a [u8]>,
    /// Set by a handler instead of writing a reply.
    pub(crate) wait: Option<Wait>,
    /// Whether replicas are told of what the call does, and what they are told instead of its arguments.
    pub(crate) collects: bool,
    pub(crate) effects: Effects,
    /// The server; `None` on the threads that read from the disk.
    pub(crate) server: Option<&'a mut ServerState>,
}

/// The error of arguments that are not what the command takes.
pub(crate) const SYNTAX: Failure = Failure::refused("ERR syntax error");
/// The error of a number that is none.
pub(crate) const NOT_AN_INTEGER: Failure =
    Failure::refused("ERR value is not an integer or out of range");

impl<'a> Call<'a, '_> {
    /// Argument `at`; the name is at 0. Empty where there is none: the arity is checked before.
    pub(crate) fn arg(&self, at: usize) -> &'a [u8] {
        self.args.get(at).unwrap_or_default()
    }

    /// Whether argument `at` is this word, in any case.
    pub(crate) fn is(&self, at: usize, word: &str) -> bool {
        self.args
            .get(at)
            .is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// How many arguments there are, the name counted.
    pub(crate) fn len(&self) -> usize {
        self.args.len()
    }

    /// Argument `at` as an integer.
    ///
    /// # Errors
    /// [`NOT_AN_INTEGER`].
    pub(crate) fn integer(&self, at: usize) -> Outcome<i64> {
        integer(self.arg(at)).ok_or(NOT_AN_INTEGER)
    }

    /// Whether the call is to look at `key`: not if it waited and another key woke it. That one alone is looked at, as the others
    /// may be of any type by now.
    pub(crate) fn is_woken_by(&self, key: &[u8]) -> bool {
        self.woken_by.is_none_or(|woken_by| woken_by == key)
    }

    /// Has the call wait for one of `keys`, or replies that there is nothing where it may not.
    pub(crate) fn wait_for(&mut self, wait: Wait) {
        if self.may_wait {
            self.wait = Some(wait);
            return;
        }
        match wait.on_timeout {
            TimeoutReply::NullArray => self.reply.null_array(),
            TimeoutReply::Null => self.reply.null(),
            TimeoutReply::Replicas { acked, .. } => self.reply.integer(acked as i64),
        }
    }

    /// Has replicas run `command` instead of what came: where that is random, waits, or depends on the time. More calls add
    /// more commands.
    pub(crate) fn tell_replicas(&mut self, command: &[&[u8]]) {
        if self.collects {
            let commands = self.effects.get_or_insert_default();
            commands.push(command.iter().copied().collect());
        }
    }

    /// Has replicas run nothing but what they are told from here on.
    pub(crate) fn tell_replicas_nothing(&mut self) {
        if self.collects {
            self.effects = Some(Vec::new());
        }
    }

    /// Has replicas run what came, although it changes nothing here.
    pub(crate) fn tell_replicas_all(&mut self) {
        if self.collects {
            self.effects = Some(vec![self.args.iter().collect()]);
        }
    }

    /// Argument `at` as the timeout of a blocking command, in seconds with a fraction; 0 is for ever.
    ///
    /// # Errors
    /// As Redis words them.
    pub(crate) fn timeout(&self, at: usize) -> Outcome<Option<Duration>> {
        let text = std::str::from_utf8(self.arg(at)).ok();
        let seconds = text
            .and_then(|text| text.parse::<f64>().ok())
            .filter(|it| !it.is_nan());
        let seconds = seconds.ok_or(Failure::refused(
            "ERR timeout is not a float or out of range",
        ))?;
        if seconds < 0.0 {
            return Err(Failure::refused("ERR timeout is negative"));
        }
        let timeout = Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|it| it.as_millis() < i64::MAX as u128)
            .ok_or(Failure::refused("ERR timeout is out of range"))?;
        Ok((!timeout.is_zero()).then_some(timeout))
    }

    /// The server.
    ///
    /// # Errors
    /// On a thread that reads from the disk: commands that need the server read nothing.
    pub(crate) fn server(&mut self) -> Outcome<&mut ServerState> {
        let elsewhere = Failure::refused("ERR the command needs the server's own thread");
        self.server.as_deref_mut().ok_or(elsewhere)
    }

    /// The error of a subcommand that is not known or has other arguments.
    pub(crate) fn unknown_subcommand(&self, command: &str) -> Failure {
        let name = String::from_utf8_lossy(self.arg(1)).into_owned();
        let name: String = name.chars().take(128).collect();
        Failure::because(format!(
            "ERR unknown subcommand '{name}'. Try {command} HELP."
        ))
    }

    /// The error of a subcommand with too many or too few arguments.
    pub(crate) fn wrong_arity(&self, name: &str) -> Failure {
        Failure::because(format!(
            "ERR wrong number of arguments for '{name}' command"
        ))
    }
}
