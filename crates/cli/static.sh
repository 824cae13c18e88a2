#!/bin/sh
# The command in a root with nothing else in it: no libraries, no /proc, no /dev, no /tmp.
#   static.sh PROGRAM
set -eu
program=$1
root=$(mktemp -d)
trap 'kill $server 2>/dev/null || true; rm -rf "$root"' EXIT
server=
cp "$program" "$root/drumlin"
run() {
  chroot "$root" /drumlin --db /data "$@"
}

printf 'b\t2\nc\t3\n' | run load -
run put a 1
test "$(run scan)" = "$(printf 'a\t1\nb\t2\nc\t3')"
run compact
run verify
run checkpoint /copy
chroot "$root" /drumlin --db /copy get c | grep -qx 3
run bench --benchmarks=fillrandom,readrandom --num=100000 --db=/bench
chroot "$root" /drumlin redis --dir /redis --port 16379 > "$root/log" 2>&1 &
server=$!
for _ in $(seq 100); do
  redis-cli -p 16379 ping 2>/dev/null | grep -q PONG && break
  sleep 0.1
done
test "$(redis-cli -p 16379 set greeting hello)" = OK
test "$(redis-cli -p 16379 eval 'return redis.call("get", KEYS[1])' 1 greeting)" = hello
kill "$server"
wait "$server"
server=
ls -l "$program"
