#!/usr/bin/env bash
# Our server and Debian's redis-server (append-only file, synced every second), in turn on the same machine, by
# redis-benchmark: requests a second of each, and the ratios of ours to theirs, their median and their spread; and the medians of the
# processor time that each server took, all its threads together, in microseconds a request. Before that a million values are set
# in each, of keys that GET and INCR then ask for. Before each test both rest for REST (3) seconds. FLAGS are more of ours, and
# BESIDE another build of ours, to be compared with instead of redis-server.
#   crates/redis/beside.sh [ROUNDS] [PIPELINE] [REQUESTS] [TESTS] [REST]
set -euo pipefail
rounds=${1:-5} pipeline=${2:-16} requests=${3:-500000}
tests=${4:-ping_mbulk,set,get,incr,hset,sadd,zadd,lpush,rpop,spop,mset}
rest=${5:-3}
program=${DRUMLIN:-target/release/drumlin}
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$dir"' EXIT
mkdir "$dir/theirs" "$dir/ours"
if [ -n "${BESIDE:-}" ]; then
  "$BESIDE" redis --dir "$dir/theirs" --port 7101 > "$dir/7101.log" 2>&1 &
else
  redis-server --port 7101 --dir "$dir/theirs" --appendonly yes --appendfsync everysec --save "" > "$dir/7101.log" 2>&1 &
fi
declare -A pids=([7101]=$!)
# shellcheck disable=SC2086
"$program" redis --dir "$dir/ours" --port 7102 ${FLAGS:-} > "$dir/7102.log" 2>&1 &
pids[7102]=$!
# Ticks that a server took so far.
ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/${pids[$1]}/stat"; }
# Waits for half a minute, or until the process is gone, and then shows what it said.
await() {
  for _ in $(seq 300); do
    kill -0 "${pids[$1]}" 2> /dev/null || break
    redis-cli -p "$1" ping > /dev/null 2>&1 && return
    sleep 0.1
  done
  echo "the server at port $1 does not answer; its log ends with:" >&2
  tail -20 "$dir/$1.log" >&2
  exit 1
}
for port in 7101 7102; do
  await $port
  redis-benchmark -p $port -t set -n 2000000 -P 64 -d 128 -r 1000000 -c 50 -q > /dev/null 2>&1
done
sleep 10
for round in $(seq "$rounds"); do
  # The first one changes from round to round.
  ports=$((round % 2)); ports=$([ $ports = 1 ] && echo 7101 7102 || echo 7102 7101)
  for test in ${tests//,/ }; do
    for port in $ports; do
      # What the test before left to be flushed, compacted or synced is not this one's cost.
      sleep "$rest"
      before=$(ticks "$port")
      result=$(redis-benchmark -p "$port" -t "$test" -n "$requests" -P "$pipeline" -d 128 -r 1000000 -c 50 --csv 2> /dev/null)
      micros=$(((($(ticks "$port") - before)) * 1000000 / $(getconf CLK_TCK)))
      sed -n "s/^\"\([^\"]*\)\",\"\([0-9.]*\)\".*/$port,\1,\2,$micros/p" <<< "$result"
    done
  done
done | awk -F, -v requests="$requests" '
  { rate[$1, $2, ++count[$1, $2]] = $3; took[$1, $2, count[$1, $2]] = $4 / requests; if (!($2 in seen)) { seen[$2]; name[++names] = $2 } }
  END {
    printf "%-36s %12s %12s  %-20s %s\n", "test", "the other", "drumlin", "ratio (least-most)", "processor time"
    for (n = 1; n <= names; n++) {
      test = name[n]; rounds = count["7101", test]
      for (i = 1; i <= rounds; i++) {
        theirs[i] = rate["7101", test, i]; ours[i] = rate["7102", test, i]; ratio[i] = ours[i] / theirs[i]
        their[i] = took["7101", test, i]; our[i] = took["7102", test, i]
      }
      sort(theirs, rounds); sort(ours, rounds); sort(ratio, rounds); middle = int((rounds + 1) / 2)
      sort(their, rounds); sort(our, rounds)
      spread = sprintf("%.2f (%.2f-%.2f)", ratio[middle], ratio[1], ratio[rounds])
      printf "%-36s %12d %12d  %-20s %.2f %.2f\n", test, theirs[middle], ours[middle], spread, their[middle], our[middle]
    }
  }
  function sort(list, n,   i, j, held) {
    for (i = 2; i <= n; i++) {
      held = list[i]
      for (j = i - 1; j >= 1 && list[j] > held; j--) list[j + 1] = list[j]
      list[j + 1] = held
    }
  }'
redis-cli -p 7102 shutdown nosave || true
