#!/usr/bin/env bash
# One C program over Drumlin's librocksdb and over Debian's, in turn: microseconds a call, medians of ROUNDS (5), and how many times as
# fast ours is, with the spread over the rounds. `make capi` builds ours.
#   crates/capi/beside.sh [ROUNDS] [KEYS] [bench|bench_transactions|bench_queue|bench_families]
set -euo pipefail
rounds=${1:-5} keys=${2:-1000000} program=${3:-bench}
here=$(dirname "$0") capi=target/capi/rocksdb
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cc -O2 -o "$dir/ours" "$here/$program.c" -I"$capi/include" -L"$capi/lib" -lrocksdb -pthread
cc -O2 -o "$dir/theirs" "$here/$program.c" -lrocksdb -pthread
for round in $(seq "$rounds"); do
  order="ours theirs"; [ $((round % 2)) = 1 ] || order="theirs ours"
  for which in $order; do
    LD_LIBRARY_PATH=$([ $which = ours ] && echo "$capi/lib") "$dir/$which" "$dir/$which.db" "$keys" 2> /dev/null |
      sed "s/^/$which $round /"
    rm -rf "$dir/$which.db"
  done
done | awk '
  { time[$1, $3, $2] = $4; if ($2 > rounds) rounds = $2; if (!($3 in seen)) { seen[$3]; name[++names] = $3 } }
  END {
    printf "%-16s %10s %10s  %s\n", "", "rocksdb", "drumlin", "times as fast (least-most)"
    for (n = 1; n <= names; n++) {
      for (i = 1; i <= rounds; i++) {
        a[i] = time["theirs", name[n], i]; b[i] = time["ours", name[n], i]; r[i] = a[i] / b[i]
      }
      sort(a, rounds); sort(b, rounds); sort(r, rounds); m = int((rounds + 1) / 2)
      printf "%-16s %10.3f %10.3f  %.2f (%.2f-%.2f)\n", name[n], a[m], b[m], r[m], r[1], r[rounds]
    }
  }
  function sort(list, n,   i, j, held) {
    for (i = 2; i <= n; i++) { held = list[i]; for (j = i - 1; j >= 1 && list[j] > held; j--) list[j + 1] = list[j]; list[j + 1] = held }
  }'
