#!/usr/bin/env bash
# YCSB (its own core, by MongoDB's driver for Java) over `drumlin mongo`: load one by one and in batches of 100, then workloads A to F, with
# data integrity, so that every field that is read is compared with what was written for it. A line a run: operations a second, latency,
# what was answered wrongly, and the server's processor time an operation.
#
#   RECORDS=1000000 OPERATIONS=500000 THREADS=4 crates/mongo/ycsb/run.sh
#   PEER='secantusd --port {port} --dir {dir}' crates/mongo/ycsb/run.sh      # the same over another server, in turn
#
# PROGRAM: the server's (target/release/drumlin); PORT: where it listens (27500); WORKLOADS: some of "load batch a b c d e f"; ROUNDS.
# FLAGS: more for drumlin mongo. The work is in target/ycsb.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
program=${PROGRAM:-$root/target/release/drumlin} port=${PORT:-27500}
records=${RECORDS:-100000} operations=${OPERATIONS:-100000} threads=${THREADS:-4} rounds=${ROUNDS:-1}
work=$root/target/ycsb
mkdir -p "$work" && cp -r "$root/crates/mongo/ycsb/." "$work"
cd "$work"
mvn -q -B compile dependency:build-classpath
pid=
stop() { test -z "$pid" || { kill "$pid" && wait "$pid" || true; }; pid=; }
trap stop EXIT

start() { # NAME: that server over an empty directory
  stop
  rm -rf data && mkdir data
  case $1 in
    drumlin) "$program" mongo --dir data --port "$port" ${FLAGS-} > server.log 2>&1 & ;;
    *) command=${PEER//\{port\}/$port}; sh -c "exec ${command//\{dir\}/$work/data}" > peer.log 2>&1 & ;;
  esac
  pid=$!
  for _ in $(seq 500); do
    (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null && return
    kill -0 "$pid" 2> /dev/null || break
    sleep 0.02
  done
  echo "the server $1 does not start: see $work" >&2
  exit 1
}
ticks() { awk '{ print $14 + $15 }' "/proc/$pid/stat"; }

ycsb() { # NAME LABEL properties...: one run
  name=$1 label=$2; shift 2
  before=$(ticks)
  java -cp "target/classes:$(cat target/classpath)" site.ycsb.Client -db DocumentBinding -s -threads "$threads" \
    -p workload=site.ycsb.workloads.CoreWorkload -p mongodb.url="mongodb://127.0.0.1:$port/?w=1" -p recordcount="$records" \
    -p operationcount="$operations" -p dataintegrity=true -p fieldlengthdistribution=constant -p measurementtype=hdrhistogram \
    "$@" > "out.$name.$label" 2> "err.$name.$label" || { cat "err.$name.$label" >&2; exit 1; }
  after=$(ticks)
  awk -v name="$name" -v label="$label" -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" -F', ' '
    $1 == "[OVERALL]" && $2 == "Throughput(ops/sec)" { rate = $3 }
    $1 ~ /^\[(READ|UPDATE|INSERT|SCAN|READ-MODIFY-WRITE)\]$/ && $2 == "Operations" { all += $3 }
    $1 ~ /^\[(READ|UPDATE|INSERT|SCAN|READ-MODIFY-WRITE)\]$/ && $2 == "99thPercentileLatency(us)" { name_of = tolower($1); gsub(/[][]/, "", name_of); slow = slow " " name_of " " $3 }
    $2 ~ /^Return=/ && $2 !~ /=(OK|BATCHED_OK)$/ { wrong += $3 }
    $1 == "[VERIFY]" && $2 == "Return=OK" { verified = $3 }
    END { printf "%-10s %-6s %9.0f a second  wrong %d  compared %d  server %.1f us  p99 us:%s\n", name, label, rate, wrong, verified, ticks / hz * 1e6 / all, slow }
  ' "out.$name.$label"
}

run() { # NAME WORKLOAD
  zipf="-p requestdistribution=zipfian"
  case $2 in
    load) start "$1"; ycsb "$1" load -load ;;
    batch) start "$1"; ycsb "$1" batch -load -p batchsize=100 ;;
    a) ycsb "$1" a $zipf -p readproportion=0.5 -p updateproportion=0.5 ;;
    b) ycsb "$1" b $zipf -p readproportion=0.95 -p updateproportion=0.05 ;;
    c) ycsb "$1" c $zipf -p readproportion=1 -p updateproportion=0 ;;
    d) ycsb "$1" d -p requestdistribution=latest -p readproportion=0.95 -p updateproportion=0 -p insertproportion=0.05 ;;
    # Its inserts begin behind the records that were loaded, where those of d have begun too: so it has a load of its own.
    e) start "$1"; ycsb "$1" again -load -p batchsize=100
       ycsb "$1" e $zipf -p readproportion=0 -p updateproportion=0 -p scanproportion=0.95 -p insertproportion=0.05 -p maxscanlength=100 ;;
    f) ycsb "$1" f $zipf -p readproportion=0.5 -p updateproportion=0 -p readmodifywriteproportion=0.5 ;;
    *) echo "no such workload: $2" >&2; exit 1 ;;
  esac
}

for _ in $(seq "$rounds"); do
  for name in drumlin ${PEER:+peer}; do
    for workload in ${WORKLOADS:-load batch a b c f d e}; do run "$name" "$workload"; done
  done
done
