#!/usr/bin/env bash
# MongoDB's drivers for seven languages, an old one of Python's, and mongosh against a server of ours: installs them by their lock files
# (C and PHP from Debian), starts the server anew for each, and runs a program that does what applications do and ends with
# "N passed, M failed". All do the same, as far as the driver has it: single writes and their counts, 10,000 documents through a cursor,
# mixed bulks, duplicates, indexes, pipelines, findAndModify, every type to and fro, eight workers on one counter, compressed messages,
# sessions, GridFS, what is refused by name, and a server that is killed in the middle. Names as arguments choose some.
# PROGRAM: the server's (target/release/drumlin); PORT: where it listens (27400). The work is in target/mongo-drivers.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
program=${PROGRAM:-$root/target/release/drumlin}
work=$root/target/mongo-drivers
export MONGO_PORT=${PORT:-27400}
export MONGO_URI=mongodb://127.0.0.1:$MONGO_PORT/
export RESTART_SERVER=$work/restart
export GOFLAGS=-mod=readonly CARGO_TARGET_DIR=$work/rust-target
mkdir -p "$work"

cat > "$RESTART_SERVER" <<END
#!/usr/bin/env bash
# Kills the server, if there is one, and starts it with the data that it had.
if test -e "$work/pid"; then
  kill -9 "\$(cat "$work/pid")"
  while kill -0 "\$(cat "$work/pid")" 2>/dev/null; do sleep 0.01; done
fi
"$program" mongo --dir "$work/data" --port $MONGO_PORT >> "$work/server.log" 2>&1 &
echo \$! > "$work/pid"
for _ in \$(seq 500); do
  (exec 3<> /dev/tcp/127.0.0.1/$MONGO_PORT) 2>/dev/null && exit 0
  sleep 0.02
done
echo "the server does not start: see $work/server.log" >&2
exit 1
END
chmod +x "$RESTART_SERVER"
stop() { test -e "$work/pid" && kill "$(cat "$work/pid")" 2>/dev/null; rm -f "$work/pid"; }
trap stop EXIT

# A copy of a program's folder, where its packages may be installed.
copy() { mkdir -p "$work/$1" && cp -r "$here/$1/." "$work/$1" && cd "$work/$1"; }
debian() { dpkg -s "$@" > /dev/null 2>&1 || { apt-get update -q && apt-get install -y -q "$@"; } > "$work/apt.log" 2>&1; }
python() {
  copy "$1" && { test -x venv/bin/python || python3 -m venv venv; } &&
    venv/bin/pip install -q --require-hashes -r requirements.txt && venv/bin/python -W ignore check.py
}
node_js() { copy "$1" && npm install --no-save --ignore-scripts --no-audit --no-fund --silent && node check.js; }
go_lang() { copy "$1" && go build -o check . && ./check; }
maven() { copy "$1" && mvn -q -B compile exec:java; }
rust() { copy "$1" && cargo run -q --locked --release; }
c() { debian libmongoc-dev pkg-config && copy "$1" && cc -Wall -o check check.c $(pkg-config --cflags --libs libmongoc-1.0) -lpthread && ./check; }
php_lang() { debian php-cli php-mongodb && copy "$1" && php check.php; }

declare -A runs=(
  [node]=node_js [mongosh]=node_js [go]=go_lang [java]=maven [rust]=rust [c]=c [php]=php_lang [pymongo-3]=python
)
failed=()
for name in ${@:-node java go rust c php pymongo-3 mongosh}; do
  test -n "${runs[$name]-}" || { echo "no such program: $name; there are: ${!runs[*]}" >&2; exit 1; }
  stop
  rm -rf "$work/data" && "$RESTART_SERVER" || exit 1
  echo "== $name"
  (${runs[$name]} "$name") || failed+=("$name")
done
test ${#failed[@]} = 0 || { echo "failed: ${failed[*]}"; exit 1; }
