#!/usr/bin/env bash
# The tests of rust-rocksdb, from crates.io, over Drumlin's librocksdb of that version's interface. Each runs in a process of its
# own: one that ends its process ends no other. What does not pass must be what `failing.tsv` lists, exactly; a listed test that
# passes is an error, too. Needs libclang, for bindgen, and what compiles Snappy, bzip2 and zlib.
#   crates/capi/rust-rocksdb/run.sh [FILTER]    tests with FILTER in their names only; then nothing is missed in the list
# LIBRARY: built by the caller in place of a development build.
set -euo pipefail
version=0.25.0 abi=11.8 filter=${1:-}
root=$(cd "$(dirname "$0")/../../.." && pwd)
here=$root/crates/capi/rust-rocksdb place=$root/target/rust-rocksdb
mkdir -p "$place"/{lib,include/rocksdb,fetch/src,tmp}
cd "$root"
if [ -z "${LIBRARY:-}" ]; then
  DRUMLIN_ABI=$abi cargo build --locked -q -p drumlin-capi
  LIBRARY=$root/target/debug/libdrumlin_rocksdb.so
fi
cp "$LIBRARY" "$place/lib/librocksdb.so.$abi"
ln -sf librocksdb.so.$abi "$place/lib/librocksdb.so"
sed "s|define DRUMLIN_ROCKSDB_ABI .*|define DRUMLIN_ROCKSDB_ABI 1108|" crates/capi/include/rocksdb/c.h > "$place/include/rocksdb/c.h"

if [ ! -e "$place/crate-$version" ]; then
  printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nrocksdb = "=%s"\n[workspace]\n' $version \
    > "$place/fetch/Cargo.toml"
  touch "$place/fetch/src/lib.rs"
  source=$(cargo metadata -q --format-version 1 --manifest-path "$place/fetch/Cargo.toml" | python3 -c '
import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(next(os.path.dirname(it["manifest_path"]) for it in packages if it["name"] == "rocksdb"))')
  rm -rf "$place/copying" && cp -r "$source" "$place/copying"
  printf '\n[workspace]\n' >> "$place/copying/Cargo.toml"
  cp rust-toolchain.toml "$place/copying/"
  mv "$place/copying" "$place/crate-$version"
fi

export ROCKSDB_LIB_DIR=$place/lib ROCKSDB_INCLUDE_DIR=$place/include LD_LIBRARY_PATH=$place/lib TMPDIR=$place/tmp
export CARGO_TARGET_DIR=$place/build CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
cd "$place/crate-$version"
cargo test --locked -q --lib --tests --no-run --message-format=json 2> "$place/build.log" | python3 -c '
import json, sys
for line in sys.stdin:
    it = json.loads(line)
    if it.get("executable") and it["profile"]["test"]:
        print(it["target"]["name"], it["executable"])' > "$place/programs" || { cat "$place/build.log"; exit 1; }

one() { # program, path, test: a line `ok` or `failed` for it
  local log=$TMPDIR/$1.$3.log
  if timeout 300 "$2" --exact "$3" > "$log" 2>&1; then echo "ok $1 $3"; else echo "failed $1 $3"; fi
}
export -f one
while read -r program path; do
  comm -23 <("$path" --list --format terse | sed -n 's/: test$//p' | sort) \
    <("$path" --list --format terse --ignored | sed -n 's/: test$//p' | sort) |
    { grep -F -- "$filter" || true; } | sed "s|^|$program $path |"
done < "$place/programs" | xargs -P "$(nproc)" -L 1 bash -c 'one "$@"' one > "$place/results"
if [ -z "$filter" ]; then
  cargo test --locked -q --doc > "$place/doc.log" 2>&1 || true
  sed -n 's/^test result: [A-Za-z]*\. \([0-9]*\) passed.*/\1/p' "$place/doc.log" | xargs -I{} seq {} | sed 's/^/ok doc /' >> "$place/results"
  sed -n 's/^---- \(.*\) stdout ----$/failed doc \1/p' "$place/doc.log" >> "$place/results"
  grep -q '^test result: ' "$place/doc.log" || { cat "$place/doc.log"; exit 1; }
fi

listed() { grep -v '^#' "$here/failing.tsv" | cut -f 1 | { grep -F -- "$filter" || true; } | sort; }
failed=$(sed -n 's/^failed //p' "$place/results" | sort)
unlisted=$(comm -23 <(echo "$failed") <(listed) | sed '/^$/d')
passing=$(comm -13 <(echo "$failed") <(listed) | sed '/^$/d')
echo "rust-rocksdb $version: $(grep -c '^ok ' "$place/results" || true) of $(wc -l < "$place/results") tests pass"
[ -z "$unlisted" ] || { printf 'fails, and is not listed:\n%s\nits output is in %s\n' "$unlisted" "$TMPDIR"; }
[ -z "$passing" ] || printf 'listed, and does not fail:\n%s\n' "$passing"
[ -z "$unlisted$passing" ]
