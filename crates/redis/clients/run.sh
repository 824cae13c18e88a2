#!/usr/bin/env bash
# Client libraries and job queues of five languages against a server of ours: installs them by their lock files, starts the server,
# and runs each program, which does what applications do and ends with "N passed, M failed". Names of programs as arguments choose
# some. PROGRAM: the server's (target/release/drumlin); PORT: where it listens (7400). The work is in target/redis-clients.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
program=${PROGRAM:-$root/target/release/drumlin}
work=$root/target/redis-clients
export REDIS_PORT=${PORT:-7400}
export RESTART_SERVER=$work/restart
export CHECKS=$here/checks.js
export GOFLAGS=-mod=readonly CARGO_TARGET_DIR=$work/rust
mkdir -p "$work"

cat > "$RESTART_SERVER" <<END
#!/usr/bin/env bash
# Kills the server, if there is one, and starts it with the data that it had.
if test -e "$work/pid"; then
  kill -9 "\$(cat "$work/pid")"
  while kill -0 "\$(cat "$work/pid")" 2>/dev/null; do sleep 0.01; done
fi
"$program" redis --dir "$work/data" --port $REDIS_PORT >> "$work/server.log" 2>&1 &
echo \$! > "$work/pid"
for _ in \$(seq 500); do
  redis-cli -p $REDIS_PORT ping 2>/dev/null | grep -q PONG && exit 0
  sleep 0.02
done
echo "the server does not start" >&2
exit 1
END
chmod +x "$RESTART_SERVER"
stop() { test -e "$work/pid" && kill "$(cat "$work/pid")" 2>/dev/null; rm -f "$work/pid"; }
trap stop EXIT

# A copy of a program's folder, where its packages may be installed.
copy() { mkdir -p "$work/$1" && cp -r "$here/$1/." "$work/$1" && cd "$work/$1"; }
python() {
  copy "$1" && { test -x venv/bin/python || python3 -m venv venv; } &&
    venv/bin/pip install -q --require-hashes -r requirements.txt && venv/bin/python check.py
}
# The lock file counts. It may lack optional packages of other platforms, for which `npm ci` would refuse it.
node_js() { copy "$1" && npm install --no-save --ignore-scripts --no-audit --no-fund --silent && node check.js; }
go_lang() { copy "$1" && go build -o check . && ./check; }
maven() { copy "$1" && mvn -q -B compile exec:java; }
rust() { copy "$1" && cargo run -q --locked --release; }

declare -A runs=(
  [redis-py]=python [celery]=python [ioredis]=node_js [node-redis]=node_js [bullmq]=node_js
  [go-redis]=go_lang [asynq]=go_lang [jedis]=maven [redis-rs]=rust
)
failed=()
for name in ${@:-redis-py ioredis node-redis go-redis jedis redis-rs bullmq asynq celery}; do
  stop
  rm -rf "$work/data" && "$RESTART_SERVER" || exit 1
  echo "== $name"
  (${runs[$name]} "$name") || failed+=("$name")
done
test ${#failed[@]} = 0 || { echo "failed: ${failed[*]}"; exit 1; }
