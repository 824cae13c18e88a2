//! The table of tracked keys, and the messages about those that changed.
//!
//! Changes are told at the end of their round, once the engine has taken it: a client that hears of a change reads what
//! came after it, and is remembered again for the next one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use drumlin_redis_store::Overlay;
use drumlin_resp::{Protocol, ReplyWriter};

use crate::clients::Clients;
use crate::tracking::options::Tracking;

/// The channel of a client that is told in the protocol of old.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// A key's place in the table, its allocation and the set of its readers; and a reader's place in there. A set of up to 11
/// is one allocation of 104 bytes.
const KEY_BYTES: usize = 180;
const ITEM_BYTES: usize = 16;

/// What changed.
#[derive(Debug)]
enum Change {
    /// A key, by a client; 0 for none. And those who had read it.
    Key(Vec<u8>, u64, BTreeSet<u64>),
    /// Perhaps all keys.
    All,
}

/// Keys that changed, with the last client that changed them.
type Changed = BTreeMap<Vec<u8>, u64>;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    clients: BTreeSet<u64>,
    /// Who has read a key. Keys of all databases are together, as in Redis.
    readers: HashMap<Vec<u8>, BTreeSet<u64>>,
    items: usize,
    /// Bytes of the keys in `readers`.
    key_bytes: usize,
    /// Clients by the prefixes of the keys that they are told of.
    prefixes: BTreeMap<Vec<u8>, BTreeSet<u64>>,
    /// Changes that nobody was told of yet.
    changes: Vec<Change>,
    /// The engine has not taken them at once: others may have read the old values meanwhile.
    is_late: bool,
}

impl Tracker {
    /// Whether anybody is to be told of anything, or was to be.
    pub(crate) fn is_on(&self) -> bool {
        !(self.clients.is_empty() && self.readers.is_empty())
    }

    /// Numbers of clients, keys, pairs of them, and prefixes.
    pub(crate) fn counts(&self) -> [usize; 4] {
        let keys = self.readers.len();
        [self.clients.len(), keys, self.items, self.prefixes.len()]
    }

    /// Bytes of the table, about.
    pub(crate) fn bytes(&self) -> usize {
        self.readers.len() * KEY_BYTES + self.items * ITEM_BYTES + self.key_bytes
    }

    /// A client begins to be told, also of keys with `prefixes`.
    pub(crate) fn begin(&mut self, client: u64, prefixes: &BTreeSet<Vec<u8>>) {
        self.clients.insert(client);
        for prefix in prefixes {
            let clients = self.prefixes.entry(prefix.clone()).or_default();
            clients.insert(client);
        }
    }

    /// A client is told no more. The keys that it has read are forgotten as they change.
    pub(crate) fn end(&mut self, client: u64, tracking: &Tracking) {
        self.clients.remove(&client);
        for prefix in &tracking.prefixes {
            if let Some(clients) = self.prefixes.get_mut(prefix) {
                clients.remove(&client);
                if clients.is_empty() {
                    self.prefixes.remove(prefix);
                }
            }
        }
    }

    /// A client has read a key.
    pub(crate) fn has_read(&mut self, client: u64, key: &[u8]) {
        let clients = match self.readers.get_mut(key) {
            Some(clients) => clients,
            None => {
                self.key_bytes += key.len();
                self.readers.entry(key.to_vec()).or_default()
            }
        };
        self.items += usize::from(clients.insert(client));
    }

    /// Takes over the changes of `overlay` that are not noted yet: those of `client`, and keys that expired.
    pub(crate) fn note(&mut self, overlay: &mut Overlay, client: u64) {
        let [touched, gone] = overlay.take_untold();
        touched.for_each(|(_, key)| self.changed(key, client));
        gone.for_each(|(_, key)| self.changed(key, 0));
    }

    /// A client, or the server if it is 0, changed a key.
    pub(crate) fn changed(&mut self, key: &[u8], client: u64) {
        if self.is_on() && !drumlin_base::bug!("redis-untold-change") {
            let readers = self.take_readers(key);
            self.changes
                .push(Change::Key(key.to_vec(), client, readers));
        }
    }

    /// All keys of a database are gone.
    pub(crate) fn cleared(&mut self) {
        if self.is_on() {
            self.changes.push(Change::All);
        }
    }

