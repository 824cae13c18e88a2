#!/bin/sh
# Data in memory: random lookups beside a writer held to a rate, by Drumlin and by Debian's db_bench
# with RocksDB's PlainTable, same flags, in turn. `make bench-ram`.
#
# KEYS     keys loaded (20 bytes, values of 100)
# SECONDS  of each run
# READERS  threads
# RATES    writes a second
# RAM      a directory in memory; LOG: one on a disk, for the WAL
set -eu
KEYS=${KEYS:-5000000} SECONDS=${SECONDS:-20} READERS=${READERS:-$(nproc)} RATES=${RATES:-"10000 80000"}
RAM=${RAM:-/dev/shm/bench-ram} LOG=${LOG:-/tmp/bench-ram} DRUMLIN=${DRUMLIN:-target/release/drumlin}
ENGINES=${ENGINES:-"drumlin db_bench"} SHAPES=${SHAPES:-"20 12"}

both="--num=$KEYS --key_size=20 --value_size=100 --compression_type=none --bloom_bits=10 --use_plain_table=1
--mmap_read=1 --write_buffer_size=134217728 --max_write_buffer_number=2 --target_file_size_base=134217728
--max_bytes_for_level_base=1073741824 --level0_file_num_compaction_trigger=8
--level0_slowdown_writes_trigger=16 --level0_stop_writes_trigger=24 --sync=0 --disable_wal=0 --seed=1"
theirs="--memtablerep=prefix_hash --allow_concurrent_memtable_write=false --bloom_locality=1 --num_levels=6
--max_background_jobs=4 --statistics=0"

bench() { # ENGINE FLAGS...
    engine=$1; shift
    case $engine in
        drumlin) "$DRUMLIN" bench $both "$@" ;;
        db_bench) db_bench $both $theirs "$@" ;;
    esac 2>&1 | grep -E 'micros/op|writer' || true
}

for shape in $SHAPES; do
    # A prefix of 20 bytes is the whole key; one of 12 has ten keys.
    prefix="--prefix_size=$shape"
    [ "$shape" = 20 ] || prefix="$prefix --keys_per_prefix=10"
    for engine in $ENGINES; do
        db=$RAM/$engine-$shape wal=$LOG/$engine-$shape
        rm -rf "$db" "$wal"; mkdir -p "$db" "$wal"
        place="--db=$db --wal_dir=$wal $prefix"
        echo "== $engine, $KEYS keys, prefix of $shape bytes"
        bench "$engine" $place --benchmarks=filluniquerandom,waitforcompaction
        for rate in $RATES; do
            echo "-- beside $rate writes a second"
            run="$place --use_existing_db=1 --threads=$READERS --duration=$SECONDS
                 --benchmark_write_rate_limit=$((rate * 120))"
            bench "$engine" $run --benchmarks=readwhilewriting
            [ "$engine" = db_bench ] || bench "$engine" $run --benchmarks=multireadwhilewriting --batch_size=32
            [ "$shape" = 20 ] ||
                bench "$engine" $run --benchmarks=seekrandomwhilewriting --seek_nexts=10 --prefix_same_as_start=1
        done
        rm -rf "$db" "$wal"
    done
done
