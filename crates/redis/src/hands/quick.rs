//! Plain reads, run beside the loop at one moment of the store.
//!
//! They are carried out by the loop's handlers, without the server. What is not simply answered leaves no trace, and is the loop's:
//! another command, an error, a key that has expired, a record on the disk.

use std::sync::Arc;
use std::time::Duration;

use drumlin::View;
use drumlin_fs::Clock;
use drumlin_redis_store::{Keyspace, Overlay, ReadFrom, Store};
use drumlin_resp::{Args, ReplyWriter};

use super::lent::Lent;
use super::post::Terms;
use super::tally::{Slow, Tally};
use crate::call::Call;
use crate::command::Command;
use crate::io::OUT_BYTES_HIGH;
use crate::prefetch;
use crate::session::{Kept, Session};
use crate::table::Table;

/// The commands that hands run: they look at records and change nothing, whoever sends them.
pub(super) const READS: [&str; 10] = [
    "get", "mget", "exists", "strlen", "getrange", "substr", "ttl", "pttl", "type", "ping",
];

/// What becomes of a connection whose commands were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It waits for more.
    Stays,
    /// It has more commands, once it has taken the replies.
    GoesOn,
    /// The loop is to run its next command.
    GoesHome,
}

/// A moment that commands see.
#[derive(Debug)]
pub(super) struct Moment {
    view: View,
    overlay: Overlay,
    now_ms: u64,
    seconds: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Quick {
    store: Arc<Store>,
    table: Arc<Table>,
    clock: Arc<dyn Clock>,
    /// What handlers know of a client.
    session: Session,
    /// The command that was found last, and how it was written: pipelines are mostly of one.
    name: Vec<u8>,
    command: Option<Command>,
    /// When the command that runs began: when the one before it ended.
    began: Duration,
}

impl Quick {
    /// For the commands of `table` on `store`.
    pub(super) fn new(store: Arc<Store>, table: Arc<Table>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            table,
            session: Session {
                is_authenticated: true,
                ..Session::default()
            },
            name: Vec::new(),
            command: None,
            began: clock.monotonic(),
            clock,
        }
    }

    /// The present moment, with the records read ahead that the commands of `lent` will ask for. Requires: their bytes have been
    /// read, so that what was acknowledged before they were sent is seen.
    pub(super) fn moment<'a>(&mut self, lent: impl Iterator<Item = &'a Lent>) -> Moment {
        self.began = self.clock.monotonic();
        let time = self.clock.unix_time();
        let mut moment = Moment {
            view: self.store.view(),
            overlay: Overlay::new(),
            now_ms: self
                .store
                .now_ms(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            seconds: time.as_secs(),
        };
        let sent = lent.map(|lent| (lent.db, lent.io.received()));
        let wanted = prefetch::keys(&self.table, sent);
        if !wanted.is_empty() {
            let (view, overlay) = (&moment.view, &mut moment.overlay);
            Keyspace::new(
                &self.store,
                view,
                overlay,
                0,
                moment.now_ms,
                ReadFrom::Memory,
            )
            .read_ahead(&wanted);
        }
        moment
    }

    /// Runs the commands that a connection has sent, up to one that is the loop's, and appends the replies to `out`.
    pub(super) fn run(
        &mut self,
        lent: &mut Lent,
        moment: &mut Moment,
        terms: &Terms,
        (out, tally): (&mut Vec<u8>, &mut Tally),
    ) -> Next {
        let (store, seconds) = (Arc::clone(&self.store), moment.seconds);
        let Moment {
            view,
            overlay,
            now_ms,
            ..
        } = moment;
        let mut keys = Keyspace::new(&store, view, overlay, lent.db, *now_ms, ReadFrom::Memory);
        keys.note_expired();
        keys.tell_events(false);
        let mut reply = ReplyWriter::append_to(std::mem::take(out), lent.protocol);
        (self.session.db, self.session.protocol) = (lent.db, lent.protocol);
        let mut looked_up = keys.looked_up();
        let next = loop {
            if reply.bytes().len() > OUT_BYTES_HIGH {
                break Next::GoesOn;
            }
            let (parser, input) = lent.io.pending();
            let request = match parser.parse(input) {
                Ok(Some(request)) => request,
                Ok(None) => {
                    lent.io.is_incomplete = true;
                    break Next::Stays;
                }
                Err(_) => break Next::GoesHome,
            };
            let (args, bytes) = (request.args, request.consumed);
            if args.is_empty() {
                lent.io.consume(bytes);
                continue;
            }
            let Some(command) = self.find(args) else {
                break Next::GoesHome;
            };
            if !self.answer(&command, args, &mut keys, &mut reply, terms) {
                break Next::GoesHome;
            }
            let micros = self.lap();
            tally.ran(command.facts.index, micros);
            looked_up = keys.looked_up();
            if micros >= terms.closer_micros {
                tally.slow.push(Slow {
                    client: lent.id,
                    kept: Kept::new(&command.facts, args),
                    micros,
                    seconds,
                });
            }
            lent.last = Some((command.facts.name, seconds));
            lent.io.consume(bytes);
        };
        tally.looked_up += looked_up;
        *out = reply.take();
        next
    }

    /// The command, if it is one for hands.
    fn find(&mut self, args: Args<'_>) -> Option<Command> {
        let name = args.get(0).unwrap_or_default();
        if self.name != name {
            let found = self.table.find(name).copied();
            self.command = found.filter(|it| READS.contains(&it.facts.name));
            self.name.clear();
            self.name.extend_from_slice(name);
        }
        self.command.filter(|it| it.facts.takes(args.len()))
    }

    /// Answers a call; whether it could. Else nothing of it is left.
    fn answer(
        &mut self,
        command: &Command,
        args: Args<'_>,
        keys: &mut Keyspace<'_>,
        reply: &mut ReplyWriter,
        terms: &Terms,
    ) -> bool {
        let written = reply.bytes().len();
        let mut call = Call {
            args,
            keys,
            reply,
            session: &mut self.session,
            limits: terms.limits,
            may_wait: false,
            woken_by: None,
            wait: None,
            collects: false,
            effects: None,
            server: None,
        };
        let outcome = (command.handler)(&mut call);
        // Who comes to an expired key deletes it, which is the loop's to do.
        let is_answered = outcome.is_ok() && !keys.has_noted_expired();
        if !is_answered {
            reply.buffer_mut().truncate(written);
        }
        is_answered
    }

    /// The microseconds since the command began. The next one begins now.
    fn lap(&mut self) -> u64 {
        let now = self.clock.monotonic();
        let took = now.saturating_sub(self.began);
        self.began = now;
        u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
    }
}