    /// Notes that the changes have to wait for the engine.
    pub(crate) fn wait(&mut self) {
        self.is_late |= !self.changes.is_empty();
    }

    /// Tells of what changed, and of keys beyond `keys_max`, which are remembered no more; 0 is no limit.
    pub(crate) fn tell(&mut self, clients: &mut Clients, keys_max: usize) {
        let mut broadcast = BTreeMap::<Vec<u8>, Changed>::new();
        let is_late = std::mem::take(&mut self.is_late);
        for change in std::mem::take(&mut self.changes) {
            match change {
                Change::Key(key, by, mut readers) => {
                    if is_late {
                        readers.append(&mut self.take_readers(&key));
                    }
                    tell_readers(clients, &key, by, readers);
                    let with = |prefix: &&Vec<u8>| key.starts_with(prefix);
                    for prefix in self.prefixes.keys().filter(with) {
                        let changed = broadcast.entry(prefix.clone()).or_default();
                        changed.insert(key.clone(), by);
                    }
                }
                Change::All => {
                    for client in &self.clients {
                        send(clients, *client, None);
                    }
                    self.readers.clear();
                    self.items = 0;
                    self.key_bytes = 0;
                }
            }
        }
        for (prefix, changed) in broadcast {
            for client in self.prefixes.get(&prefix).into_iter().flatten() {
                let tells_own = !tracking(clients, *client).is_some_and(|it| it.no_loop);
                let wanted = changed.iter().filter(|(_, by)| tells_own || *by != client);
                let keys: Vec<&[u8]> = wanted.map(|(key, _)| key.as_slice()).collect();
                if !keys.is_empty() {
                    send(clients, *client, Some(&keys));
                }
            }
        }
        while keys_max > 0 && self.readers.len() > keys_max {
            // Any one: the order of the table is none.
            let Some(key) = self.readers.keys().next().cloned() else {
                break;
            };
            let readers = self.take_readers(&key);
            tell_readers(clients, &key, 0, readers);
        }
    }

    fn take_readers(&mut self, key: &[u8]) -> BTreeSet<u64> {
        let Some(readers) = self.readers.remove(key) else {
            return BTreeSet::new();
        };
        self.key_bytes -= key.len();
        self.items -= readers.len();
        readers
    }
}

fn tell_readers(clients: &mut Clients, key: &[u8], by: u64, readers: BTreeSet<u64>) {
    for client in readers {
        let spared = |it: &Tracking| it.is_broadcast || it.no_loop && client == by;
        if tracking(clients, client).is_some_and(|it| !spared(it)) {
            send(clients, client, Some(&[key]));
        }
    }
}

fn tracking(clients: &Clients, client: u64) -> Option<&Tracking> {
    clients.get(client)?.tracking.as_deref()
}

/// Tells a client, or whom it named instead, that `keys` changed; all of them for `None`.
fn send(clients: &mut Clients, client: u64, keys: Option<&[&[u8]]>) {
    let Some(redirect) = tracking(clients, client).map(|it| it.redirect) else {
        return;
    };
    let receiver = if redirect == 0 { client } else { redirect };
    let Some(session) = clients.get(receiver).filter(|it| !it.is_killed) else {
        break_off(clients, client, redirect);
        return;
    };
    let is_new = session.protocol == Protocol::Resp3;
    let listens = redirect != 0 && session.subscriptions() > 0;
    if !is_new && !listens {
        return;
    }
    clients.send(receiver, |out: &mut ReplyWriter| {
        if is_new {
            out.push(2);
            out.bulk(b"invalidate");
        } else {
            out.push(3);
            out.bulk(b"message");
            out.bulk(CHANNEL);
        }
        match keys {
            None => out.null(),
            Some(keys) => {
                out.array(keys.len());
                keys.iter().for_each(|key| out.bulk(key));
            }
        }
    });
}

