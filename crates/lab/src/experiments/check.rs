//! The harness measured: an engine by this laboratory, and by that engine's own benchmark.

use super::plan::{Opening, Plan, Stage, alone, stage, words};
use crate::protocol::{Act, Role};

/// Operations between two that are timed.
const TIME_EVERY: u32 = 16;

/// db_bench's lines, each in a process of its own, on the store that the one before left behind: that is
/// how db_bench comes to them as well.
pub(super) fn harness(entries: u64) -> Plan {
    // With the seed that it wrote by db_bench would ask for the very keys it wrote, and find all of them; of keys
    // drawn independently a store filled at random holds 63 %, and filters answer for the others.
    let flags = |seed: u64| {
        words(&format!(
            "--num={entries} --compression_type=none --bloom_bits=10 --cache_size=1073741824 \
             --write_buffer_size=33554432 --max_background_jobs=2 --seed={seed}"
        ))
    };
    let reads = (entries / 2).max(1);
    let lines = [
        ("fillseq", Act::PutAscending, entries, true),
        ("readrandom after fillseq", Act::GetUniform, reads, false),
        ("readseq after fillseq", Act::Forward, 0, false),
        ("fillrandom", Act::PutRandom, entries, true),
        ("overwrite", Act::PutRandom, entries, false),
        ("readrandom", Act::GetUniform, reads, false),
        ("seekrandom", Act::Seek(0), reads, false),
        ("compact", Act::Compact, 1, false),
        ("readrandom after compact", Act::GetUniform, reads, false),
        ("readseq after compact", Act::Forward, 0, false),
        ("readreverse after compact", Act::Backward, 0, false),
    ];
    let stages = lines.map(|(name, act, operations, is_fresh)| {
        let role = Role {
            operations,
            time_every: TIME_EVERY,
            must_find: false,
            ..Role::new(act, 1)
        };
        Stage {
            opening: Some(Opening {
                is_fresh,
                flags: flags(if act.is_put() { 1 } else { 2 }),
                memory_share: None,
                read_iops: None,
            }),
            ..stage(name, alone(role))
        }
    });
    Plan {
        title: format!("The harness: RocksDB by the laboratory and by its own db_bench, {entries} entries"),
        notes: vec![
            "The first engine takes Drumlin's place: the same code draws its keys, compares its values and counts its \
             operations. A ratio near 1 says that the harness is not what is measured."
                .to_owned(),
            "Keys of 16 and values of 100 bytes, no compression, one thread; each line in a process of its own on the \
             files of the one before. db_bench makes other values (and does not look at those it reads), and times \
             nothing here, where the laboratory times one operation in 16."
                .to_owned(),
        ],
        data: None,
        in_memory: false,
        are_equals: true,
        stages: stages.into(),
    }
}
