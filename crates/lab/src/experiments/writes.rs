//! R1, R3 and R4: numbered keys, db_bench's way.

use super::plan::{Opening, Plan, Stage, alone, stage, words};
use crate::protocol::{Act, Role, Step};

/// Reads are timed once in so many, where they take a fraction of a microsecond.
const TIME_EVERY: u32 = 16;

fn open(flags: String) -> Option<Opening> {
    Some(Opening {
        is_fresh: true,
        flags: words(&flags),
        memory_share: None,
        read_iops: None,
    })
}

fn counted(act: Act, operations: u64) -> Role {
    Role {
        operations,
        time_every: TIME_EVERY,
        must_find: false,
        ..Role::new(act, 1)
    }
}

/// R1: lookups in memory beside a writer held to a rate.
pub(super) fn in_memory(keys: u64, seconds: u64) -> Plan {
    let mut stages = prefix_stages(keys, seconds, 20, "prefix of the whole key");
    stages.extend(prefix_stages(keys, seconds, 12, "prefix of 12 bytes"));
    Plan {
        title: format!("R1: {keys} keys in memory, two readers beside a writer"),
        notes: vec![
            "Keys of 20 and values of 100 bytes, files in memory (/dev/shm), no compression; every look-up must find \
             its key and the value that was written."
                .to_owned(),
            "Drumlin writes plain tables; rocksdb-plain and db_bench RocksDB's PlainTable below a prefix_hash memtable, \
             mapped, without checksums of blocks. db_bench is a process for each stage; it compares no values, counts \
             its writer's operations nowhere, and its store is opened anew, so that memtables begin empty."
                .to_owned(),
        ],
        data: None,
        in_memory: true,
        are_equals: false,
        stages,
    }
}

/// R1's stages on `keys` with prefixes of `prefix` bytes; ten keys share a prefix of 12.
fn prefix_stages(keys: u64, seconds: u64, prefix: u32, name: &str) -> Vec<Stage> {
    let has_shared_prefixes = prefix == 12;
    let mut flags = format!(
        "--num={keys} --key_size=20 --value_size=100 --compression_type=none --bloom_bits=10 \
         --use_plain_table=1 --write_buffer_size=134217728 --max_write_buffer_number=2 \
         --target_file_size_base=134217728 --max_bytes_for_level_base=1073741824 --cache_size=1073741824 \
         --level0_file_num_compaction_trigger=8 --level0_slowdown_writes_trigger=16 \
         --level0_stop_writes_trigger=24 --max_background_jobs=2 --seed=1 \
         --prefix_size={prefix}"
    );
    if has_shared_prefixes {
        flags.push_str(" --keys_per_prefix=10 --prefix_same_as_start=1");
    }
    let fill = Role {
        must_find: true,
        ..counted(Act::PutUnique, keys)
    };
    let mut stages = vec![Stage {
        opening: open(flags),
        ..stage(&format!("{name}: load"), alone(fill))
    }];
    for rate in [80_000, 10_000] {
        let label = format!("{name}: get beside {rate} writes/s");
        stages.push(beside(&label, Act::GetUniform, rate, seconds));
    }
    if has_shared_prefixes {
        let label = format!("{name}: seek and up to 10 entries beside 10000 writes/s");
        stages.push(beside(&label, Act::Seek(10), 10_000, seconds));
    }
    stages
}

/// Two readers that do `act` beside a writer held to `rate` writes a second.
fn beside(label: &str, act: Act, rate: u32, seconds: u64) -> Stage {
    let reads = Role {
        time_every: TIME_EVERY,
        ..Role::new(act, 2)
    };
    let writes = Role {
        rate: f64::from(rate),
        ..Role::new(Act::PutRandom, 1)
    };
    let step = Step {
        roles: vec![reads, writes],
        seconds: Some(seconds),
        ..Step::default()
    };
    stage(label, step)
}

