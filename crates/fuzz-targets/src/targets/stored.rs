//! What the Redis server has on disk: with some bytes of a key's entries changed, each command answers or names the damage, and
//! takes no more than is there.

use std::path::Path;
use std::sync::Arc;

use drumlin::{Env, Options, ReadOptions, WriteBatch, WriteOptions};
use drumlin_base::coding::put_varint64;
use drumlin_base::rng::Rng;
use drumlin_fs::StrictMemFileSystem;
use drumlin_redis_store::types::list::{End, List};
use drumlin_redis_store::types::stream::{NodeLimits, Stream, StreamId, Trim, TrimTo};
use drumlin_redis_store::types::zset::{AddOptions, Select};
use drumlin_redis_store::types::{hash, set, zset};
use drumlin_redis_store::{
    Direction, Failure, Keyspace, Outcome, Overlay, ReadFrom, Store, StoreOptions,
};

use super::expect::blames_the_bytes;
use crate::input::Input;

const KEY: &[u8] = b"key";
const NOW_MS: u64 = 1_000_000;
/// Families with what belongs to a key.
const FAMILIES: [&str; 2] = ["keys", "sub"];
/// Far more steps than a key made here can need.
const STEPS_MAX: usize = 10_000;

/// A store in memory.
struct Stored {
    store: Store,
    overlay: Overlay,
}

impl Stored {
    fn new() -> Self {
        let env = Env::system().with_files(Arc::new(StrictMemFileSystem::new()));
        let engine = Options {
            env: env.with_seed(1),
            background_threads: Some(0),
            memory_budget: Some(8 << 20),
            ..Options::default()
        };
        let store = Store::open(Path::new("/redis"), StoreOptions { engine });
        Self {
            store: store.expect("an empty directory is taken"),
            overlay: Overlay::new(),
        }
    }

    /// Runs a command, and undoes it if it fails, which only damage may cause.
    fn run<T>(&mut self, command: impl FnOnce(&mut Keyspace<'_>) -> Outcome<T>) -> Option<T> {
        let view = self.store.view();
        let mark = self.overlay.mark();
        let overlay = &mut self.overlay;
        let mut keyspace = Keyspace::new(&self.store, &view, overlay, 0, NOW_MS, ReadFrom::Disk);
        match command(&mut keyspace) {
            Ok(answer) => Some(answer),
            Err(failure) => {
                if let Failure::Engine(error) = &failure {
                    blames_the_bytes(error);
                }
                self.overlay.undo(mark);
                None
            }
        }
    }

    fn commit(&mut self) {
        let committed = self.store.commit(&mut self.overlay);
        committed.expect("a store in memory takes writes");
    }

    /// Changes stored entries as `input` says.
    fn damage(&self, input: &mut Input<'_>) {
        let db = self.store.db();
        let sub = db.column_family("sub").expect("a family").id();
        let mut entries = Vec::new();
        for name in FAMILIES {
            let family = db.column_family(name).expect("a family");
            let mut iter = db.iter_cf(&family, ReadOptions::default());
            iter.seek_to_first();
            while iter.valid() {
                entries.push((family.id(), iter.key().to_vec(), iter.value().to_vec()));
                iter.next();
            }
        }
        while !input.is_empty() && !entries.is_empty() {
            let at = usize::from(input.byte()) % entries.len();
            let (family, key, value) = &mut entries[at];
            let place = usize::from(input.byte()) << 8 | usize::from(input.byte());
            let byte = input.byte();
            let mut batch = WriteBatch::new();
            match input.below(8) {
                3 if *family == sub => {
                    // A change of a node, over a page that may be none: its length, and exchanges.
                    let mut operand = Vec::new();
                    put_varint64(&mut operand, value.len() as u64);
                    let (taken, put) = (usize::from(byte), usize::from(input.below(30)));
                    for number in [place, taken, put] {
                        put_varint64(&mut operand, number as u64);
                    }
                    operand.extend_from_slice(input.take(put));
                    operand.push(input.byte());
                    batch.merge_cf(*family, key, &operand).expect("a small one");
                }
                0 => value.truncate(place % (value.len() + 1)),
                1 => value.insert(place % (value.len() + 1), byte),
                2 => value.clear(),
                _ if value.is_empty() => value.push(byte),
                _ => {
                    let at = place % value.len();
                    value[at] = byte;
                }
            }
            if batch.is_empty() {
                batch.put_cf(*family, key, value).expect("a small one");
            }
            db.write(batch, &WriteOptions::default())
                .expect("a store in memory takes writes");
        }
    }
}

/// A kind of value, how many elements it has and how long they are; then the changes of stored bytes.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (kind, count, long) = (input.below(5), input.byte(), usize::from(input.below(100)));
    let mut stored = Stored::new();
    let elements: Vec<Vec<u8>> = (0..=count)
        .map(|number| [&vec![b'x'; long][..], &number.to_string().into_bytes()].concat())
        .collect();
    let made = stored.run(|keys| fill(keys, kind, &elements));
    assert!(made.is_some(), "a new key is not damaged");
    stored.commit();
    stored.damage(&mut input);
    match kind {
        0 => ask_list(&mut stored),
        1 => ask_hash(&mut stored),
        2 => ask_set(&mut stored),
        3 => ask_zset(&mut stored),
        _ => ask_stream(&mut stored),
    }
    stored.commit();
}

fn id(ms: u64) -> StreamId {
    StreamId { ms, seq: 0 }
}

