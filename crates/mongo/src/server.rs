//! The event loop: connections in, answers out.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{Account, Error, Options, Result};
use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicBool, Ordering};
use drumlin_doc_store::{Store, StoreOptions};
use drumlin_fs::Env;
use drumlin_fs::net::{
    Acceptor, Address, Event, Events, ListenOptions, Network, Poller, Token, Waker,
};

use crate::answer::answer_at_once;
use crate::net::connection::{Client, Next, READ_BYTES};
use crate::net::scrape::Scrapers;
use crate::net::tls::{Greeting, TlsOptions};
use crate::net::workers::{Job, Left, Workers};
use crate::page::page;
use crate::shared::Shared;

/// The listener's token; those of clients follow.
const LISTENER: Token = Token(0);
/// The token of the listener for scrapers.
const METRICS: Token = Token(1);
/// Events of one wait.
const EVENTS: usize = 256;
/// Connections that are accepted in one turn.
const ACCEPTED_AT_ONCE: usize = 64;
/// Messages of a client that are answered at once in one turn.
const AT_ONCE_MAX: u32 = 16;
/// The longest wait: a stop whose wake failed is seen then.
const TURN: Duration = Duration::from_millis(100);

/// What a server is made of.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where the data is; made if it is missing.
    pub dir: PathBuf,
    /// Where it listens; port 0 takes a free one.
    pub listen: Address,
    /// Whether clients have to say who they are.
    pub auth: bool,
    /// What TLS needs; `None` where it is not spoken.
    pub tls: Option<TlsOptions>,
    /// Where `/metrics` is served over HTTP, to everybody who reaches it; `None` for nowhere.
    pub metrics: Option<Address>,
    /// The memory budget in bytes; a quarter of the machine's where it is not said.
    pub memory: Option<usize>,
    /// Files, clock, threads.
    pub env: Env,
    /// Sockets.
    pub network: Arc<dyn Network>,
}

/// Ends a server from another thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    asked: Arc<AtomicBool>,
    waker: Arc<dyn Waker>,
}

impl Stopper {
    /// Asks the server to end, with everything durable.
    ///
    /// # Errors
    /// Of the waker; the server then ends a tenth of a second later.
    pub fn stop(&self) -> Result<()> {
        self.asked.store(true, Ordering::Release);
        self.waker.wake()
    }
}

/// See the module. One thread runs it, and answers look-ups of documents that are in memory; other commands run on a pool beside it, one
/// at a time for each connection. The thread that has answered sends the reply, so that a client costs the loop one turn a message.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    poller: Box<dyn Poller>,
    acceptor: Acceptor,
    workers: Workers,
    greeting: Option<Greeting>,
    scrapers: Option<Scrapers>,
    clients: HashMap<u64, Arc<Mutex<Client>>>,
    /// Those that wait, by the time when that ends.
    waiting: BTreeSet<(Duration, u64)>,
    next: u64,
    /// For what clients have sent and are sent.
    account: Arc<Account>,
    /// What is read from sockets goes through here.
    space: Vec<u8>,
    asked: Arc<AtomicBool>,
}

