#!/bin/sh
# Builds db_bench of the RocksDB that the `rocksdb` crate carries, from the same sources and against the
# very library that `peers` was linked with, so that both can be compared. About four minutes.
#
#   cargo build --release && ./db_bench.sh [TARGET_DIR]      # makes TARGET_DIR/release/db_bench
#
# Needs libgflags-dev beside what `peers` needs.
set -eu
target=${1:-target}
library=$(ls -d "$target"/release/build/librocksdb-sys-*/out | head -1)
sources=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/librocksdb-sys-*+11.8.1/rocksdb | head -1)
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
flags="-std=c++20 -O3 -march=haswell -DNDEBUG -DGFLAGS=gflags -DROCKSDB_PLATFORM_POSIX -DROCKSDB_LIB_IO_POSIX
-DOS_LINUX -DROCKSDB_SCHED_GETCPU_PRESENT -DROCKSDB_FALLOCATE_PRESENT -DROCKSDB_RANGESYNC_PRESENT
-DROCKSDB_AUXV_GETAUXVAL_PRESENT -DSNAPPY -DLZ4 -DZSTD -I$sources -I$sources/include -w"
for file in tools/db_bench tools/db_bench_tool tools/simulated_hybrid_file_system tools/tool_hooks \
    test_util/testutil test_util/transaction_test_util test_util/mock_time_env; do
    [ -e "$sources/$file.cc" ] || continue
    ${CXX:-c++} $flags -c "$sources/$file.cc" -o "$objects/$(basename "$file").o"
done
archives=$(find "$target"/release/build -name 'libsnappy.a' -o -name 'liblz4.a' -o -name 'libzstd.a' | sort -u)
${CXX:-c++} -o "$target/release/db_bench" "$objects"/*.o "$library/librocksdb.a" $archives \
    -Wl,--allow-multiple-definition -lgflags -lpthread -ldl