/// The client that was to be told instead is gone.
fn break_off(clients: &mut Clients, client: u64, redirect: u64) {
    let Some(session) = clients.get_mut(client) else {
        return;
    };
    let is_new = session.protocol == Protocol::Resp3;
    if let Some(tracking) = session.tracking.as_deref_mut() {
        tracking.is_broken = true;
    }
    if is_new {
        clients.send(client, |out| {
            out.push(2);
            out.bulk(b"tracking-redir-broken");
            out.integer(i64::try_from(redirect).unwrap_or(0));
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use drumlin_resp::Protocol;

    use super::{Tracker, Tracking};
    use crate::clients::Clients;
    use crate::session::Session;

    const READER: u64 = 7;
    const WRITER: u64 = 8;

    fn clients(tracking: Tracking) -> Clients {
        let mut clients = Clients::default();
        for id in [READER, WRITER] {
            let tracking = (id == READER).then(|| Box::new(tracking.clone()));
            clients.add(Session {
                id,
                protocol: Protocol::Resp3,
                tracking,
                ..Session::default()
            });
        }
        clients
    }

    fn told(clients: &mut Clients) -> String {
        let session = clients.get_mut(READER).expect("it is there");
        let out = std::mem::take(&mut session.out);
        String::from_utf8(out).expect("text").replace("\r\n", " ")
    }

    /// Goal: who has read a key is told once that it changed. Method: one read, two changes.
    #[test]
    fn a_change_of_a_key_that_was_read_is_told_once() {
        let mut clients = clients(Tracking::default());
        let mut tracker = Tracker::default();
        tracker.begin(READER, &BTreeSet::new());
        tracker.has_read(READER, b"k");
        tracker.changed(b"other", WRITER);
        tracker.changed(b"k", WRITER);
        tracker.tell(&mut clients, 0);
        assert_eq!(told(&mut clients), ">2 $10 invalidate *1 $1 k ");
        tracker.changed(b"k", WRITER);
        tracker.tell(&mut clients, 0);
        assert_eq!(told(&mut clients), "");
        assert_eq!(tracker.counts(), [1, 0, 0, 0]);
    }

    /// Goal: a read after a change is of the new value and is not told of it, but a read of the old one is. Method: a change, a
    /// read, and the engine late or not.
    #[test]
    fn reads_between_a_change_and_its_batch_are_told() {
        for is_late in [false, true] {
            let mut clients = clients(Tracking::default());
            let mut tracker = Tracker::default();
            tracker.begin(READER, &BTreeSet::new());
            tracker.changed(b"k", WRITER);
            if is_late {
                tracker.wait();
            }
            tracker.has_read(READER, b"k");
            tracker.tell(&mut clients, 0);
            let wanted = [0, 1][usize::from(is_late)];
            assert_eq!(told(&mut clients).matches("invalidate").count(), wanted);
        }
    }

    /// Goal: keys with a prefix are told together, without one's own where that is asked. Method: changes of two clients.
    #[test]
    fn keys_with_a_prefix_are_told_together() {
        let prefixes: BTreeSet<Vec<u8>> = [b"a".to_vec()].into();
        let mut clients = clients(Tracking {
            is_broadcast: true,
            no_loop: true,
            prefixes: prefixes.clone(),
            ..Tracking::default()
        });
        let mut tracker = Tracker::default();
        tracker.begin(READER, &prefixes);
        tracker.changed(b"a2", WRITER);
        tracker.changed(b"a1", WRITER);
        tracker.changed(b"a3", READER);
        tracker.changed(b"b", WRITER);
        tracker.tell(&mut clients, 0);
        assert_eq!(told(&mut clients), ">2 $10 invalidate *2 $2 a1 $2 a2 ");
        tracker.cleared();
        tracker.tell(&mut clients, 0);
        assert_eq!(told(&mut clients), ">2 $10 invalidate _ ");
    }

    /// Goal: the table has no more keys than it may. Method: three reads, room for one.
    #[test]
    fn keys_beyond_the_limit_are_told_as_changed() {
        let mut clients = clients(Tracking::default());
        let mut tracker = Tracker::default();
        tracker.begin(READER, &BTreeSet::new());
        for key in [b"a", b"b", b"c"] {
            tracker.has_read(READER, key);
        }
        tracker.tell(&mut clients, 1);
        assert_eq!(told(&mut clients).matches("invalidate").count(), 2);
        assert_eq!(tracker.counts(), [1, 1, 1, 0]);
    }
}