/// R3: db_bench's lines at several sizes.
pub(super) fn lines(sizes: [u64; 3]) -> Plan {
    let mut stages = Vec::new();
    for entries in sizes {
        let flags = format!(
            "--num={entries} --compression_type=none --bloom_bits=10 --cache_size=1073741824 \
             --write_buffer_size=67108864 --max_background_jobs=2 --seed=1"
        );
        let reads = (entries / 4).max(1);
        let mut add = |name: &str, opening: Option<Opening>, role: Role| {
            let made = stage(&format!("{name}, {entries} entries"), alone(role));
            stages.push(Stage {
                entries: Some(entries),
                opening,
                ..made
            });
        };
        add(
            "fillseq",
            open(flags.clone()),
            counted(Act::PutAscending, entries),
        );
        add("readseq after fillseq", None, counted(Act::Forward, 0));
        add("fillrandom", open(flags), counted(Act::PutRandom, entries));
        add("overwrite", None, counted(Act::PutRandom, entries));
        add("readrandom", None, counted(Act::GetUniform, reads));
        add("readseq", None, counted(Act::Forward, 0));
        add("readreverse", None, counted(Act::Backward, 0));
        add("multireadrandom", None, counted(Act::MultiGet(32), reads));
        add("compact", None, counted(Act::Compact, 1));
        add(
            "readrandom after compact",
            None,
            counted(Act::GetUniform, reads),
        );
        add("readseq after compact", None, counted(Act::Forward, 0));
        add(
            "seekrandom after compact",
            None,
            counted(Act::Seek(0), reads),
        );
    }
    Plan {
        title: format!("R3: db_bench's lines, {} to {} entries", sizes[0], sizes[2]),
        notes: vec![
            "Keys of 16 and values of 100 bytes, no compression, memtables of 64 MB, a cache of 1 GB, Bloom filters of \
             10 bits, one thread. Before each line the engine is at rest."
                .to_owned(),
            "LMDB and redb gather 1,000 puts in a commit and sync none.".to_owned(),
        ],
        data: None,
        in_memory: false,
        are_equals: false,
        stages,
    }
}

/// Connections of each of the two clients of R4 through the server.
const CONNECTIONS: usize = 20;

/// R4: large values by two writers, everything compacted by hand in the middle.
pub(super) fn stalls(store_bytes: u64, seconds: u64) -> Plan {
    let note = "Two writers without a pause.";
    stalls_of(2, note, store_bytes, seconds)
}

/// R4 by as many writers as the server has connections: each waits for its write before it sends the next.
pub(super) fn served_stalls(store_bytes: u64, seconds: u64) -> Plan {
    let note = "Two times twenty writers without a pause: connections of the server over the loopback, threads of the engine \
                alone. The clients are in the server's process, and share its two cores. kvrocks-replayed is what Kvrocks would ask \
                of RocksDB for each SET, by threads too, without a server.";
    let plan = stalls_of(2 * CONNECTIONS, note, store_bytes, seconds);
    Plan {
        title: format!("{}, through the Redis server and without it", plan.title),
        ..plan
    }
}

fn stalls_of(writers: usize, note: &str, store_bytes: u64, seconds: u64) -> Plan {
    let entries = (store_bytes / 10_016).max(1);
    let flags = format!(
        "--num={entries} --value_size=10000 --compression_ratio=1 --compression_type=none --bloom_bits=10 \
         --cache_size=268435456 --write_buffer_size=67108864 --max_background_jobs=2 --seed=1"
    );
    let step = Step {
        roles: vec![Role::new(Act::PutRandom, writers)],
        seconds: Some(seconds),
        compact_at: Some(seconds / 2),
        settles: true,
    };
    let read = Role {
        must_find: false,
        operations: 20_000,
        ..Role::new(Act::GetUniform, 2)
    };
    Plan {
        title: format!(
            "R4: random writes of 10 KB over {entries} keys, compacted by hand in the middle"
        ),
        notes: vec![format!(
            "{note} The load is closed: writes that could not even begin in a slow second are missing from the \
                 percentiles, not from the seconds."
        )],
        data: None,
        in_memory: false,
        are_equals: false,
        stages: vec![
            Stage {
                opening: open(flags),
                ..stage("write", step)
            },
            stage("read back at random", alone(read)),
        ],
    }
}
