//! bench: db_bench's workloads on Drumlin.

use drumlin_bench::{DrumlinStore, Flags, Runner};
use drumlin_fs::Env;

use crate::failure::{Failure, Outcome};
use crate::output::Output;

const USAGE: &str = "\
drumlin bench [FLAGS]

Runs db_bench's workloads under db_bench's flags and prints its lines: with the same flags and seed \
both make the same keys and values in the same order. --flag=value and --flag value are the same.

Workloads: fillseq fillrandom fillsync fillbatch filluniquerandom fill100K overwrite readrandom \
readmissing readhot readseq readreverse seekrandom multireadrandom readwhilewriting \
seekrandomwhilewriting deleteseq deleterandom deleterange queue stall sustain compact flush waitforcompaction stats levelstats \
sstables crc32c xxhash xxhash64 xxh3 memlatency corelatency compress uncompress, and for each of snappy, lz4, zstd, zlib, \
bzip2: <codec>comp <codec>uncomp.

Flags:";

/// Runs the benchmarks that `words`, the arguments after `bench`, ask for.
pub(crate) fn bench(words: &[String], out: &mut Output) -> Outcome {
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return out.text(format!("{USAGE}\n{}", Flags::help()));
    }
    let flags = Flags::parse(words)?;
    if flags.db.is_empty() {
        let text =
            "which directory? Name it with --db; fills empty it first, if a benchmark made it";
        return Err(Failure::Usage(text.to_owned()));
    }
    Ok(Runner::<DrumlinStore>::new(flags, Env::system(), out).run()?)
}
