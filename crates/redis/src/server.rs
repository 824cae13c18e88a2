//! The event loop.
//!
//! One thread runs all commands. It reads what has come from the clients, runs it as one round, writes the changes of the
//! round as one batch, and sends the replies. It never waits for the disk: a command that needs a block goes to a thread
//! beside it and runs again, and so does a batch that the engine would not take at once. Then writes wait, and reads go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drumlin::{Error, Result, SeqNo, WriteBatch};
use drumlin_fs::Env;
use drumlin_fs::net::{Address, Events};
use drumlin_redis_store::{Overlay, ReadFrom};
use drumlin_resp::RequestLimits;

use crate::accounts;
use crate::cold::{Answer, ColdDone, ColdJob};
use crate::config::Fsync;
use crate::dispatch::{Dispatcher, Ran, tell};
use crate::expire::expire_due;
use crate::hands::lend;
use crate::hands::start;
use crate::io::{Gate, Hold, Io, OUT_BYTES_HIGH};
use crate::life;
use crate::listen::listen;
use crate::log::{LogSink, watch};
use crate::memory::tend as memory;
use crate::metrics::figures::{Counts, Figures};
use crate::metrics::scrape;
use crate::migrate::finish::finish;
use crate::migrate::tend as migrate;
use crate::net::Net;
use crate::opening::open_store;
use crate::options::{ServerOptions, Stopper};
use crate::pause;
use crate::permit;
use crate::prefetch;
use crate::ran;
use crate::replica::tend as replica;
use crate::replicas::hand_over;
use crate::replicas::tend as replicas;
use crate::round::{Round, Terms};
use crate::session::Session;
use crate::state::{ServerState, Shutdown};
use crate::table::Table;
use crate::tls;
use crate::traffic::{self, unblock};
use crate::waits;
use crate::woken::run_again;
use crate::workers::{Done, Job, Workers};
use crate::writer::Writer;

/// Commands of a client in one round, and of all.
const CLIENT_COMMANDS_MAX: usize = 512;
const ROUND_COMMANDS_MAX: usize = 4_096;
/// Events of one wait.
const EVENTS_MAX: usize = 1_024;
/// Time between looks at what is due.
const CRON: Duration = Duration::from_millis(100);
/// Time between looks at how the engine stands.
const LOOK: Duration = Duration::from_secs(1);
/// Time between looks at a write that the end waits for.
const STEP: Duration = Duration::from_millis(10);
/// Tries to run a command from memory before it may read on the loop.
const WARMED_MAX: u32 = 2;

/// See the module.
#[derive(Debug)]
pub struct Server {
    env: Env,
    state: ServerState,
    table: Arc<Table>,
    round: Option<Round>,
    cold: Vec<ColdJob>,
    workers: Workers,
    writer: Writer,
    cron_due: Duration,
    look_due: Duration,
    asked_to_stop: Arc<AtomicBool>,
}

