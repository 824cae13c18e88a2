#!/usr/bin/env bash
# soak.sh HOURS (a fraction will do): every random suite in turn until the time is over, each for an equal
# slice. Each leaves a line of JSON in target/soak/results.jsonl and, where it failed, what it said in
# target/soak/logs; seeds go on from the number of lines, so a run goes on where the one before ended.
# target/soak/totals.md and totals.html add up (soak_totals.sh). `make soak` builds first.
set -uo pipefail
cd "$(dirname "$0")/../.."
hours=${1:?usage: soak.sh HOURS}
end=$(awk -v now="$(date +%s)" -v hours="$hours" 'BEGIN { printf "%d", now + hours * 3600 }')
# Seconds of a campaign: all nine have their turn at least once in a short run.
slice=$(awk -v hours="$hours" 'BEGIN { s = hours * 3600 / 9; printf "%d", (s < 10) ? 10 : (s > 300) ? 300 : s }')
out=target/soak
results=$out/results.jsonl
mkdir -p "$out/logs"
touch "$results"

# campaign NAME COMMAND...: runs it. Its own line of JSON goes into the results, or, of a test program, one
# that counts its operations; nothing is added when the command did that itself.
campaign() {
  local name=$1 log lines failed=0 line
  shift
  [ "$(date +%s)" -lt "$end" ] || return 0
  lines=$(wc -l <"$results")
  log=$out/logs/$name-$lines.txt
  timeout 3600 "$@" >"$log" 2>&1 || failed=1
  [ "$failed" = 0 ] || echo "$name failed, see $log"
  if [ "$(wc -l <"$results")" = "$lines" ]; then
    line=$(grep -a '^{"campaign"' "$log" | tail -1)
    # Whoever says that nothing failed and ends as if it had is not believed.
    [ "$failed" = 0 ] || line=${line/\"failed\":0/\"failed\":1}
    [ -n "$line" ] || line="{\"campaign\":\"$name\",\"seed\":$round,\"operations\":$(operations "$name" "$failed" "$log"),\"failed\":$failed}"
    echo "$line" >>"$results"
  fi
  [ "$failed" = 1 ] || rm -f "$log"
}

# operations NAME FAILED LOG: how many a test program did.
operations() {
  case $1/$2 in
    fuzz/*) awk '/ rounds$/ { sum += $(NF - 1) } END { print sum + 0 }' "$3" ;;
    differential/0) echo $((4 * differential_ops)) ;;
    *) awk '/^test result/ { sum += $4 } END { print sum + 0 }' "$3" ;;
  esac
}

newest() { ls -t target/release/deps/"$1"-* | grep -v '\.d$' | head -1; }

differential_ops=$((slice * 200))
slice_hours=$(awk -v slice="$slice" 'BEGIN { print slice / 3600 }')
while [ "$(date +%s)" -lt "$end" ]; do
  round=$(wc -l <"$results")
  campaign sim target/release/drumlin-sim --hours "$slice_hours" --out "$results"
  campaign cuts target/release/drumlin-sim --cuts 1000000000 --hours "$slice_hours" --out "$results"
  # Each store takes the seed after the one before, and no run makes a hundred of them.
  campaign crash-loop target/release/crashloop run --seed $((round * 300)) --cycles 1000 --seconds "$slice"
  campaign crash-loop target/release/crashloop run --seed $((round * 300 + 100)) --cycles 1000 --seconds "$slice" --power
  campaign crash-loop target/release/crashloop run --seed $((round * 300 + 200)) --cycles 1000 --seconds "$slice" --disk
  # The targets' own numbers of rounds: some take a thousand times as long as others.
  campaign fuzz env DRUMLIN_FUZZ_SEED=$((round + 2)) "$(newest replay)" every_target --nocapture
  campaign differential env DRUMLIN_DIFFERENTIAL_SEED=$((round * 10)) \
    DRUMLIN_DIFFERENTIAL_OPS=$differential_ops "$(newest differential)"
  # Last: on a busy machine a single list, under some sixty sets, can take minutes.
  campaign metamorphic target/release/metamorphic run --seed $((1000 + round * 100)) --seeds 100 \
    --ops 1000 --seconds "$slice" --out "$out/metamorphic"
  # Nothing random: once a run is enough, and only where there is time for it.
  if [ "$slice" = 300 ] && [ -z "${corrupted:-}" ]; then
    corrupted=1
    campaign corruption env DRUMLIN_EXHAUSTIVE=1 "$(newest faults)" corruption::
  fi
  crates/crashloop/soak_totals.sh md "$results" >"$out/totals.md"
  crates/crashloop/soak_totals.sh html "$results" >"$out/totals.html"
done
crates/crashloop/soak_totals.sh md "$results"
