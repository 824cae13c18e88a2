#!/usr/bin/env bash
# soak.sh HOURS (a fraction will do): campaigns one after the other until the time is over. Each leaves a
# line of JSON in target/soak/results.jsonl and what it said in target/soak/logs; seeds go on from the
# number of lines, so a run goes on where the one before ended. target/soak/totals.md adds up.
# `make soak` builds first.
set -uo pipefail
cd "$(dirname "$0")/../.."
hours=${1:?usage: soak.sh HOURS}
end=$(awk -v now="$(date +%s)" -v hours="$hours" 'BEGIN { printf "%d", now + hours * 3600 }')
out=target/soak
results=$out/results.jsonl
mkdir -p "$out/logs"
touch "$results"

# campaign NAME COUNT COMMAND...: runs it; its own line of JSON, or one that says COUNT operations.
campaign() {
  local name=$1 count=$2 log failed=0 line
  shift 2
  [ "$(date +%s)" -lt "$end" ] || return 0
  log=$out/logs/$name-$round.txt
  timeout 3600 "$@" >"$log" 2>&1 || failed=1
  line=$(grep -a '^{"campaign"' "$log" | tail -1)
  # Fuzzing says its rounds target by target.
  [ "$name" != fuzz ] || count=$(awk '/ rounds$/ { sum += $(NF - 1) } END { print sum + 0 }' "$log")
  if [ -z "$line" ] || [ "$failed" = 1 ]; then
    [ "$failed" = 0 ] || { count=0; echo "$name failed, see $log"; }
    line="{\"campaign\":\"$name\",\"seed\":$round,\"operations\":$count,\"failed\":$failed}"
  elif [ "$failed" = 0 ]; then
    rm -f "$log"
  fi
  echo "$line" >>"$results"
}

# A line for each campaign: runs, operations or deaths, failures.
totals() {
  echo "| campaign | runs | operations | deaths | failures |"
  echo "| --- | ---: | ---: | ---: | ---: |"
  tr -d '{}"' <"$results" | awk -F, '{
    for (i = 1; i <= NF; i++) { split($i, pair, ":"); field[pair[1]] = pair[2] }
    name = field["campaign"]; runs[name]++; failed[name] += field["failed"]
    operations[name] += field["operations"]; deaths[name] += field["cycles"]; delete field
  } END {
    for (name in runs)
      printf "| %s | %d | %d | %d | %d |\n", name, runs[name], operations[name], deaths[name], failed[name]
  }' | sort
}

newest() { ls -t target/release/deps/"$1"-* | grep -v '\.d$' | head -1; }

while [ "$(date +%s)" -lt "$end" ]; do
  round=$(wc -l <"$results")
  campaign metamorphic 0 target/release/metamorphic run --seed $((1000 + round * 100)) --seeds 100 \
    --ops 1000 --seconds 300 --out "$out/metamorphic"
  campaign crash-loop 0 target/release/crashloop run --seed $((round * 7 + 1)) --cycles 1000 --seconds 300
  campaign crash-loop 0 target/release/crashloop run --seed $((round * 7 + 2)) --cycles 200 --seconds 120 --disk
  # The targets' own numbers of rounds: some take a thousand times as long as others.
  campaign fuzz 0 env DRUMLIN_FUZZ_SEED=$((round + 2)) "$(newest replay)" every_target --nocapture
  campaign differential 400000 env DRUMLIN_DIFFERENTIAL_SEED=$((round * 10)) \
    DRUMLIN_DIFFERENTIAL_OPS=100000 "$(newest differential)"
  totals >"$out/totals.md"
done
totals
