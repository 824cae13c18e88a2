#!/usr/bin/env bash
# Random commands beside other servers of MongoDB's protocol: mongo-java-server from Maven Central and FerretDB with SQLite, as a Go
# module, which are fetched and started here, and those that run at PEERS ("27101 27102": their ports). OPERATIONS (100,000), SEED (1),
# DRUMLIN (target/debug/drumlin), PORT (27410 and the next one). See run.py. Needs go and mvn; the work is in target/mongo-differential.
#   cargo install secantus-mdb && secantusd-rs --standalone --port 27101 --storage-path DIR
#   PEERS=27101 crates/mongo/differential/run.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=$root/target/mongo-differential
port=${PORT:-27410}
rm -rf "$work/data"
mkdir -p "$work/data"
cp -r "$here/peers/." "$work"
started=()
stop() { for pid in "${started[@]}"; do kill "$pid" 2> /dev/null || true; done; }
trap stop EXIT

(cd "$work/go" && GOFLAGS=-mod=readonly go build -o peer .)
"$work/go/peer" $((port + 1)) "$work/data" > "$work/go.log" 2>&1 & started+=($!)
cd "$work/java"
mvn -q -B compile
PEER_PORT=$port mvn -q -B exec:java > "$work/java.log" 2>&1 & started+=($!)
cd "$root"
for peer in "$port" $((port + 1)); do
  for try in $(seq 300); do
    (exec 3<> "/dev/tcp/127.0.0.1/$peer") 2> /dev/null && break
    test "$try" -lt 300 || { echo "a peer does not start: see $work" >&2; exit 1; }
    sleep 0.1
  done
done
DRUMLIN=${DRUMLIN:-$root/target/debug/drumlin} "$root/target/mongo/venv/bin/python" "$here/run.py" ${PEERS:-} "$port" $((port + 1))
