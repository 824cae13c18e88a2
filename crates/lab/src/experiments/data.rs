//! R2 and R5: records of a data set, and memory that does not hold them.

use std::path::PathBuf;

use drumlin_bench::datasets::Kind;

use super::plan::{Data, Opening, Plan, Stage, alone, stage, words};
use crate::protocol::{Act, Role, Step};

/// Bytes of Drumlin's budget beside its cache: memtables, and the buffers of jobs.
pub(crate) const BESIDE_CACHE: u64 = 48 << 20;

/// Readers of reviews in process, and by a server.
const READERS: usize = 2;
const SERVED_READERS: usize = 8;

fn timed(label: &str, roles: Vec<Role>, seconds: u64) -> Stage {
    stage(
        label,
        Step {
            roles,
            seconds: Some(seconds),
            ..Step::default()
        },
    )
}

/// Flags of every stage; the memory for blocks is `cache` bytes, or half of the process's limit.
fn flags(cache: u64, compression: &str) -> Vec<String> {
    words(&format!(
        "--cache_size={cache} --memory_budget={budget} --bloom_bits=10 --write_buffer_size=16777216 \
         --compression_type={compression} --use_searchable_table=1 --max_background_jobs=2 --seed=1",
        budget = cache + BESIDE_CACHE,
    ))
}

/// R2: reviews.
pub(super) fn reviews(bytes: u64, seconds: u64) -> Plan {
    Plan {
        title: "R2: reviews of about 1 KB, read under ever less memory".to_owned(),
        notes: vec![
            "Reviews of eight fields by a Markov chain over English text, key of three fields. The engines are read in \
             process, without a server between."
                .to_owned(),
            LESS_MEMORY_NOTE.to_owned(),
        ],
        data: Some(Data::Made(Kind::Reviews, bytes)),
        in_memory: false,
        are_equals: false,
        stages: ever_less_memory(bytes, seconds, READERS),
    }
}

/// R2 through document servers.
pub(super) fn served_reviews(bytes: u64, seconds: u64) -> Plan {
    Plan {
        title: "R2: reviews of about 1 KB, read through document servers under ever less memory".to_owned(),
        notes: vec![
            "Reviews of eight fields by a Markov chain over English text. A document has the key of three fields as its _id, and the others              as fields. One client inserts, one document a command; eight read, by find. The clients are in the agent's process, and share              its two cores; Drumlin's server is in it, too, another one is its child. WiredTiger is read in process, without a server between."
                .to_owned(),
            LESS_MEMORY_NOTE.to_owned(),
        ],
        stages: ever_less_memory(bytes, seconds, SERVED_READERS),
        ..reviews(bytes, seconds)
    }
}

/// R2 with records of a file instead of reviews, about `bytes` of them.
pub(super) fn given_records(path: PathBuf, bytes: u64, seconds: u64) -> Plan {
    Plan {
        title: "R2 with given records, read under ever less memory".to_owned(),
        notes: vec![
            "Written in the order of the file. The engines are read in process, without a server between.".to_owned(),
            LESS_MEMORY_NOTE.to_owned(),
        ],
        data: Some(Data::File(path)),
        in_memory: false,
        are_equals: false,
        stages: ever_less_memory(bytes, seconds, READERS),
    }
}

/// The note on [`ever_less_memory`].
const LESS_MEMORY_NOTE: &str = "Memory is limited by a control group, page cache counted in; the harness's own keys and \
    fingerprints and 64 MiB for the process are added to the limit. Half of the limit is block cache. Drumlin writes \
    searchable tables, RocksDB Snappy blocks of 4 KB.";

