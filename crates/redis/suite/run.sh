#!/usr/bin/env bash
# Redis's own test suite against the server, beside Debian's redis-server.
#
#   crates/redis/suite/run.sh [UNIT ...]     # all units that have an external form, or some: unit/type/list unit/scan
#
# The suite is that of Debian's source package of Redis, fetched into target/redis-suite and kept nowhere else; it needs `apt-get`,
# `dpkg-dev` and `tcl`. Each unit runs against a fresh redis-server and a fresh server of ours, in external mode: tests that
# start servers of their own are left out by the suite itself. What redis-server passes counts; `skip.txt` names
# tests that neither runs, each with a reason. TAGS, FLAGS: for the suite, as in `FLAGS="--singledb"`. DRUMLIN: the program.
set -euo pipefail
cd "$(dirname "$0")/../../.."
here=$PWD/crates/redis/suite
drumlin=${DRUMLIN:-$PWD/target/release/drumlin}
work=$PWD/target/redis-suite
port=${PORT:-21879}
units=("$@")
if [ ${#units[@]} -eq 0 ]; then
  units=(unit/printver unit/auth unit/protocol unit/keyspace unit/scan unit/info unit/info-command unit/type/string
    unit/type/incr unit/type/list unit/type/list-2 unit/type/list-3 unit/type/set unit/type/zset unit/type/hash
    unit/type/stream unit/type/stream-cgroups unit/sort unit/expire unit/other unit/multi unit/quit unit/aofrw unit/acl
    unit/acl-v2 unit/latency-monitor unit/dump unit/pubsub unit/pubsubshard unit/slowlog unit/scripting unit/functions
    unit/maxmemory unit/introspection unit/introspection-2 unit/limits unit/obuf-limits unit/bitops unit/bitfield unit/geo
    unit/memefficiency unit/hyperloglog unit/lazyfree unit/wait unit/pause unit/querybuf unit/pendingquerybuf unit/tracking
    unit/networking unit/client-eviction unit/replybufsize)
fi

fetch() {
  [ -d "$work/redis" ] && return
  mkdir -p "$work"
  # The sources of what the machine's packages come from.
  mkdir -p "$work/lists"
  sed 's/^Types: deb$/Types: deb-src/; s/^deb /deb-src /' /etc/apt/sources.list.d/debian.sources > "$work/lists/sources.sources"
  options=(-o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$work/lists" -o "Dir::State::lists=$work/lists/state")
  mkdir -p "$work/lists/state/partial"
  apt-get "${options[@]}" update -qq
  (cd "$work" && apt-get "${options[@]}" source -qq redis)
  mv "$work"/redis-7.* "$work/redis"
  ln -sf "$(command -v redis-cli)" "$work/redis/src/redis-cli"
  ln -sf "$(command -v redis-benchmark)" "$work/redis/src/redis-benchmark"
}

wait_for() {
  for _ in $(seq 100); do
    redis-cli -p "$port" ping > /dev/null 2>&1 && return
    sleep 0.1
  done
  echo "the server does not answer" >&2
  return 1
}

start() { # theirs|ours, directory
  rm -rf "$2" && mkdir -p "$2"
  if [ "$1" = theirs ]; then
    redis-server --port "$port" --dir "$2" --enable-debug-command yes --enable-protected-configs yes --save "" > "$2/log" 2>&1 &
  else
    "$drumlin" redis --dir "$2/data" --port "$port" --set enable-debug-command=yes --set enable-protected-configs=yes > "$2/log" 2>&1 &
  fi
  server=$!
  wait_for
}

stop() {
  kill "$server" 2> /dev/null || true
  # A script without an end keeps redis-server from ending.
  for _ in $(seq 100); do
    kill -0 "$server" 2> /dev/null || break
    sleep 0.1
  done
  kill -9 "$server" 2> /dev/null || true
  wait "$server" 2> /dev/null || true
}

unit() { # theirs|ours, unit: its output into a file
  local log=$work/$1/${2//\//-}.log
  mkdir -p "$work/$1"
  start "$1" "$work/$1-server"
  (cd "$work/redis" && timeout 400 tclsh tests/test_helper.tcl --host 127.0.0.1 --port "$port" --ignore-encoding --durable --clients 1 --baseport $((port + 100)) \
    --timeout 180 --skipfile "$work/skip" ${TAGS:+--tags "$TAGS"} ${FLAGS:-} --single "$2") > "$log" 2>&1 || true
  stop
  sed -e 's/\x1b\[[0-9;]*m//g' "$log" | sed -n 's/^\[ok\]: \(.*\) ([0-9]* ms)$/\1/p' | sort | uniq -c > "$log.passed"
}

total() { awk '{ sum += $1 } END { print sum + 0 }' "$1"; }

fetch
sed '/^#/d; /^$/d' "$here/skip.txt" > "$work/skip"
trap stop EXIT
printf '%-28s %8s %8s  %s\n' unit redis ours 'passed by Redis only'
passed=0 of=0
for name in "${units[@]}"; do
  unit theirs "$name"
  unit ours "$name"
  file=${name//\//-}.log.passed
  theirs=$(total "$work/theirs/$file")
  # Tests of one name count as often as both pass them.
  both=$(awk 'NR == FNR { ours[substr($0, 9)] = $1; next } { n = ours[substr($0, 9)] + 0; sum += (n < $1 ? n : $1) } END { print sum + 0 }' \
    "$work/ours/$file" "$work/theirs/$file")
  printf '%-28s %8d %8d\n' "$name" "$theirs" "$both"
  awk 'NR == FNR { ours[substr($0, 9)] = $1; next } ours[substr($0, 9)] + 0 < $1 { print "    " substr($0, 9) }' \
    "$work/ours/$file" "$work/theirs/$file"
  passed=$((passed + both)) of=$((of + theirs))
done
printf '%-28s %8d %8d  %s %%\n' all "$of" "$passed" "$(awk "BEGIN { printf \"%.2f\", 100 * $passed / ($of ? $of : 1) }")"