impl Server {
    /// Opens the store and listens.
    ///
    /// # Errors
    /// Of the engine, of the sockets; `InvalidArgument` for a configuration that makes no sense.
    pub fn open(options: ServerOptions) -> Result<Self> {
        let ServerOptions {
            config,
            env,
            network,
        } = options;
        let users = accounts::load(&config, &env)?;
        let table = Table::new(config.renames()).map_err(Error::invalid_argument)?;
        let tls = tls::load(&config, &env).map_err(Error::invalid_argument)?;
        let store = Arc::new(open_store(&config, &env)?);
        let poller = network.poller()?;
        let doors = listen(&config, &*network, &*poller)?;
        let table = Arc::new(table);
        let waker = poller.waker();
        let beside = (&store, &table);
        let hands = start::start(&config, (&env, &*network), beside, &waker)?;
        let workers = Workers::start(&env, Arc::clone(&store), Arc::clone(&table), waker)?;
        let writer = Writer::new(&store);
        let commands = Arc::new(table.known());
        let net = Net::new(poller, doors);
        let mut state = ServerState::new(store, commands, config, &env, net, network);
        state.hands = hands;
        state.tls = tls;
        state.users = users;
        replica::begin(&mut state)?;
        state.scripts.load_stored(&state.store)?;
        Ok(Self {
            env,
            state,
            table,
            round: None,
            cold: Vec::new(),
            workers,
            writer,
            cron_due: Duration::ZERO,
            look_due: Duration::ZERO,
            asked_to_stop: Arc::default(),
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<Address> {
        let doors = self.state.net.doors.iter();
        let listeners = doors.map(|door| door.acceptor.listener());
        listeners
            .map(|listener| listener.local_address().clone())
            .collect()
    }

    /// Has it write its log to `sink`.
    pub fn log_to(&mut self, sink: Arc<dyn LogSink>) {
        self.state.journal.go_to(sink);
    }

    /// A handle that ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            asked: Arc::clone(&self.asked_to_stop),
            waker: self.state.net.poller.waker(),
        }
    }

    /// Serves until it is asked to end.
    ///
    /// # Errors
    /// Of the poller; a failed sync under `appendfsync always`, as then nobody may be answered any more.
    pub fn run(mut self) -> Result<()> {
        self.state.set_time(self.env.clock.unix_time());
        life::began(&self.state);
        let mut events = Events::with_capacity(EVENTS_MAX);
        while self.state.shutdown.is_none() && !self.asked_to_stop.load(Ordering::Acquire) {
            let now = self.env.clock.monotonic();
            self.state
                .net
                .poller
                .wait(&mut events, Some(self.wait_at_most(now)))?;
            self.turn(&events)?;
        }
        self.shut_down()
    }

    fn wait_at_most(&self, now: Duration) -> Duration {
        if !self.state.net.runnable.is_empty() {
            return Duration::ZERO;
        }
        let timer = self
            .state
            .net
            .timers
            .first()
            .map(|(at, _)| at.saturating_sub(now));
        let doors = self.state.net.doors.iter();
        let paused = doors
            .filter_map(|door| door.acceptor.wait_at_most(now))
            .min();
        let cron = self.cron_due.saturating_sub(now);
        timer.unwrap_or(cron).min(cron).min(paused.unwrap_or(cron))
    }

    /// One turn of the loop.
    fn turn(&mut self, events: &Events) -> Result<()> {
        let now = self.env.clock.monotonic();
        self.state.set_time(self.env.clock.unix_time());
        self.hear_workers()?;
        lend::hear(&mut self.state)?;
        if !self.writer.is_busy() {
            finish(&mut self.state, &mut self.round)?;
        }
        self.state.net.greetings_left = traffic::GREETINGS_A_TURN;
        for event in events.iter() {
            if let Some(door) = self.state.net.door(event.token) {
                traffic::accept(&mut self.state, door, now)?;
                continue;
            }
            if scrape::is_served(&mut self.state, event) {
                continue;
            }
            if event.readable {
                traffic::read(&mut self.state, event.token.0, now);
            }
            if event.writable {
                traffic::flush(&mut self.state, event.token.0);
            }
        }
        for door in &mut self.state.net.doors {
            door.acceptor.resume(&*self.state.net.poller, now)?;
        }
        pause::end(&mut self.state, now);
        let ran = self.run_commands(now);
        pause::end(&mut self.state, now);
        for (id, error) in std::mem::take(&mut self.state.unblocks) {
            waits::give_up(&mut self.state, id, error);
        }
        waits::end(&mut self.state, now);
        if now >= self.cron_due {
            self.cron(now);
        }
        self.end_round();
        memory::cut_largest(&mut self.state);
        memory::charge(&self.state);
        self.note_turn(now, ran);
        let is_written = !self.writer.is_busy();
        hand_over::tend(&mut self.state, is_written, now);
        replica::tend(&mut self.state, is_written, now);
        replicas::tend(&mut self.state, is_written, now);
        if is_written {
            migrate::tend(&mut self.state);
        }
        lend::lend(&mut self.state, is_written);
        // After a replica has noted how far its primary's commands have come.
        traffic::end_over(&mut self.state);
        Ok(())
    }

    // Commands.

    /// Runs what has come; how many commands ran.
    fn run_commands(&mut self, now: Duration) -> usize {
        let mut left = ROUND_COMMANDS_MAX;
        self.state.observer.begin();
        let net = &self.state.net;
        let sent = net.runnable.iter().filter_map(|id| {
            let (io, session) = (net.ios.get(&id)?, self.state.clients.get(id)?);
            let runs = io.may_run() && session.multi.is_none();
            runs.then(|| (session.db, io.received()))
        });
        let keys = prefetch::keys(&self.table, sent);
        prefetch::read(&self.state, &mut self.round, &keys);
        // Where a script that runs for long finds them too.
        self.state.net.turn = std::mem::take(&mut self.state.net.runnable);
        let bytes_max = memory::turn_bytes_max(&self.state);
        while left > 0
            && self.state.net.crowd.bytes() <= bytes_max
            && let Some(id) = self.state.net.turn.pop_first()
        {
            left -= self.run_client(id, now, left.min(CLIENT_COMMANDS_MAX));
        }
        // Those who had no turn come before those who want another.
        let net = &mut self.state.net;
        let mut rest = std::mem::take(&mut net.turn);
        rest.append(std::mem::take(&mut net.runnable));
        net.runnable = rest;
        ROUND_COMMANDS_MAX - left
    }

    /// Runs up to `most` commands of a client; how many ran.
    fn run_client(&mut self, id: u64, now: Duration, most: usize) -> usize {
        let Self {
            state,
            table,
            round,
            ..
        } = self;
        let may_run = |io: &Io| io.may_run();
        if !state.net.ios.get(&id).is_some_and(may_run) {
            return 0;
        }
        let Some(mut session) = state.clients.begin(id) else {
            return 0;
        };
        // One that does not take its replies has no turn until it does.
        let takes = session.out.len() <= OUT_BYTES_HIGH;
        // Apart while its commands run: others may be served meanwhile.
        let Some(mut io) = takes.then(|| state.net.ios.remove(&id)).flatten() else {
            state.clients.end(session);
            return 0;
        };
        if io.round_replies == 0 {
            io.round_from = session.out.len();
            state.net.participants.push(id);
        }
        let mut ran = 0;
        let mut are_reads = true;
        let mut blocks = None;
        let terms_of = |io: &Io| Terms {
            from: match io.warmed > WARMED_MAX {
                true => ReadFrom::Disk,
                false => ReadFrom::Memory,
            },
            may_write: !self.writer.is_busy(),
        };
        let may_go_on = |it: &Session| !it.closes && !it.is_killed;
        while ran < most && may_go_on(&session) && session.out.len() <= OUT_BYTES_HIGH {
            let terms = terms_of(&io);
            let (parser, input) = io.pending();
            let request = match parser.parse(input) {
                Ok(Some(request)) => request,
                Ok(None) => {
                    io.is_incomplete = true;
                    break;
                }
                Err(error) => {
                    let out = std::mem::take(&mut session.out);
                    let mut reply = drumlin_resp::ReplyWriter::append_to(out, session.protocol);
                    reply.protocol_error(error);
                    session.out = reply.take();
                    session.closes = true;
                    break;
                }
            };
            let bytes = request.consumed;
            if request.args.is_empty() {
                if session.is_replica {
                    state.replicas.is_alive(id, state.now_seconds);
                }
                traffic::consume(state, &session, &mut io, bytes);
                continue;
            }
            let round = round.get_or_insert_with(|| Round::next(state));
            let mut dispatcher = Dispatcher {
                server: state,
                table,
                round,
                terms,
                exec_failed: false,
            };
            let sees = !dispatcher.round.overlay.is_empty();
            match dispatcher.dispatch(&mut session, request.args) {
                Ran::Answered { wrote } => {
                    io.round_saw |= sees || wrote;
                    ran += 1;
                    are_reads = are_reads && lend::is_read(session.last_command);
                    traffic::consume(state, &session, &mut io, bytes);
                    io.round_replies += 1;
                    io.round_wrote |= wrote;
                }
                Ran::Waits(kept, wait) => {
                    io.consume(bytes);
                    io.hold = Hold::Blocked;
                    blocks = Some((kept, wait));
                    break;
                }
                Ran::Cold(cold) => {
                    state.counters.cold += 1;
                    io.hold = Hold::Cold { bytes };
                    self.cold.push(ColdJob {
                        client: id,
                        // Who is told of changes has its command run where they are told.
                        is_part: cold.is_part || session.tracking.is_some(),
                        kept: cold.kept,
                        db: cold.db,
                        protocol: session.protocol,
                        limits: state.limits,
                        clock_ms: state.now_micros / 1_000,
                    });
                    break;
                }
                Ran::Later => {
                    io.hold = Hold::Later;
                    break;
                }
                Ran::Paused => {
                    io.hold = Hold::Paused;
                    session.is_paused = true;
                    state.paused.insert(id);
                    break;
                }
            }
            io.parser.set_limits(RequestLimits {
                bulk_bytes_max: state.limits.string_bytes_max,
                authenticated: !permit::needs_auth(state, &session),
            });
        }
        io.compact();
        if memory::is_dense(state) {
            io.slim();
        }
        io.count_with(&mut state.net.crowd, &session.out);
        lend::note(state, (id, &mut io), ran, are_reads);
        if ran == most {
            state.net.runnable.insert(id);
        }
        state.net.ios.insert(id, io);
        session.last_seconds = state.now_seconds;
        state.clients.end(session);
        if let Some((kept, wait)) = blocks {
            waits::begin(state, id, (kept, wait), now);
        }
        ran
    }

    // Waiting for keys.

    /// Runs the commands of those who wait for keys that changed, in the order in which they came.
    fn serve_waiting(&mut self) {
        if self.writer.is_busy() {
            return;
        }
        while let Some((key, clients)) = self.state.waiting.next_ready() {
            for id in clients {
                self.serve(id, &key);
            }
        }
    }

    fn serve(&mut self, id: u64, key: &[u8]) {
        let Some(mut session) = self.state.clients.begin(id) else {
            return;
        };
        let Some(blocked) = session.blocked.take() else {
            self.state.clients.end(session);
            return;
        };
        let round = self.round.take();
        let mut round = round.unwrap_or_else(|| Round::next(&self.state));
        let written = session.out.len();
        let mark = round.overlay.mark();
        let (state, table) = (&mut self.state, &self.table);
        let is_answered = run_again(state, table, &mut round, &mut session, &blocked, key);
        session.blocked = Some(blocked);
        if is_answered {
            unblock(&mut self.state, &mut session);
            if let Some(io) = self.state.net.ios.get_mut(&id) {
                if io.round_replies == 0 {
                    io.round_from = written;
                    self.state.net.participants.push(id);
                }
                io.round_replies += 1;
                io.round_wrote = true;
            }
        }
        tell(&mut self.state, &mut session, &mut round, mark);
        self.round = Some(round);
        self.state.clients.end(session);
    }

    // The end of a round.

    fn end_round(&mut self) {
        self.serve_waiting();
        if let Some(round) = self.round.take() {
            self.state.counters.rounds += 1;
            self.write_round(round.overlay);
        }
        if !self.writer.is_busy() {
            let state = &mut self.state;
            state.replicas.commit();
            if state.tracker.is_on() {
                let most = state.config.number("tracking-table-max-keys");
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                state.tracker.tell(&mut state.clients, most);
            }
            if !self.cold.is_empty() {
                self.workers.give(Job::Read(std::mem::take(&mut self.cold)));
            }
        } else {
            self.state.tracker.wait();
        }
        let is_always = self.state.config.fsync() == Fsync::Always;
        let asked = std::mem::take(&mut self.state.asks_sync);
        let gate = self.writer.gate(is_always || asked);
        for id in std::mem::take(&mut self.state.net.participants) {
            if let Some(io) = self.state.net.ios.get_mut(&id) {
                if io.leave_round() {
                    io.gate = gate;
                }
                traffic::flush(&mut self.state, id);
            }
        }
        if matches!(gate, Gate::Durable(_)) {
            self.writer.sync(&self.workers);
        }
        if std::mem::take(&mut self.state.asks_compaction) {
            self.state.compactions += 1;
            self.workers.give(Job::Compact);
        }
        if std::mem::take(&mut self.state.asks_figures) {
            self.state.counts_entries = true;
            self.look(Some(self.state.now_micros / 1_000));
        }
        for id in self.state.clients.take_stirred() {
            lend::call_one(&mut self.state, id);
            traffic::flush(&mut self.state, id);
        }
    }

    fn write_round(&mut self, mut overlay: Overlay) {
        if overlay.is_empty() {
            // One that read beside a write on its way has seen the moment before that.
            if !self.writer.is_busy() || drumlin_base::bug!("redis-nodes-of-an-earlier-moment") {
                overlay.end_unchanged();
                self.state.spare.replace(Some(overlay));
            }
            return;
        }
        self.state.migrations.see(&overlay);
        match self.writer.write(&self.state.store, &self.workers, overlay) {
            Ok(Some(written)) => drop(self.state.spare.replace(Some(written))),
            Ok(None) => self.state.counters.stalls += 1,
            Err(error) => life::fail_round(&mut self.state, &error),
        }
    }

    // Threads beside the loop.

    fn hear_workers(&mut self) -> Result<()> {
        for done in self.workers.take_done() {
            match done {
                Done::Written(batch, outcome) => self.written(batch, outcome),
                Done::Synced(outcome) => self.synced(outcome)?,
                Done::Compacted(outcome) => {
                    self.state.compactions -= 1;
                    if let Err(error) = outcome {
                        self.state.last_error = Some(error.to_string());
                    }
                }
                Done::Read(all) => all.into_iter().for_each(|it| self.warmed(it)),
                Done::Looked(figures) => self.looked(figures),
            }
        }
        Ok(())
    }

    fn looked(&mut self, figures: Figures) {
        let state = &mut self.state;
        let used = figures.memory_bytes;
        state.observer.memory_peak = state.observer.memory_peak.max(used);
        if figures.keys.is_some() {
            scrape::answer_all(state, &figures);
        }
        if figures.has_entries || !state.counts_entries {
            state.figures = figures;
        }
    }

    fn written(&mut self, batch: WriteBatch, outcome: Result<SeqNo>) {
        let written = self.writer.written(&self.state.store, batch, outcome);
        let is_written = written.is_ok();
        match written {
            Ok(overlay) => {
                let is_new = self.state.spare.get_mut().is_none();
                if is_new || !drumlin_base::bug!("redis-nodes-of-an-earlier-moment") {
                    self.state.spare.replace(overlay);
                }
                self.state.replicas.commit();
            }
            Err(_) => {
                self.state.replication.forget_place();
                self.state.replicas.drop_pending();
            }
        }
        let mut syncs = self.state.config.fsync() == Fsync::Always;
        let mut gone = Vec::new();
        for (id, io) in &mut self.state.net.ios {
            if let Gate::Commit { lasts } = io.gate {
                // Replies that tell of writes which are not there are never sent.
                if !is_written {
                    gone.push(*id);
                }
                io.gate = self.writer.gate(lasts);
                syncs |= io.gate != Gate::Open;
                self.state.net.participants.push(*id);
            }
            if io.hold == Hold::Later {
                io.hold = Hold::None;
                self.state.net.participants.push(*id);
            }
        }
        gone.into_iter()
            .for_each(|id| traffic::close(&mut self.state, id));
        // The table of sockets has no order.
        self.state.net.participants.sort_unstable();
        if syncs {
            self.writer.sync(&self.workers);
        }
    }

    fn synced(&mut self, outcome: Result<SeqNo>) -> Result<()> {
        let is_always = self.state.config.fsync() == Fsync::Always;
        let durable = match self.writer.synced(outcome) {
            Ok(durable) => durable,
            Err(error) if is_always => {
                life::failed(&mut self.state, "the log was not synced", &error);
                return Err(error);
            }
            // The engine takes no more writes; they are answered with its error. Nobody waits but for SAVE.
            Err(error) => {
                life::failed(&mut self.state, "the log was not synced", &error);
                let waits = |io: &Io| matches!(io.gate, Gate::Durable(_));
                let waiting = self.state.net.ios.iter().filter(|(_, io)| waits(io));
                let ids: Vec<u64> = waiting.map(|(id, _)| *id).collect();
                ids.into_iter()
                    .for_each(|id| traffic::close(&mut self.state, id));
                return Ok(());
            }
        };
        let mut waits = false;
        for (id, io) in &mut self.state.net.ios {
            match io.gate {
                Gate::Durable(seqno) if seqno <= durable => {
                    io.gate = Gate::Open;
                    self.state.net.participants.push(*id);
                }
                Gate::Durable(_) => waits = true,
                Gate::Open | Gate::Commit { .. } => {}
            }
        }
        self.state.net.participants.sort_unstable();
        if waits {
            self.writer.sync(&self.workers);
        }
        Ok(())
    }

    fn warmed(&mut self, (id, answer): ColdDone) {
        let (Some(io), Some(session)) = (
            self.state.net.ios.get_mut(&id),
            self.state.clients.get_mut(id),
        ) else {
            return;
        };
        let Hold::Cold { bytes } = io.hold else {
            return;
        };
        io.hold = Hold::None;
        match answer {
            Some(answer) => {
                session.out.extend_from_slice(&answer.reply);
                io.consume(bytes);
                io.compact();
                self.answered_beside(id, &answer);
            }
            None => io.warmed += 1,
        }
        self.state.net.runnable.insert(id);
        self.state.net.participants.push(id);
    }

    /// Counts a command that was answered beside the loop.
    fn answered_beside(&mut self, id: u64, answer: &Answer) {
        let Some(session) = self.state.clients.begin(id) else {
            return;
        };
        let (facts, args) = (&answer.kept.facts, answer.kept.args.args());
        let state = &mut self.state;
        state.counters.counted.commands += 1;
        state.counters.counted.looked_up += answer.looked_up;
        let ended = (answer.micros, answer.error.is_some());
        ran::ended(state, &session, facts, args, ended);
        if let Some(text) = &answer.error {
            ran::error(state, text);
        }
        ran::monitor(state, &session, facts, args);
        self.state.clients.end(session);
    }

    // From time to time.

    /// Has a thread gather how the engine stands.
    fn look(&self, keys_at_ms: Option<u64>) {
        self.workers.give(Job::Look(Counts {
            entries: self.state.counts_entries,
            keys_at_ms,
        }));
    }

    /// Counts a turn in which commands ran.
    fn note_turn(&mut self, began: Duration, ran: usize) {
        if ran > 0 {
            let took = self.env.clock.monotonic().saturating_sub(began);
            life::turned(&mut self.state, took, ran);
        }
    }

    fn cron(&mut self, now: Duration) {
        self.cron_due = now + CRON;
        let state = &mut self.state;
        lend::collect(state);
        let rates = &mut state.observer.rates;
        rates.commands.look(now, state.counters.all_commands());
        rates.bytes_in.look(now, state.counters.bytes_in);
        rates.bytes_out.look(now, state.counters.bytes_out);
        watch::look(state);
        scrape::end_late(state, now);
        traffic::end_greetings(state, now);
        traffic::end_strangers(state, now);
        traffic::end_behind(state, now);
        if now >= self.look_due {
            self.look_due = now + LOOK;
            self.look(None);
        }
        if !self.writer.is_busy() && self.state.expires() {
            self.expire();
        }
        if self.state.config.fsync() == Fsync::EverySecond {
            self.writer.sync_if_due(&self.workers, now);
        }
        traffic::end_idle(&mut self.state, now);
    }

    fn expire(&mut self) {
        let began = self.env.clock.monotonic();
        let state = &mut self.state;
        let store = Arc::clone(&state.store);
        let round = self.round.get_or_insert_with(|| Round::next(state));
        if expire_due(state, &store, round) {
            self.cron_due = Duration::ZERO;
        }
        let took = self.env.clock.monotonic().saturating_sub(began);
        let seconds = state.now_seconds;
        state.observer.worked("expire-cycle", seconds, took);
    }

    fn shut_down(mut self) -> Result<()> {
        lend::call_home(&mut self.state);
        life::ends(&mut self.state);
        self.state.replication.end_attempt()?;
        self.state.migrations.end()?;
        self.end_round();
        self.state.replicas.end();
        while self.writer.is_busy() {
            // Not at the poller, which tells again and again of clients that are not served any more.
            self.env.clock.sleep(STEP);
            self.hear_workers()?;
        }
        let saves = self.state.shutdown != Some(Shutdown::NoSave);
        let Self {
            workers, mut state, ..
        } = self;
        state.net.ios.clear();
        std::mem::take(&mut state.hands).end()?;
        workers.end()?;
        if saves {
            state.store.db().sync_wal()?;
        }
        Ok(())
    }
}
