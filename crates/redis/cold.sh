#!/usr/bin/env bash
# Data ten times the memory: uniform GETs of the server beside what the disk can read.
#   crates/redis/cold.sh [DIR] [MIB] [REQUESTS]
# The server gets a budget of MIB (256) in a control group of MIB + 64, page cache included, and ten times as much data: values
# of 1,000 bytes that do not compress, written and compacted. Then, in turn and three times: fio reads 4 KiB at random from a
# file as large as the data, past the page cache, 50 at a time; and redis-benchmark's 50 connections GET any key. Printed are reads a second, their
# ratio, the 50th and 99th percentile of the GETs, and what one costs the server: its own and the kernel's microseconds, read calls, and KB read. Needs fio, redis-tools, and the right to make control groups; where
# there is none, the figures are of the page cache, and the script says so.
set -euo pipefail
dir=${1:-target/redis-cold} mib=${2:-256} requests=${3:-300000}
program=${DRUMLIN:-target/release/drumlin} port=7111
command -v fio > /dev/null || { echo "fio is not installed" >&2; exit 1; }
rm -rf "$dir"; mkdir -p "$dir"
trap 'redis-cli -p $port shutdown nosave > /dev/null 2>&1; kill $(jobs -p) 2> /dev/null; wait; rm -rf "$dir"' EXIT
keys=$((mib * 10 * 1048576 / 1024))
server=("$program" redis --dir "$dir/data" --port $port --set "maxmemory=${mib}mb")
start() {
  "$@" > "$dir/out" 2>&1 &
  for _ in $(seq 600); do
    redis-cli -p $port ping > /dev/null 2>&1 && return 0
    kill -0 $! 2> /dev/null || return 1
    sleep 0.1
  done
  return 1
}
limited=("$program" lab limited --db "$dir" --memory "$(((mib + 64) * 1048576))" --)
start "${limited[@]}" "${server[@]}" || { echo "not in a control group: $(tail -1 "$dir/out")"; start "${server[@]}"; }

# redis-benchmark would send one value for all keys. So each is another piece of a MiB of random bytes, which a script makes and others cut.
redis-cli -p $port config set busy-reply-threshold 600000 > /dev/null
noise="local t = {} for i = 1, 131072 do t[i] = struct.pack('>d', math.random()) end redis.call('SET', 'noise', table.concat(t))"
fill="math.randomseed(ARGV[1]) local noise = redis.call('GET', 'noise') for i = ARGV[1], ARGV[2] - 1 do \
      local at = math.random(1, #noise - 1000) redis.call('SET', string.format('key:%012d', i), string.sub(noise, at, at + 999)) end"
redis-cli -p $port eval "$noise" 0 > /dev/null
for first in $(seq 0 1000 $((keys - 1))); do
  echo "EVAL \"$fill\" 0 $first $((first + 1000))"
done | redis-cli -p $port > /dev/null
redis-cli -p $port compact > /dev/null
until redis-cli -p $port info stats | grep -q '^compactions_asked_for:0'; do sleep 1; done
echo "$keys keys, $(du -sm "$dir/data" | cut -f1) MiB on disk, $(redis-cli -p $port info memory | sed -n 's/^used_memory_rss_human:\(.*\)\r/\1/p') in memory"

disk() {
  fio --name=read --filename="$dir/fio" --size="$((mib * 10))m" --rw=randread --bs=4k --direct=1 --ioengine=psync --numjobs=50 \
    --thread --group_reporting --time_based --runtime=10 --output-format=terse | cut -d';' -f8
}
pid=$(redis-cli -p $port info server | tr -d '\r' | sed -n 's/^process_id://p')
spent() {
  echo "$(cut -d' ' -f14,15 "/proc/$pid/stat") $(awk '/^(syscr|read_bytes)/ { print $2 }' "/proc/$pid/io" | tr '\n' ' ')"
}
for round in 1 2 3; do
  reads=$(disk)
  before=$(spent)
  redis-benchmark -p $port -c 50 -n "$requests" -r "$keys" --csv get key:__rand_int__ |
    awk -F'"' -v reads="$reads" -v round="$round" \
      'END { printf "round %d: disk %d/s, GET %d/s, ratio %.2f, p50 %s ms, p99 %s ms", round, reads, $4, $4 / reads, $10, $14 }'
  echo "$before $(spent)" | awk -v n="$requests" -v tick="$(getconf CLK_TCK)" \
    '{ printf ", a GET %.1f + %.1f us, %.2f calls, %.1f KB\n", ($5 - $1) * 1e6 / tick / n, ($6 - $2) * 1e6 / tick / n, ($7 - $3) / n, ($8 - $4) / n / 1024 }'
done
redis-cli -p $port info all | tr -d '\r' | grep -E '^(keyspace_hits|keyspace_misses|cold_commands|used_memory_rss_human|budget_.*):'
