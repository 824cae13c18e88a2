#!/usr/bin/env bash
# A move from a live redis-server, and back: KEYS keys of all types in Debian's redis-server; a server of ours follows it while RATE
# writes a second go on, and all keys are compared; REPLICAOF NO ONE is the switch. Then writes go to ours, and the redis-server
# follows ours. PROGRAM: target/release/drumlin; the work is in target/redis-migrate; ports PORT and the two after.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
keys=${KEYS:-1000000} rate=${RATE:-20000} from=${PORT:-7410}
to=$((from + 1)) other=$((from + 2))
program=${PROGRAM:-$root/target/release/drumlin}
work=$root/target/redis-migrate
rm -rf "$work" && mkdir -p "$work/theirs"
pids=()
finish() { for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; }
trap finish EXIT

ask() { redis-cli -p "$@"; }
field() { ask "$1" info "$2" | tr -d '\r' | sed -n "s/^$3://p"; }
memory() { awk '/VmRSS|VmHWM/ { printf "%s %d MB ", $1, $2 / 1024 }' "/proc/$1/status"; }
now() { date +%s.%N; }
took() { awk "BEGIN { printf \"%.1f\", $2 - $1 }"; }
# Waits for a server, or shows what it said.
await() {
  for _ in $(seq 500); do ask "$1" ping 2>/dev/null | grep -q PONG && return; sleep 0.1; done
  echo "the server at port $1 does not answer; its log ends with:" >&2
  tail -20 "$2" >&2
  exit 1
}

redis-server --port "$from" --dir "$work/theirs" --save '' --client-output-buffer-limit "replica 4gb 4gb 0" \
  --repl-backlog-size 256mb --repl-diskless-sync yes --repl-diskless-sync-delay 0 --enable-debug-command local > "$work/theirs.log" &
theirs=$!
"$program" redis --dir "$work/ours" --port "$to" --set "client-output-buffer-limit=replica 4gb 4gb 0" \
  --set repl-backlog-size=256mb --set enable-debug-command=local > "$work/ours.log" 2>&1 &
ours=$!
# Takes DUMPs.
redis-server --port "$other" --dir "$work/theirs" --save '' --enable-debug-command local > "$work/other.log" &
pids+=("$theirs" "$ours" $!)
await "$from" "$work/theirs.log"
await "$to" "$work/ours.log"
await "$other" "$work/other.log"

began=$(now)
python3 "$root/crates/redis/migrate.py" fill "$keys" | ask "$from" --pipe > "$work/fill.log"
echo "filled: $(ask "$from" dbsize) keys in $(took "$began" "$(now)") s; redis-server: $(memory $theirs)"

# Writes until the file is gone.
touch "$work/writes"
python3 "$root/crates/redis/migrate.py" write "$from" "$rate" "$keys" "$work/writes" > "$work/writes.log" &
writer=$!
pids+=("$writer")
sleep 3

# Follows one from the other, and waits until it is as far.
follow() {
  local began
  began=$(now)
  ask "$1" replicaof 127.0.0.1 "$2" > "$work/replicaof.log"
  until test "$(field "$1" replication master_link_status)" = up; do sleep 0.2; done
  echo "$3: all data in $(took "$began" "$(now)") s; $(field "$2" replication master_repl_offset) bytes of changes"
  began=$(now)
  until test $(($(field "$2" replication master_repl_offset) - $(field "$1" replication slave_repl_offset))) -lt 4000000; do sleep 0.1; done
  echo "$3: as far as the primary after $(took "$began" "$(now)") s more"
}

# Ends the writes, and compares every key by what DEBUG DIGEST-VALUE makes of it, and its expiry; each hundredth also by what our DUMP
# of it is in a third server, a redis-server.
compare() {
  rm "$work/writes"
  wait "$writer"
  cat "$work/writes.log"
  # By then all has expired that was to.
  sleep 2
  until test "$(field "$2" replication master_repl_offset)" = "$(field "$1" replication slave_repl_offset)"; do sleep 0.1; done
  python3 "$root/crates/redis/migrate.py" compare "$from" "$to" "$other"
}

follow "$to" "$from" "in"
echo "memory: redis-server $(memory $theirs); ours $(memory $ours); on disk $(du -sm "$work/ours" | cut -f1) MB"
sleep "${LONGER:-10}"
compare "$to" "$from"
began=$(now)
ask "$to" replicaof no one
ask "$to" set switched yes
echo "switched in $(took "$began" "$(now)") s, redis-cli's start counted"

touch "$work/writes"
python3 "$root/crates/redis/migrate.py" write "$to" "$rate" "$keys" "$work/writes" > "$work/writes.log" &
writer=$!
pids+=("$writer")
sleep 3
follow "$from" "$to" "back"
echo "memory: redis-server $(memory $theirs); ours $(memory $ours)"
sleep "${LONGER:-10}"
compare "$from" "$to"
