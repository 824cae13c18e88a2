#!/usr/bin/env bash
# Our server and Debian's redis-server (append-only file, synced every second), in turn on the same machine, by
# redis-benchmark: requests a second of each, and the ratios of ours to theirs, their median and their spread. Before that a million
# values are set in each, of keys that GET and INCR then ask for. Before each test both rest for REST (3) seconds.
#   crates/redis/beside.sh [ROUNDS] [PIPELINE] [REQUESTS] [TESTS] [REST]
set -euo pipefail
rounds=${1:-5} pipeline=${2:-16} requests=${3:-500000}
tests=${4:-ping_mbulk,set,get,incr,hset,sadd,zadd,lpush,rpop,spop,mset}
rest=${5:-3}
program=${DRUMLIN:-target/release/drumlin}
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$dir"' EXIT
mkdir "$dir/theirs" "$dir/ours"
redis-server --port 7101 --dir "$dir/theirs" --appendonly yes --appendfsync everysec --save "" > /dev/null &
"$program" redis --dir "$dir/ours" --port 7102 > /dev/null &
for port in 7101 7102; do
  until redis-cli -p $port ping > /dev/null 2>&1; do sleep 0.1; done
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
      redis-benchmark -p "$port" -t "$test" -n "$requests" -P "$pipeline" -d 128 -r 1000000 -c 50 --csv 2> /dev/null |
        sed -n "s/^\"\([^\"]*\)\",\"\([0-9.]*\)\".*/$port,\1,\2/p"
    done
  done
done | awk -F, '
  { rate[$1, $2, ++count[$1, $2]] = $3; if (!($2 in seen)) { seen[$2]; name[++names] = $2 } }
  END {
    printf "%-36s %12s %12s  %s\n", "test", "redis-server", "drumlin", "ratio (least-most)"
    for (n = 1; n <= names; n++) {
      test = name[n]; rounds = count["7101", test]
      for (i = 1; i <= rounds; i++) {
        theirs[i] = rate["7101", test, i]; ours[i] = rate["7102", test, i]; ratio[i] = ours[i] / theirs[i]
      }
      sort(theirs, rounds); sort(ours, rounds); sort(ratio, rounds); middle = int((rounds + 1) / 2)
      printf "%-36s %12d %12d  %.2f (%.2f-%.2f)\n", test, theirs[middle], ours[middle], ratio[middle], ratio[1], ratio[rounds]
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
