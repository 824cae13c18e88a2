#!/bin/sh
# TPC-H lineitem rows with wide comments, cut down from 554 GB with the text pool in proportion: how small
# the store is when everything is compacted, and reads of it by many threads while memory is a share of
# the data and the disk gives so many reads a second. `make bench-r5`.
#
#   crates/bench/r5.sh            5 GB: about 12 GB of disk, and 8 GB of memory while loading
#   BYTES=500000000 crates/bench/r5.sh
#
# BYTES     of keys and values
# TEXT      pool: comments cut from a pool; fresh: made for each row
# DIR       where data and stores go; what is in it is removed
# SHARE     memory for reading, in thousandths of BYTES
# IOPS      reads a second from the disk; it is also read with as many as it gives
# SECONDS_EACH   of each run, THREADS that read
# PEERS     the program `peers` for RocksDB; empty: Drumlin alone
set -eu
BYTES=${BYTES:-5000000000} TEXT=${TEXT:-pool} DIR=${DIR:-/tmp/bench-r5} SHARE=${SHARE:-115}
IOPS=${IOPS:-20000} SECONDS_EACH=${SECONDS_EACH:-10} THREADS=${THREADS:-24}
DRUMLIN=${DRUMLIN:-target/release/drumlin} PEERS=${PEERS-}
ENGINES=${ENGINES:-"drumlin rocksdb-snappy rocksdb-zstd"}

# As 300 MiB of text are to 554 GB.
pool=$((BYTES * 300 * 1048576 / 554539419))
pool=$((pool / 1000))
mkdir -p "$DIR"
rows=$DIR/rows.tsv keys=$DIR/keys.tsv
"$DRUMLIN" gen lineitem --out "$rows" --bytes "$BYTES" --text "$TEXT" --pool-bytes "$pool" \
    --scale-factor 150 --part 7 --parts $((90000000000 * 6 / BYTES))
# An eighth of the keys are asked for: the reading process holds them in memory of its own.
awk -F '\t' 'NR % 8 == 0 { print $1 "\t" }' "$rows" >"$keys"
memory=$((BYTES * SHARE / 1000))
# What the program has for itself beside the store: the keys, and 64 MiB.
own=$(($(wc -c <"$keys") * 2 + (64 << 20)))

bench() { # ENGINE FLAGS..., under the command in $under
    engine=$1; shift
    case $engine in
        drumlin) set -- "$DRUMLIN" bench --use_searchable_table "$@" ;;
        rocksdb-snappy) set -- "$PEERS" bench --engine rocksdb --compression_type=snappy "$@" ;;
        rocksdb-zstd) set -- "$PEERS" bench --engine rocksdb --compression_type=zstd \
            --compression_max_dict_bytes=16384 "$@" ;;
    esac
    # shellcheck disable=SC2086
    $under "$@" 2>&1 | grep -E 'ops/sec|rror|annot|ended' || echo "no answer: killed, or out of memory"
}

for engine in $ENGINES; do
    case $engine in rocksdb*) [ -n "$PEERS" ] || continue ;; esac
    db=$DIR/$engine
    under=
    rm -rf "$db"; mkdir -p "$db"
    echo "== $engine: load and compact"
    bench "$engine" --db="$db" --records="$rows" --batch_size=100 --disable_wal \
        --benchmarks=filluniquerandom,flush,waitforcompaction,compact,waitforcompaction
    # Of the closed directory: an open one also keeps files that are on their way out.
    stored=$(du -sb "$db" | cut -f1)
    echo "directory: $stored bytes of $BYTES, 1/$((BYTES / stored)).$((BYTES * 10 / stored % 10))"
    # Written pages would be served from memory that is charged to nobody.
    sync
    find "$db" -type f -exec dd if={} iflag=nocache count=0 status=none \;
    for iops in $(printf '%s\n' "$IOPS" 0 | sort -urn); do
        under="$DRUMLIN lab limited --db $db --memory $((memory + own))"
        [ "$iops" = 0 ] || under="$under --read-iops $iops"
        under="$under --"
        echo "== $engine: $THREADS readers in $memory bytes of memory, $iops reads a second from the disk (0: any)"
        # Twice: the first warms up what the second is measured with.
        for work in readrandom multireadrandom; do
            bench "$engine" --db="$db" --records="$keys" --use_existing_db --threads="$THREADS" \
                --benchmarks=$work,$work --batch_size=128 --duration="$SECONDS_EACH" --cache_size=$((memory / 2))
        done
    done
    under=
    for threads in 1 2; do
        echo "== $engine: $threads at work, memory unlimited"
        bench "$engine" --db="$db" --records="$keys" --use_existing_db --threads=$threads --batch_size=128 \
            --duration=$((SECONDS_EACH / 2)) --cache_size=$BYTES \
            --benchmarks="readrandom,readrandom,multireadrandom,seekrandom"
    done
    rm -rf "$db"
done
rm -f "$rows" "$keys"
