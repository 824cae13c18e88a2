#!/bin/sh
# Reviews of about 1 KB, read at random and by Zipf's law while memory is a share of the data: latencies and
# reads a second. The reviews are made of English text, see english.sh.
#
#   crates/bench/r2.sh            1.5 GB: about 5 GB of disk
#   BYTES=300000000 crates/bench/r2.sh
#
# BYTES     of keys and values
# DOCS      directory that english.sh made
# DIR       where data and stores go; what is in it is removed
# SHARES    memory for reading, in thousandths of BYTES
# SECONDS_EACH   of each run, THREADS that read
# PEERS     the program `peers` for RocksDB; empty: Drumlin alone
set -eu
BYTES=${BYTES:-1500000000} DOCS=${DOCS:-/data/english} DIR=${DIR:-/tmp/bench-r2} SHARES=${SHARES:-"880 440 220"}
SECONDS_EACH=${SECONDS_EACH:-8} THREADS=${THREADS:-2}
DRUMLIN=${DRUMLIN:-target/release/drumlin} PEERS=${PEERS-}
ENGINES=${ENGINES:-"drumlin rocksdb-snappy rocksdb-zstd"}

mkdir -p "$DIR"
rows=$DIR/rows.tsv keys=$DIR/keys.tsv
"$DRUMLIN" gen reviews --out "$rows" --bytes "$BYTES" --docs "$DOCS"
# A quarter of the keys are asked for: the reading process holds them in memory of its own.
awk -F '\t' 'NR % 4 == 0 { print $1 "\t" }' "$rows" >"$keys"
own=$(($(wc -c <"$keys") * 2 + (64 << 20)))
# The rank of what is read is e to the power of a uniform number up to this: Zipf's law with exponent 1.
zipf=$(awk 'END { print log(NR) }' "$keys")

bench() { # ENGINE FLAGS..., under the command in $under
    engine=$1; shift
    case $engine in
        drumlin) set -- "$DRUMLIN" bench --use_searchable_table "$@" ;;
        rocksdb-snappy) set -- "$PEERS" bench --engine rocksdb --compression_type=snappy "$@" ;;
        rocksdb-zstd) set -- "$PEERS" bench --engine rocksdb --compression_type=zstd \
            --compression_max_dict_bytes=16384 "$@" ;;
    esac
    # shellcheck disable=SC2086
    $under "$@" 2>&1 | grep -E 'ops/sec|ercentile|rror|annot|ended' || echo "no answer: killed, or out of memory"
}

for engine in $ENGINES; do
    case $engine in rocksdb*) [ -n "$PEERS" ] || continue ;; esac
    db=$DIR/$engine
    under=
    rm -rf "$db"; mkdir -p "$db"
    echo "== $engine: load and compact"
    bench "$engine" --db="$db" --records="$rows" --batch_size=100 --disable_wal \
        --benchmarks=filluniquerandom,flush,waitforcompaction,compact,waitforcompaction
    stored=$(du -sb "$db" | cut -f1)
    echo "directory: $stored bytes of $BYTES, 1/$((BYTES / stored)).$((BYTES * 100 / stored % 100))"
    # Written pages would be served from memory that is charged to nobody.
    sync
    find "$db" -type f -exec dd if={} iflag=nocache count=0 status=none \;
    for share in $SHARES; do
        memory=$((BYTES / 1000 * share))
        under="$DRUMLIN lab limited --db $db --memory $((memory + own)) --"
        for range in 0 "$zipf"; do
            echo "== $engine: $THREADS readers in $memory bytes of memory, skew $range"
            # What the run before left in memory went with its group, so each warms up first.
            bench "$engine" --db="$db" --records="$keys" --use_existing_db --threads="$THREADS" --histogram \
                --read_random_exp_range="$range" --duration="$SECONDS_EACH" --cache_size=$((memory / 2)) \
                --benchmarks=readrandom,readrandom
        done
    done
    rm -rf "$db"
done
rm -f "$rows" "$keys"