impl Server {
    /// Opens the store and listens.
    ///
    /// # Errors
    /// Of [`Store::open`] and of the socket. `InvalidArgument` where others than this machine could make the first user.
    pub fn open(options: ServerOptions) -> Result<Self> {
        let greeting = options.tls.map(|tls| {
            let settings = tls.load(&options.env).map_err(Error::invalid_argument)?;
            let mode = tls.mode;
            Ok::<_, Error>(Greeting { mode, settings })
        });
        let greeting = greeting.transpose()?;
        let engine = Options {
            env: options.env.clone(),
            memory_budget: options.memory,
            ..Options::default()
        };
        let store = Store::open(&options.dir, StoreOptions { engine })?;
        let shared = Shared::guarded(store, options.env, options.auth);
        let is_open =
            matches!(&options.listen, Address::Tcp(address) if !address.ip().is_loopback());
        if options.auth && is_open && shared.users.is_first() {
            return Err(Error::invalid_argument(
                "there is no user yet, and the first may be made by anybody: make it while the server listens at the loopback",
            ));
        }
        let poller = options.network.poller()?;
        let listener = options
            .network
            .listen(&options.listen, ListenOptions::default())?;
        let acceptor = Acceptor::new(listener, &*poller, LISTENER)?;
        let scrapers = options
            .metrics
            .map(|address| Scrapers::listen(&*options.network, &*poller, &address, METRICS));
        let scrapers = scrapers.transpose()?;
        let account = shared.store().db().budget().account("connections");
        shared.tails.set_waker(poller.waker());
        let workers = Workers::start(Arc::clone(&shared), poller.waker())?;
        Ok(Self {
            shared,
            poller,
            acceptor,
            workers,
            greeting,
            scrapers,
            clients: HashMap::new(),
            waiting: BTreeSet::new(),
            next: METRICS.0 + 1,
            account,
            space: vec![0; READ_BYTES],
            asked: Arc::default(),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> Address {
        self.acceptor.listener().local_address().clone()
    }

    /// Where it serves `/metrics`.
    pub fn metrics_address(&self) -> Option<Address> {
        self.scrapers.as_ref().map(Scrapers::address)
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            asked: Arc::clone(&self.asked),
            waker: self.poller.waker(),
        }
    }

    /// Serves until it is asked to stop; then all that was answered is durable.
    ///
    /// # Errors
    /// Of the sockets; of a sync that failed, after which nothing is served any more.
    pub fn run(mut self) -> Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        let mut failed = None;
        while !self.asked.load(Ordering::Acquire) && failed.is_none() {
            let now = self.shared.env.clock.monotonic();
            let wait = self
                .acceptor
                .wait_at_most(now)
                .map_or(TURN, |wait| wait.min(TURN));
            self.poller.wait(&mut events, Some(wait))?;
            self.acceptor
                .resume(&*self.poller, self.shared.env.clock.monotonic())?;
            if let Some(scrapers) = &mut self.scrapers {
                scrapers.resume(&*self.poller, self.shared.env.clock.monotonic())?;
            }
            let (done, failure) = self.workers.take_done();
            failed = failure;
            for (id, left) in done {
                self.answered(id, left);
            }
            self.wake_waiting();
            for event in events.iter() {
                match event.token {
                    LISTENER => self.accept()?,
                    METRICS => self.accept_scrapers()?,
                    _ if self.is_scraper_served(event) => {}
                    Token(id) => self.heard(id, event.readable),
                }
            }
        }
        self.shared.is_ending.store(true, Ordering::Relaxed);
        self.clients.clear();
        self.workers.end()?;
        match failed {
            Some(error) => Err(error),
            None => self.shared.store().sync(),
        }
    }

    fn accept(&mut self) -> Result<()> {
        for _ in 0..ACCEPTED_AT_ONCE {
            let now = self.shared.env.clock.monotonic();
            let Some(socket) = self.acceptor.accept(&*self.poller, now)? else {
                break;
            };
            let id = self.next;
            self.next += 1;
            // A client that is gone already concerns nobody else.
            if let Ok(client) = Client::new(
                socket,
                &*self.poller,
                Token(id),
                self.greeting.clone(),
                &self.account,
            ) {
                self.clients.insert(id, Arc::new(Mutex::new(client)));
                self.shared.counters.connections.add(1);
            }
        }
        self.count();
        Ok(())
    }

    fn accept_scrapers(&mut self) -> Result<()> {
        let now = self.shared.env.clock.monotonic();
        match &mut self.scrapers {
            Some(scrapers) => scrapers.accept(&*self.poller, now, &mut self.next),
            None => Ok(()),
        }
    }

    fn is_scraper_served(&mut self, event: Event) -> bool {
        let shared = &self.shared;
        self.scrapers
            .as_mut()
            .is_some_and(|scrapers| scrapers.is_served(&*self.poller, event, || page(shared)))
    }

    fn count(&self) {
        self.shared
            .connections
            .store(self.clients.len() as u64, Ordering::Relaxed);
    }

    /// Something can be done for a client.
    fn heard(&mut self, id: u64, is_readable: bool) {
        let Some(client) = self.clients.get(&id).map(Arc::clone) else {
            return;
        };
        let mut held = client.lock();
        let outcome = match (held.is_busy, is_readable) {
            (true, _) => held.ignore(&*self.poller),
            (false, true) => held.read(&mut self.space),
            (false, false) => Ok(()),
        };
        drop(held);
        match outcome {
            Ok(()) => self.go_on(id),
            Err(_) => self.close(id),
        }
    }

    fn answered(&mut self, id: u64, left: Left) {
        let Some(client) = self.clients.get(&id) else {
            // It may have begun to wait after it was forgotten.
            return self.shared.forget(id);
        };
        match left {
            Left::Rest => {}
            Left::Wait {
                reply,
                message,
                pause,
            } => {
                // News that came between its look and now is not waited for.
                let pause = match self.shared.tails.has_news(id) {
                    true => Duration::ZERO,
                    false => pause,
                };
                let until = self.shared.env.clock.monotonic().saturating_add(pause);
                self.shared.counters.bytes_out.add(reply.len() as u64);
                client.lock().wait(reply, message, until);
                self.waiting.insert((until, id));
            }
            Left::Close => return self.close(id),
        }
        self.go_on(id);
    }

    /// Sends, and gives the next message to the pool, unless it can be answered at once.
    fn go_on(&mut self, id: u64) {
        let Some(client) = self.clients.get(&id) else {
            return;
        };
        let mut held = client.lock();
        if held.send().is_err() {
            drop(held);
            return self.close(id);
        }
        let mut at_once = 0;
        let job = loop {
            let message = match held.next() {
                Next::Message(message) => message,
                Next::Wait => break None,
                Next::Close(_) => {
                    drop(held);
                    return self.close(id);
                }
            };
            let counters = &self.shared.counters;
            counters.requests.add(1);
            counters.bytes_in.add(message.len() as u64);
            let reply = match at_once < AT_ONCE_MAX {
                true => answer_at_once(&self.shared, id, &message),
                false => None,
            };
            let Some(reply) = reply else {
                break Some(Job {
                    connection: id,
                    client: Arc::clone(client),
                    message,
                    has_waited: false,
                });
            };
            at_once += 1;
            counters.bytes_out.add(reply.len() as u64);
            held.reply(reply);
        };
        let outcome = held.update_interest(&*self.poller, Token(id));
        drop(held);
        if let Some(job) = job {
            self.workers.give(job);
        }
        if outcome.is_err() {
            self.close(id);
        }
    }

    /// Has those answered that have waited long enough, or that there is news for, and took the reply before.
    fn wake_waiting(&mut self) {
        let now = self.shared.env.clock.monotonic();
        for id in self.shared.tails.take_news() {
            let client = self.clients.get(&id);
            if let Some(until) = client.and_then(|client| client.lock().hurry(now)) {
                self.waiting.remove(&(until, id));
                self.waiting.insert((now, id));
            }
        }
        while let Some((_, id)) = self.waiting.first().copied().filter(|(at, _)| *at <= now) {
            self.waiting.pop_first();
            let Some(client) = self.clients.get(&id) else {
                continue;
            };
            let mut held = client.lock();
            if let Some(message) = held.take_waited(now.saturating_add(TURN)) {
                drop(held);
                self.workers.give(Job {
                    connection: id,
                    client: Arc::clone(client),
                    message,
                    has_waited: true,
                });
            } else if let Some(until) = held.waits_until() {
                self.waiting.insert((until, id));
            }
        }
    }

    fn close(&mut self, id: u64) {
        if let Some(client) = self.clients.remove(&id) {
            // Who answers its message holds it until then: the poller tells nothing of it meanwhile.
            let mut held = client.lock();
            drop(held.ignore(&*self.poller));
            held.say_goodbye();
            if let Some(until) = held.waits_until() {
                self.waiting.remove(&(until, id));
            }
        }
        self.shared.forget(id);
        self.count();
    }
}