/// Loads and compacts `bytes` of records, and reads them, each as often and by Zipf's law, with memory for
/// all, for 0.88, 0.44 and 0.22 of them, as the 8, 4 and 2 GB of the published measurement were to its
/// 9.1 GB.
fn ever_less_memory(bytes: u64, seconds: u64, readers: usize) -> Vec<Stage> {
    let load = Role {
        leads: true,
        ..Role::new(Act::LoadRecords, 1)
    };
    let mut stages = vec![
        Stage {
            opening: Some(Opening {
                is_fresh: true,
                flags: flags(256 << 20, "snappy"),
                memory_share: None,
                read_iops: None,
            }),
            ..stage("insert", alone(load))
        },
        stage(
            "compact",
            alone(Role {
                operations: 1,
                ..Role::new(Act::Compact, 1)
            }),
        ),
    ];
    for (share, name) in [
        (None, "ample memory"),
        (Some(0.88), "0.88 of the data"),
        (Some(0.44), "0.44"),
        (Some(0.22), "0.22"),
    ] {
        let cache = share.map_or(256 << 20, |share| (bytes as f64 * share / 2.0) as u64);
        let opening = Opening {
            is_fresh: false,
            flags: flags(cache, "snappy"),
            memory_share: share,
            read_iops: None,
        };
        let uniform = timed(
            &format!("read, uniform, memory {name}"),
            vec![Role::new(Act::GetUniform, readers)],
            seconds,
        );
        stages.push(Stage {
            opening: Some(opening),
            ..uniform
        });
        stages.push(timed(
            &format!("read, Zipf, memory {name}"),
            vec![Role::new(Act::GetZipfian, readers)],
            seconds,
        ));
    }
    stages
}

/// R5: lineitem, read while it is loaded, and with memory for a ninth of it.
pub(super) fn lineitem(bytes: u64, seconds: u64) -> Plan {
    // 64 GB for 554 GB.
    const MEMORY_SHARE: f64 = 0.1154;
    // The published run had 24 readers on 32 hardware threads; here 2 cores have 2 readers and the writer.
    // More readers would measure the system's scheduler: the writer would get one turn in 25.
    const READERS: usize = 2;
    let load = Role {
        leads: true,
        ..Role::new(Act::LoadRecords, 1)
    };
    let limited_cache = (bytes as f64 * MEMORY_SHARE / 4.0) as u64;
    let open = |is_fresh, cache, memory_share: Option<f64>| {
        Some(Opening {
            is_fresh,
            flags: flags(cache, "snappy"),
            memory_share,
            read_iops: memory_share.map(|_| 20_000),
        })
    };
    let stages = vec![
        Stage {
            opening: open(true, 256 << 20, None),
            ..stage(
                "load beside 2 readers",
                Step {
                    roles: vec![load, Role::new(Act::GetUniform, READERS)],
                    settles: true,
                    ..Step::default()
                },
            )
        },
        stage(
            "compact",
            alone(Role {
                operations: 1,
                ..Role::new(Act::Compact, 1)
            }),
        ),
        timed(
            "read, ample memory, 2 threads",
            vec![Role::new(Act::GetUniform, 2)],
            seconds,
        ),
        Stage {
            opening: open(false, limited_cache, Some(MEMORY_SHARE)),
            ..timed(
                "read, memory for a ninth, 24 threads",
                vec![Role::new(Act::GetUniform, 24)],
                seconds,
            )
        },
    ];
    Plan {
        title: "R5: TPC-H lineitem, read while it is loaded and when it does not fit in memory".to_owned(),
        notes: vec![
            "Rows from the middle of scale factor 150, comments of 512 bytes cut from a pool in proportion to the data. \
             Memory (page cache counted in; the harness's own and 64 MiB for the process added) for 0.1154 of the data, as 64 GB for 554 GB, and at most \
             20,000 reads a second from the disk. Two readers beside the writer, who would otherwise get one turn in 25 of \
             two cores."
                .to_owned(),
            "Drumlin writes searchable tables to its last level, RocksDB Snappy blocks of 4 KB.".to_owned(),
        ],
        data: Some(Data::Made(Kind::LineItem, bytes)),
        in_memory: false,
        are_equals: false,
        stages,
    }
}
