#!/usr/bin/env bash
# Random commands beside Debian's redis-server: COMMANDS (10,000,000) of them, shared out among the tests of `tests/beside` that draw
# commands, from the seed SEED (1) on. Each test leaves a line; where one fails, its log stays in target/redis-differential and the
# script ends with an error. What may differ is declared in those tests.
#   COMMANDS=100000 crates/redis/differential.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
commands=${COMMANDS:-10000000}
export REDIS_SEED=${SEED:-1}
out=target/redis-differential
mkdir -p "$out"
command -v redis-server > /dev/null || { echo "redis-server is not installed" >&2; exit 1; }
program=$(cargo test --locked -p drumlin-redis --test beside --no-run --message-format=json 2> "$out/build.log" |
  sed -n 's/.*"executable":"\([^"]*beside-[^"]*\)".*/\1/p') || { cat "$out/build.log" >&2; exit 1; }
# Hundredths of all commands for each test.
shares="strings::random_commands_of_strings_and_keys_answer_as_redis_does 25
elements::small_hashes_and_sets_answer_as_redis_does 10
elements::large_hashes_and_sets_answer_as_redis_does 10
zset::small_sorted_sets_answer_as_redis_does 8
zset::large_sorted_sets_answer_as_redis_does 8
list::short_lists_answer_as_redis_does 6
list::long_lists_answer_as_redis_does 6
stream::streams_answer_as_redis_does 4
stream::groups_answer_as_redis_s_do 4
bits::bits_fields_and_lcs_answer_as_redis_does 4
geo::places_answer_as_redis_does 3
hyperloglog::hyperloglogs_are_redis_s_to_the_byte 2
sort::sorted_elements_are_those_of_redis 2
sort::texts_are_sorted_by_other_keys 1
script::commands_of_scripts_answer_as_redis_does 2
together::all_types_and_clients_together_answer_as_redis_does 5"
failed=0 sum=0
cd crates/redis
while read -r test share; do
  export REDIS_COMMANDS=$((commands * share / 100))
  log=../../$out/${test%%::*}-${test##*::}.log began=$(date +%s)
  if "$program" --exact "$test" --nocapture > "$log" 2>&1 && grep -q "^test result: ok. 1 passed" "$log"; then
    sum=$((sum + REDIS_COMMANDS))
    echo "$test: $REDIS_COMMANDS commands the same, $(($(date +%s) - began)) s"
    rm "$log"
  else
    failed=1
    echo "$test: failed at $(grep -a '^seed' "$log" | tail -1); see $log"
  fi
done <<< "$shares"
echo "$sum commands from seed $REDIS_SEED on, all the same where nothing failed"
exit $failed