fn fill(keys: &mut Keyspace<'_>, kind: u8, elements: &[Vec<u8>]) -> Outcome<()> {
    let slices = || elements.iter().map(Vec::as_slice);
    match kind {
        0 => {
            let mut list = List::open_or_new(keys, KEY)?;
            for element in slices() {
                list.push(keys, End::Right, element)?;
            }
            list.save(keys, KEY, None)
        }
        1 => {
            let pairs: Vec<_> = slices().zip(slices()).collect();
            hash::set(keys, KEY, pairs).map(|_| ())
        }
        2 => set::add(keys, KEY, slices()).map(|_| ()),
        3 => {
            let scores = (0u8..=u8::MAX).map(|number| f64::from(number / 3));
            let items: Vec<_> = scores.zip(slices()).collect();
            zset::add(keys, KEY, &items, AddOptions::default()).map(|_| ())
        }
        _ => {
            let mut stream = Stream::open_or_new(keys, KEY)?;
            for (number, element) in (1..).zip(slices()) {
                let limits = NodeLimits {
                    entries_max: 20,
                    bytes_max: 4096,
                };
                stream.append(keys, id(number), &[b"field", element], limits);
            }
            stream.create_group(keys, b"group", id(2), None)?;
            stream.save(keys, KEY)
        }
    }
}

/// A counter of steps: a walk that goes on and on is a failure.
fn steps() -> impl FnMut() -> bool {
    let mut left = STEPS_MAX;
    move || {
        assert!(left > 0, "it goes on and on");
        left -= 1;
        true
    }
}

fn ask_list(stored: &mut Stored) {
    for direction in [Direction::Forward, Direction::Backward] {
        let mut step = steps();
        stored.run(|keys| {
            let Some(list) = List::open(keys, KEY)? else {
                return Ok(());
            };
            let from = match direction {
                Direction::Forward => 0,
                Direction::Backward => list.len().saturating_sub(1),
            };
            list.get(keys, list.len() / 2)?;
            list.visit(keys, from, direction, |_| step())
        });
    }
    for end in [End::Left, End::Right] {
        stored.run(|keys| {
            let mut list = List::open_or_new(keys, KEY)?;
            list.pop(keys, end)?;
            list.push(keys, end, b"pushed")?;
            let middle = list.len() / 2;
            list.insert(keys, middle, b"inserted")?;
            list.replace(keys, middle, b"replaced")?;
            list.save(keys, KEY, None)
        });
    }
    stored.run(|keys| {
        let mut list = List::open_or_new(keys, KEY)?;
        let len = list.len();
        list.remove(keys, len / 4..len / 2)?;
        list.save(keys, KEY, None)
    });
}

fn ask_hash(stored: &mut Stored) {
    let mut step = steps();
    stored.run(|keys| hash::len(keys, KEY));
    stored.run(|keys| hash::get(keys, KEY, b"7"));
    stored.run(|keys| {
        hash::each(keys, KEY, |_, _| {
            step();
        })
    });
    let mut cursor = 0;
    let mut step = steps();
    while let Some((next, _)) = stored.run(|keys| hash::scan(keys, KEY, cursor, 10))
        && next != 0
    {
        step();
        cursor = next;
    }
    stored.run(|keys| hash::sample(keys, KEY, 5, &mut Rng::new(1)));
    stored.run(|keys| hash::set(keys, KEY, [(&b"7"[..], &b"new"[..]), (b"more", b"value")]));
    stored.run(|keys| hash::remove(keys, KEY, [&b"7"[..], b"8"]));
}

fn ask_set(stored: &mut Stored) {
    let mut step = steps();
    stored.run(|keys| set::len(keys, KEY));
    stored.run(|keys| set::contains(keys, KEY, b"7"));
    stored.run(|keys| set::each(keys, KEY, |_| step()));
    stored.run(|keys| set::sample(keys, KEY, 5, &mut Rng::new(1)));
    stored.run(|keys| set::add(keys, KEY, [&b"7"[..], b"more"]));
    stored.run(|keys| set::pop(keys, KEY, 3, &mut Rng::new(1)));
    stored.run(|keys| set::remove(keys, KEY, [&b"7"[..], b"8"]));
}

fn ask_zset(stored: &mut Stored) {
    let mut step = steps();
    stored.run(|keys| zset::len(keys, KEY));
    stored.run(|keys| zset::score(keys, KEY, b"7"));
    stored.run(|keys| zset::rank(keys, KEY, b"7", Direction::Forward));
    stored.run(|keys| zset::each(keys, KEY, |_, _| step()));
    stored.run(|keys| {
        let items = [(1.5, &b"more"[..]), (0.0, b"7")];
        zset::add(keys, KEY, &items, AddOptions::default())
    });
    stored.run(|keys| zset::pop(keys, KEY, 3, Direction::Backward));
    stored.run(|keys| zset::remove(keys, KEY, [&b"8"[..]]));
    stored.run(|keys| zset::remove_range(keys, KEY, &Select::Ranks { start: 1, end: 3 }));
}

fn ask_stream(stored: &mut Stored) {
    let all = (StreamId::MIN, StreamId::MAX);
    stored.run(|keys| {
        let Some(stream) = Stream::open(keys, KEY)? else {
            return Ok(());
        };
        let mut step = steps();
        let mut entries = stream.entries(keys, all, Direction::Backward);
        while let Some(entry) = entries.next()? {
            step();
            let mut step = steps();
            entry.parts().for_each(|_| _ = step());
        }
        for group in stream.groups(keys)? {
            group.consumers(keys)?;
            group.lag(&stream);
        }
        Ok(())
    });
    stored.run(|keys| {
        let mut stream = Stream::open_or_new(keys, KEY)?;
        let ids = [id(3), id(9)];
        stream.delete(keys, &ids)?;
        let trim = Trim {
            to: TrimTo::Length(5),
            is_exact: true,
            limit: 0,
        };
        stream.trim(keys, trim)?;
        stream.save(keys, KEY)
    });
}
