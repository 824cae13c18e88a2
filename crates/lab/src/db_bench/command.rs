//! A stage in db_bench's words.

use std::path::Path;

use drumlin_base::Result;
use drumlin_bench::Flags;

use crate::protocol::{Act, Step};

/// Flags of ours that db_bench has not, or that would have it print and count more than is read.
const NOT_ITS: [&str; 6] = [
    "--memory_budget",
    "--use_searchable_table",
    "--use_direct_io_for_flush_and_compaction",
    "--statistics",
    "--num=",
    "--db=",
];

/// The options RocksDB's developers choose for data in memory, beside `--use_plain_table`.
const PLAIN: [&str; 4] = [
    "--mmap_read=1",
    "--memtablerep=prefix_hash",
    "--allow_concurrent_memtable_write=false",
    "--bloom_locality=1",
];

/// Defaults of RocksDB's library where db_bench has others, so that both have one store: found
/// by comparing the OPTIONS files they leave behind.
const LIBRARY: [&str; 6] = [
    "--delayed_write_rate=16777216",
    "--enable_pipelined_write=false",
    "--level_compaction_dynamic_level_bytes=true",
    "--index_shortening_mode=1",
    "--table_cache_numshardbits=6",
    "--dump_malloc_stats=false",
];

/// Arguments for `step` on the store in `dir`, opened with `flags`; `None` for a step it has no workload
/// for. `is_fresh`: the store is empty.
pub(super) fn arguments(
    step: &Step,
    flags: &[String],
    dir: &Path,
    is_fresh: bool,
) -> Result<Option<Vec<String>>> {
    let Some(name) = workload(step, is_fresh) else {
        return Ok(None);
    };
    let parsed = Flags::parse(flags)?;
    let is_known = |flag: &&String| !NOT_ITS.iter().any(|prefix| flag.starts_with(prefix));
    let mut arguments: Vec<String> = flags.iter().filter(is_known).cloned().collect();
    let mut add = |flag: &str, value: u64| arguments.push(format!("--{flag}={value}"));
    add("num", parsed.num);
    if let Some(seconds) = step.seconds {
        add("duration", seconds);
    }
    let reader = step.roles.iter().find(|role| !role.act.is_write());
    if let Some(role) = reader.or(step.roles.first()) {
        add("threads", role.threads as u64);
        if role.operations > 0 {
            let flag = if role.act.is_write() {
                "writes"
            } else {
                "reads"
            };
            add(flag, role.operations);
        }
        match role.act {
            Act::Seek(entries) => add("seek_nexts", entries as u64),
            Act::MultiGet(keys) => add("batch_size", keys as u64),
            _ => {}
        }
    }
    let writer = step.roles.iter().find(|role| role.act.is_write());
    if let Some(role) = writer.filter(|role| role.rate > 0.0) {
        let entry_bytes = (parsed.key_size + parsed.value_size) as f64;
        add(
            "benchmark_write_rate_limit",
            (role.rate * entry_bytes) as u64,
        );
    }
    // A step that settles waits for compactions: db_bench would else cut them off.
    let rest = if step.settles {
        ",waitforcompaction"
    } else {
        ""
    };
    arguments.push(format!("--benchmarks={name}{rest}"));
    arguments.push(format!("--use_existing_db={}", u8::from(!is_fresh)));
    arguments.push(format!("--db={}", dir.display()));
    arguments.push("--progress_reports=false".to_owned());
    arguments.extend(LIBRARY.map(str::to_owned));
    if parsed.use_plain_table {
        arguments.extend(PLAIN.map(str::to_owned));
    }
    Ok(Some(arguments))
}

/// db_bench's name for `step`.
fn workload(step: &Step, is_fresh: bool) -> Option<&'static str> {
    let acts: Vec<Act> = step.roles.iter().map(|role| role.act).collect();
    Some(match acts.as_slice() {
        [Act::PutAscending] => "fillseq",
        [Act::PutRandom] if is_fresh => "fillrandom",
        [Act::PutRandom] => "overwrite",
        [Act::PutUnique] => "filluniquerandom",
        [Act::GetUniform] => "readrandom",
        [Act::MultiGet(_)] => "multireadrandom",
        [Act::Seek(_)] => "seekrandom",
        [Act::Forward] => "readseq",
        [Act::Backward] => "readreverse",
        [Act::Compact] => "compact",
        [Act::GetUniform, Act::PutRandom] => "readwhilewriting",
        [Act::Seek(_), Act::PutRandom] => "seekrandomwhilewriting",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Role;

    #[test]
    fn a_step_is_said_in_flags_that_db_bench_has() {
        let writer = Role {
            rate: 1000.0,
            ..Role::new(Act::PutRandom, 1)
        };
        let step = Step {
            roles: vec![Role::new(Act::Seek(10), 2), writer],
            seconds: Some(5),
            ..Step::default()
        };
        let flags = [
            "--num=7",
            "--key_size=20",
            "--statistics",
            "--use_plain_table=1",
        ];
        let flags = flags.map(str::to_owned);
        let all = arguments(&step, &flags, Path::new("/d"), false).expect("sound flags");
        let all = all.expect("a workload");
        for expected in [
            "--benchmarks=seekrandomwhilewriting",
            "--num=7",
            "--threads=2",
            "--duration=5",
            "--seek_nexts=10",
            "--benchmark_write_rate_limit=120000",
            "--use_existing_db=1",
            "--memtablerep=prefix_hash",
            "--db=/d",
        ] {
            assert!(
                all.iter().any(|flag| flag == expected),
                "{expected}: {all:?}"
            );
        }
        assert!(!all.iter().any(|flag| flag.starts_with("--statistics")));
        let load = Step {
            roles: vec![Role::new(Act::LoadRecords, 1)],
            ..Step::default()
        };
        assert_eq!(
            arguments(&load, &flags, Path::new("/d"), true).expect("sound"),
            None
        );
    }
}
