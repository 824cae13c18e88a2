//! ZRANK as Kvrocks does it, for `crates/redis/zrank.sh`: a sorted set of so many members, of which members at random are asked.
//! Each rank is compared with the score, for score and rank are the same here.

use std::path::Path;
use std::time::Instant;

use drumlin_base::rng::Rng;
use drumlin_base::{Error, Result};
use drumlin_bench::{Flags, Store};
use drumlin_fs::Env;

use crate::args::RanksArgs;
use crate::engines::kvrocks::KvrocksStore;

const KEY: &[u8] = b"ranks";
/// Members of a ZADD.
const OF_A_COMMAND: usize = 100;
/// The score of member i is i times this, modulo their number: in another order than the names.
const STRIDE: u64 = 7919;

/// The name that redis-benchmark gives a random number.
fn member(number: u64) -> Vec<u8> {
    format!("member:{number:012}").into_bytes()
}

/// Fills the store if it is empty, asks for ranks, and tells what they took.
pub(crate) fn run(args: &RanksArgs) -> Result<String> {
    let members = args.members;
    if members == 0 || args.lookups == 0 || members.is_multiple_of(STRIDE) {
        let text = "--members and --lookups must be above 0, --members no multiple of 7919";
        return Err(Error::invalid_argument(text));
    }
    let flags = Flags {
        db: args.dir.display().to_string(),
        compression_type: "snappy".to_owned(),
        ..Flags::default()
    };
    make(&args.dir)?;
    let store = KvrocksStore::open(&flags, &Env::system())?;
    match store.size(KEY)? {
        0 => fill(&store, members)?,
        size if size == members => {}
        size => {
            let text = format!("the sorted set there has {size} members");
            return Err(Error::invalid_argument(text));
        }
    }
    let mut rng = Rng::new(args.seed);
    let mut micros = Vec::new();
    for _ in 0..args.lookups {
        let number = rng.below(members);
        let began = Instant::now();
        let rank = store.rank(KEY, &member(number))?;
        micros.push(began.elapsed().as_secs_f64() * 1e6);
        if rank != Some(number * STRIDE % members) {
            return Err(Error::corruption(format!(
                "the rank of member {number} is {rank:?}"
            )));
        }
    }
    store.close()?;
    micros.sort_by(f64::total_cmp);
    let at = |place: usize| micros.get(place).copied().unwrap_or_default();
    let mean = micros.iter().sum::<f64>() / micros.len() as f64;
    Ok(format!(
        "{mean:.1} us a ZRANK on average, median {:.1}, least {:.1}, most {:.1}\n",
        at(micros.len() / 2),
        at(0),
        at(micros.len() - 1),
    ))
}

fn make(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|error| Error::io("make directory", dir, error))
}

/// Flushed and compacted: a walk then meets each member once.
fn fill(store: &KvrocksStore, members: u64) -> Result<()> {
    let numbers: Vec<u64> = (0..members).collect();
    for numbers in numbers.chunks(OF_A_COMMAND) {
        let scored = |number: &u64| ((number * STRIDE % members) as f64, member(*number));
        let scored: Vec<_> = numbers.iter().map(scored).collect();
        store.add(KEY, &scored)?;
    }
    store.flush()?;
    store.compact()?;
    store.wait_for_background()
}
