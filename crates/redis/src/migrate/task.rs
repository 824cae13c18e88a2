//! The thread that sends the keys.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use drumlin::{Error, ErrorKind, View};
use drumlin_fs::Env;
use drumlin_fs::net::{Network, Waker};
use drumlin_rdb::dump;
use drumlin_redis_store::{Failure, Keyspace, Outcome, Overlay, ReadFrom, Store};
use drumlin_resp::encode_command;
use parking_lot::Mutex;

use super::request::Request;
use super::state::Delivered;
use crate::persist::values;
use crate::wire::{Terms, Wire};

const CONNECTING: &str = "IOERR error or timeout connecting to the client";
const WRITING: &str = "IOERR error or timeout writing to target instance";
const READING: &str = "IOERR error or timeout reading to target instance";

/// See the module.
pub(super) struct Task {
    pub(super) request: Arc<Request>,
    pub(super) env: Env,
    pub(super) network: Arc<dyn Network>,
    pub(super) store: Arc<Store>,
    /// The moment whose values are sent.
    pub(super) view: View,
    pub(super) letter: Arc<Mutex<Option<Delivered>>>,
    pub(super) stops: Arc<AtomicBool>,
    pub(super) waker: Arc<dyn Waker>,
}

impl Task {
    /// Sends the keys, and tells the loop.
    pub(super) fn run(self) {
        let began = self.env.clock.monotonic();
        let mut delivered = Delivered::default();
        delivered.error = self.deliver(&mut delivered).err();
        let took = self.env.clock.monotonic().saturating_sub(began);
        delivered.micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        *self.letter.lock() = Some(delivered);
        // The loop looks at the letters after every wait.
        drop(self.waker.wake());
    }

    /// The error is the reply.
    fn deliver(&self, delivered: &mut Delivered) -> Result<(), String> {
        let request = &*self.request;
        let terms = Terms {
            clock: Arc::clone(&self.env.clock),
            stops: Arc::clone(&self.stops),
            timeout: request.timeout,
            peer: "target",
        };
        let (host, port) = &request.target;
        let mut wire = Wire::connect(&*self.network, (host, *port), &terms)
            .map_err(|error| refused(&error).to_owned())?;
        let mut greeting = Vec::new();
        if !request.auth.is_empty() {
            let auth = request.auth.iter().map(Vec::as_slice);
            let words: Vec<&[u8]> = std::iter::once(&b"AUTH"[..]).chain(auth).collect();
            encode_command(&mut greeting, &words);
        }
        encode_command(&mut greeting, &["SELECT", &request.target_db.to_string()]);
        let mut sent = Vec::new();
        let mut written = wire.send(&greeting);
        for (place, key) in request.keys.iter().enumerate() {
            let command = self.command(key).map_err(|failure| failure.to_string())?;
            if let Some(command) = command {
                written = written.and_then(|()| wire.send(&command));
                sent.push(place);
            }
        }
        written.map_err(|_| WRITING.to_owned())?;
        let mut answer = || {
            let line = wire.line().map_err(|_| READING.to_owned())?;
            Ok(line.strip_prefix('-').map(str::to_owned))
        };
        let mut refusal = None;
        for _ in 0..1 + usize::from(!request.auth.is_empty()) {
            let refused = answer()?;
            refusal = refusal.or(refused);
        }
        let is_known = refusal.is_none();
        for place in sent {
            let refused = match answer() {
                Ok(refused) => refused,
                // What the target said of another key counts more.
                Err(error) => return Err(refusal.map_or(error, |text| told(&text))),
            };
            let is_taken = refused.is_none() || drumlin_base::bug!("redis-migrate-unread");
            if is_known && is_taken {
                delivered.taken.push(place);
            }
            refusal = refusal.or(refused);
        }
        refusal.map_or(Ok(()), |text| Err(told(&text)))
    }

    /// The command that makes `key` there; none if it is gone or has expired.
    fn command(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let request = &*self.request;
        let clock_ms = self.env.clock.unix_time().as_millis();
        let now_ms = self
            .store
            .now_ms(u64::try_from(clock_ms).unwrap_or(u64::MAX));
        let mut overlay = Overlay::new();
        let keys = Keyspace::new(
            &self.store,
            &self.view,
            &mut overlay,
            request.db,
            now_ms,
            ReadFrom::Disk,
        );
        let Some(record) = keys.lookup(key)? else {
            return Ok(None);
        };
        let ttl = record
            .expire_ms()
            .map_or(0, |ms| ms.saturating_sub(now_ms).max(1));
        let value = values::whole(&keys, key, record.kind())?;
        let payload = dump::encode_for_most(&value).map_err(Failure::Engine)?;
        let name: &[u8] = match request.asks {
            true => b"RESTORE-ASKING",
            false => b"RESTORE",
        };
        let ttl = ttl.to_string();
        let mut words = vec![name, key, ttl.as_bytes(), &payload];
        if request.replaces {
            words.push(b"REPLACE");
        }
        let mut command = Vec::new();
        encode_command(&mut command, &words);
        Ok(Some(command))
    }
}

/// The reply where there is no connection. Redis learns that one was refused when it writes.
fn refused(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::TimedOut => CONNECTING,
        _ => WRITING,
    }
}

fn told(text: &str) -> String {
    format!("ERR Target instance replied with error: {text}")
}
