#!/usr/bin/env bash
# ZRANK in a sorted set of MEMBERS (1,000,000): our server, Debian's redis-server, and what Kvrocks would do on RocksDB, in turn, ROUNDS (5)
# times. The servers are asked by one connection of redis-benchmark that waits for each reply; Kvrocks's way is a program that asks
# RocksDB itself (crates/bench-peers), without a server. Members are chosen at random, and their ranks compared with what they must be.
#   PEERS=crates/bench-peers/target/release/peers crates/redis/zrank.sh
set -euo pipefail
members=${MEMBERS:-1000000} rounds=${ROUNDS:-5}
program=${DRUMLIN:-target/release/drumlin} peers=${PEERS:-crates/bench-peers/target/release/peers}
[ -x "$peers" ] || { echo "$peers is not there: see crates/bench-peers/README.md" >&2; exit 1; }
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$dir"' EXIT
mkdir "$dir/theirs"
redis-server --port 7121 --dir "$dir/theirs" --save "" > "$dir/7121.log" 2>&1 &
"$program" redis --dir "$dir/ours" --port 7122 > "$dir/7122.log" 2>&1 &
for port in 7121 7122; do
  for _ in $(seq 300); do redis-cli -p $port ping > /dev/null 2>&1 && break; sleep 0.1; done
  redis-cli -p $port ping > /dev/null || { tail -20 "$dir/$port.log" >&2; exit 1; }
  # The score of member i is i * 7919 modulo their number, and so is its rank.
  awk -v n="$members" 'BEGIN {
    for (i = 0; i < n; i++) {
      if (i % 100 == 0) printf "%sZADD ranks", i ? "\r\n" : ""
      printf " %d member:%012d", i * 7919 % n, i
    }
    printf "\r\n"
  }' | redis-cli -p $port --pipe > "$dir/fill.log"
done
redis-cli -p 7122 compact > /dev/null
until redis-cli -p 7122 info stats | grep -q '^compactions_asked_for:0'; do sleep 0.2; done
for i in 0 1 17 $((members / 2)) $((members - 1)); do
  for port in 7121 7122; do
    rank=$(redis-cli -p $port zrank ranks "$(printf 'member:%012d' "$i")")
    [ "$rank" = $((i * 7919 % members)) ] || { echo "port $port: the rank of member $i is $rank" >&2; exit 1; }
  done
done
"$peers" kvrocks-ranks "$dir/kvrocks" --members "$members" --lookups 1 > /dev/null
for round in $(seq "$rounds"); do
  for port in 7121 7122; do
    rate=$(redis-benchmark -p $port -c 1 -n 40000 -r "$members" --csv zrank ranks member:__rand_int__ 2> /dev/null |
      awk -F'"' '$4 > 0 { rate = $4 } END { print rate }')
    echo "$port $(awk "BEGIN { print 1e6 / $rate }")"
  done
  echo "kvrocks $("$peers" kvrocks-ranks "$dir/kvrocks" --members "$members" --lookups 20 --seed "$round" | cut -d' ' -f1)"
done | awk -v members="$members" '
  { took[$1, ++count[$1]] = $2 }
  END {
    n = count["kvrocks"]
    for (i = 1; i <= n; i++) {
      ours[i] = took["7122", i]; theirs[i] = took["7121", i]; replayed[i] = took["kvrocks", i]
      of_theirs[i] = theirs[i] / ours[i]; of_replayed[i] = replayed[i] / ours[i]
    }
    sort(ours, n); sort(theirs, n); sort(replayed, n); sort(of_theirs, n); sort(of_replayed, n); m = int((n + 1) / 2)
    printf "ZRANK among %d members, microseconds, medians of %d rounds\n", members, n
    printf "drumlin %.1f, redis-server %.1f, ratio %.2f (%.2f-%.2f)\n", ours[m], theirs[m], of_theirs[m], of_theirs[1], of_theirs[n]
    printf "drumlin %.1f, Kvrocks replayed %.0f, ratio %.0f (%.0f-%.0f)\n", ours[m], replayed[m], of_replayed[m], of_replayed[1], of_replayed[n]
  }
  function sort(list, n,   i, j, held) {
    for (i = 2; i <= n; i++) {
      held = list[i]
      for (j = i - 1; j >= 1 && list[j] > held; j--) list[j + 1] = list[j]
      list[j + 1] = held
    }
  }'
redis-cli -p 7122 shutdown nosave > /dev/null 2>&1 || true
