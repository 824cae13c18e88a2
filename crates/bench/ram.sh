#!/bin/sh
# Data in memory: random lookups beside a writer held to a rate, one engine after the other.
# `make bench-ram`.
#
# KEYS     keys loaded (20 bytes, values of 100)
# SECONDS_EACH  of each run
# READERS  threads
# RATES    writes a second
# SHAPES   20: the prefix is the key; 12: ten keys have one
# BATCH    keys of a batch
# ENGINES  drumlin: plain tables; db_bench: Debian's, RocksDB's PlainTable and prefix_hash memtables;
#          rocksdb: today's, block-based, mapped (PEERS: the `peers` program has it); drumlin-block: ours,
#          block-based, all in its cache; lmdb and drumlin-alone: one thread, compacted, without a writer, keys of 16 bytes
# TIMED    1: also how long single reads took beside flushes and compactions, with small memtables
# RAM      a directory in memory; LOG: one on a disk, for the WAL
# KEEP     1: databases that are there are used and left; else they are filled, and removed
#
# 20 M keys take 3 GB of RAM and six minutes for drumlin, db_bench and rocksdb and one shape; 50 M take 8
# GB, and twelve.
set -eu
KEYS=${KEYS:-5000000} SECONDS_EACH=${SECONDS_EACH:-20} READERS=${READERS:-$(nproc)} RATES=${RATES:-"10000 80000"}
RAM=${RAM:-/dev/shm/bench-ram} LOG=${LOG:-/tmp/bench-ram} DRUMLIN=${DRUMLIN:-target/release/drumlin}
PEERS=${PEERS:-crates/bench-peers/target/release/peers} BATCH=${BATCH:-32} TIMED=${TIMED:-1}
ENGINES=${ENGINES:-"drumlin db_bench"} SHAPES=${SHAPES:-"20 12"} KEEP=${KEEP:-0}

both="--num=$KEYS --key_size=20 --value_size=100 --compression_type=none --bloom_bits=10
--write_buffer_size=134217728 --max_write_buffer_number=2 --target_file_size_base=134217728
--max_bytes_for_level_base=1073741824 --sync=0 --disable_wal=0 --seed=1"
# What each engine does best with, as far as we know. Those of PlainTable are R1's.
ours="--use_plain_table=1"
plain="--use_plain_table=1 --mmap_read=1 --memtablerep=prefix_hash --allow_concurrent_memtable_write=false
--bloom_locality=1 --num_levels=6 --max_background_jobs=4 --statistics=0
--level0_file_num_compaction_trigger=8 --level0_slowdown_writes_trigger=16 --level0_stop_writes_trigger=24"
# Of block cache and mapping, hash indexes or none in data blocks, 1, 4 or 16 keys a restart point, blocks of 1 to
# 4 KiB, indexes with hashes, interpolated or partitioned, and skip lists or hashed memtables, the fastest.
block="--mmap_read --use_data_block_hash_index --block_restart_interval=4 --memtablerep=prefix_hash
--max_background_jobs=4 --verify_checksum=0"
our_block="--cache_size=17179869184"
seek="--benchmarks=seekrandomwhilewriting --seek_nexts=10 --prefix_same_as_start=1"
# One thread over one compacted table, as LMDB is measured elsewhere.
alone="--num=$KEYS --key_size=16 --value_size=100 --compression_type=none --seed=1
--benchmarks=filluniquerandom,compact,readrandom,readseq"

bench() { # ENGINE FLAGS...
    engine=$1; shift
    case $engine in
        drumlin) "$DRUMLIN" bench $both $ours "$@" ;;
        drumlin-block) "$DRUMLIN" bench $both $our_block "$@" ;;
        db_bench) db_bench $both $plain "$@" ;;
        rocksdb) "$PEERS" bench --engine rocksdb $both $block "$@" ;;
    esac 2>&1
}

shown() { grep -E 'micros/op|Percentiles' || true; }

# What the log holds goes to a table when the store is opened again, which may be the one too many: so each
# engine is opened once more, and the compactions that its fill left to do are done before anything is timed.
fill() { # ENGINE FLAGS...
    bench "$@" --benchmarks=filluniquerandom,waitforcompaction >"$LOG/out" || { cat "$LOG/out"; exit 1; }
    shown <"$LOG/out"
    bench "$@" --use_existing_db=1 --benchmarks=waitforcompaction >"$LOG/out" || { cat "$LOG/out"; exit 1; }
}

# The memory of its own that the engine needed in the run: what is in files on tmpfs is not counted.
run() { # ENGINE FLAGS...
    bench "$@" >"$LOG/out" &
    shell=$! most=0
    while kill -0 $shell 2>/dev/null; do
        child=$(pgrep -P $shell | head -1) || child=
        own=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/${child:-$shell}/status" 2>/dev/null) || own=
        [ "${own:-0}" -le $most ] || most=$own
        sleep 1
    done
    wait $shell
    shown <"$LOG/out"
    echo "own memory   : $((most / 1024)) MiB, $((most * 1024 / KEYS)) bytes an entry"
}

mkdir -p "$LOG"
echo "== memory, a read that waits for the one before"
"$DRUMLIN" bench --db="$RAM/none" --benchmarks=memlatency 2>&1 | shown
for engine in $ENGINES; do
    case $engine in
        drumlin-alone | lmdb)
            db=$RAM/$engine
            rm -rf "$db"; mkdir -p "$db"
            echo "== $engine, $KEYS keys of 16 bytes, compacted, one thread"
            case $engine in
                lmdb) "$PEERS" bench --engine lmdb --db="$db" $alone ;;
                *) "$DRUMLIN" bench --db="$db" --use_plain_table=1 $alone ;;
            esac 2>&1 | shown
            rm -rf "$db"
            continue ;;
    esac
    for shape in $SHAPES; do
        prefix="--prefix_size=$shape"
        [ "$shape" = 20 ] || prefix="$prefix --keys_per_prefix=10"
        db=$RAM/$engine-$shape wal=$LOG/$engine-$shape
        [ "$KEEP" = 1 ] || rm -rf "$db" "$wal"
        mkdir -p "$db" "$wal"
        place="--db=$db --wal_dir=$wal $prefix"
        echo "== $engine, $KEYS keys, prefix of $shape bytes"
        [ -e "$db/CURRENT" ] ||
            fill "$engine" $place
        echo "bytes an entry, in files: $(($(du -sb "$db" | cut -f1) / KEYS))"
        for rate in $RATES; do
            echo "-- beside $rate writes a second"
            place_and_time="$place --use_existing_db=1 --threads=$READERS --duration=$SECONDS_EACH"
            beside="$place_and_time --benchmark_write_rate_limit=$((rate * 120))"
            run "$engine" $beside --benchmarks=readwhilewriting
            [ "$engine" = db_bench ] ||
                run "$engine" $beside --benchmarks=multireadwhilewriting --batch_size=$BATCH
            [ "$shape" = 20 ] ||
                run "$engine" $beside $seek
            [ "$shape$engine" != 12drumlin ] || run "$engine" $beside $seek --refresh_iterators=1
        done
        if [ "$TIMED" = 1 ]; then
            echo "-- each read timed, beside 80000 writes a second into memtables of 16 MiB"
            run "$engine" $beside --benchmarks=readwhilewriting --histogram=1 --write_buffer_size=16777216
        fi
        [ "$KEEP" = 1 ] || rm -rf "$db" "$wal"
    done
done
