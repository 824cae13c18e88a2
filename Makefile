# The two commands a reader needs: `make run` shows what Drumlin does, `make test` proves it.
# DATA is where the demonstration keeps its database (about 2.5 GB).

CARGO ?= cargo
PYTHON ?= python3
DATA ?= data
BYTES ?= 2000000000
SECONDS ?= 20
DEBIAN_PACKAGES = rocksdb-tools librocksdb-dev libleveldb-dev redis-server redis-sentinel redis-tools pkg-config gcc g++ python3-pytest python3-plyvel

CAPI = target/capi/leveldb
# The version of RocksDB whose arguments and numbers librocksdb has: 7.8, 8.11, 9.11, 10.10 or 11.8.
ABI = 7.8
CAPI_ROCKSDB = target/capi/rocksdb$(if $(filter-out 7.8,$(ABI)),-$(ABI))
.PHONY: static static-test node node-addon node-bench node-test python python-bench python-test capi capi-rocksdb capi-leveldb capi-asan capi-bench rust-rocksdb-test package redis redis-clients mongo mongo-corpus mongo-differential mongo-drivers mongo-specs mongo-functional mongo-ycsb mongo-test s3-test smallest oldest-rust oldest-rust-there interop sim cuts seeded-bugs run test lint loom asan tsan soak deps bench-peers bench-ram bench-r5

run:
	$(CARGO) build --locked --release -p drumlin-cli
	rm -rf $(DATA)/demo && mkdir -p $(DATA)
	target/release/drumlin demo --db $(DATA)/demo --bytes $(BYTES) --seconds $(SECONDS)

# The Redis server, shown by redis-cli; it goes on at PORT until ^C.
PORT ?= 6379
redis: deps
	$(CARGO) build --locked --release -p drumlin-cli
	mkdir -p $(DATA)
	target/release/drumlin redis --dir $(DATA)/redis --port $(PORT) & server=$$!; trap "kill $$server" INT TERM; sleep 1; \
	  redis-cli -p $(PORT) set greeting "hello" ex 60; redis-cli -p $(PORT) get greeting; redis-cli -p $(PORT) ttl greeting; \
	  redis-cli -p $(PORT) mset a 1 b 2; redis-cli -p $(PORT) incrby a 41; redis-cli -p $(PORT) scan 0; \
	  redis-benchmark -p $(PORT) -t set,get -n 300000 -r 100000 -P 16 -q; \
	  redis-cli -p $(PORT) info keyspace; wait $$server

# The document server, shown by MongoDB's driver for Python; it goes on at MONGO_PORT until ^C.
MONGO_PORT ?= 27017
MONGO_VENV = target/mongo/venv
$(MONGO_VENV)/bin/pytest: crates/mongo/clients/requirements.txt
	$(PYTHON) -m venv $(MONGO_VENV) && $(MONGO_VENV)/bin/pip install -q -r $<
	touch $@
mongo: $(MONGO_VENV)/bin/pytest
	$(CARGO) build --locked --release -p drumlin-cli
	mkdir -p $(DATA)
	target/release/drumlin mongo --dir $(DATA)/mongo --port $(MONGO_PORT) & server=$$!; trap "kill $$server" INT TERM; sleep 1; \
	  $(MONGO_VENV)/bin/python crates/mongo/clients/demo.py $(MONGO_PORT); wait $$server

# Its tests by that driver, against DRUMLIN, or a server of the debug build.
DRUMLIN ?=
mongo-test: $(MONGO_VENV)/bin/pytest
	$(if $(DRUMLIN),,$(CARGO) build --locked -p drumlin-cli)
	DRUMLIN=$(or $(DRUMLIN),$(CURDIR)/target/debug/drumlin) $(MONGO_VENV)/bin/pytest -q -p no:cacheprovider crates/mongo/clients

# MongoDB's drivers for seven languages and mongosh do what applications do. DRIVERS: some of them, "go java".
mongo-drivers:
	$(CARGO) build --locked --release -p drumlin-cli
	crates/mongo/drivers/run.sh $(DRIVERS)

# YCSB by MongoDB's driver for Java. RECORDS, OPERATIONS, THREADS, WORKLOADS, ROUNDS, PEER: see the script.
mongo-ycsb:
	$(CARGO) build --locked --release -p drumlin-cli
	crates/mongo/ycsb/run.sh

# The tests that MongoDB's drivers share, as pymongo's source archive has them (fetched once). SPECS: some of them, crud/find.json.
SPECS ?=
MONGO_SPECS = target/mongo/sdist/pymongo-4.20.0
$(MONGO_SPECS): $(MONGO_VENV)/bin/pytest
	$(MONGO_VENV)/bin/pip download -q --no-deps --no-binary pymongo -d target/mongo/sdist pymongo==4.20.0
	tar xzf $@.tar.gz -C target/mongo/sdist && touch $@
mongo-specs: $(MONGO_SPECS)
	$(if $(DRUMLIN),,$(CARGO) build --locked -p drumlin-cli)
	DRUMLIN=$(or $(DRUMLIN),$(CURDIR)/target/debug/drumlin) $(MONGO_VENV)/bin/python crates/mongo/clients/specs/run.py $(MONGO_SPECS)/test $(SPECS)

# documentdb's functional tests, from a clone of https://github.com/documentdb/functional-tests that FUNCTIONAL names. FOLDERS: some
# of them, "cursors operator/update". PEER: another server's address, to count what it passes.
FUNCTIONAL ?=
FOLDERS ?=
PEER ?=
FUNCTIONAL_VENV = target/mongo/functional
$(FUNCTIONAL_VENV)/bin/pytest:
	$(PYTHON) -m venv $(FUNCTIONAL_VENV) && $(FUNCTIONAL_VENV)/bin/pip install -q -r $(FUNCTIONAL)/requirements.txt
mongo-functional:
	@test -d "$(FUNCTIONAL)/documentdb_tests" || { echo "FUNCTIONAL has to name a clone of https://github.com/documentdb/functional-tests"; exit 2; }
	$(MAKE) $(FUNCTIONAL_VENV)/bin/pytest FUNCTIONAL=$(FUNCTIONAL)
	$(if $(DRUMLIN),,$(CARGO) build --locked -p drumlin-cli)
	DRUMLIN=$(or $(DRUMLIN),$(CURDIR)/target/debug/drumlin) PEER=$(PEER) $(FUNCTIONAL_VENV)/bin/python crates/mongo/clients/functional/run.py $(FUNCTIONAL) $(FOLDERS)

# The BSON corpus of those drivers, from the same archive.
mongo-corpus: $(MONGO_SPECS)
	$(if $(DRUMLIN),,$(CARGO) build --locked -p drumlin-cli)
	DRUMLIN=$(or $(DRUMLIN),$(CURDIR)/target/debug/drumlin) $(MONGO_VENV)/bin/python crates/mongo/clients/specs/corpus.py $(MONGO_SPECS)/test/bson_corpus

# Random commands beside other servers of that protocol, two of which it fetches. PEERS: ports of more; OPERATIONS, SEED.
mongo-differential: $(MONGO_VENV)/bin/pytest
	$(if $(DRUMLIN),,$(CARGO) build --locked -p drumlin-cli)
	DRUMLIN=$(DRUMLIN) PEERS="$(PEERS)" crates/mongo/differential/run.sh

# Backups in a bucket: the command against a server of S3's protocol from PyPI, through a proxy that fails.
S3_VENV = target/s3/venv
$(S3_VENV)/bin/pytest: crates/object-store/s3/requirements.txt
	$(PYTHON) -m venv $(S3_VENV) && $(S3_VENV)/bin/pip install -q -r $<
	touch $@
s3-test: $(S3_VENV)/bin/pytest
	$(if $(DRUMLIN),,$(CARGO) build --locked -p drumlin-cli)
	DRUMLIN=$(or $(DRUMLIN),$(CURDIR)/target/debug/drumlin) $(S3_VENV)/bin/pytest -q -p no:cacheprovider crates/object-store/s3

# Client libraries and job queues from their registries, as applications use them, against the Redis server. Needs python3,
# npm, go and mvn. CLIENTS: some of them.
CLIENTS ?=
redis-clients: deps
	$(CARGO) build --locked --release -p drumlin-cli
	crates/redis/clients/run.sh $(CLIENTS)

# Debian's RocksDB, LevelDB and Redis are the oracles of the interoperability tests.
deps:
	@command -v ldb >/dev/null && test -e /usr/include/leveldb/c.h && test -e /usr/include/rocksdb/c.h && \
	  command -v redis-server >/dev/null && command -v redis-sentinel >/dev/null && command -v redis-check-rdb >/dev/null && \
	  /usr/bin/python3 -c 'import pytest, plyvel' 2>/dev/null || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(DEBIAN_PACKAGES); }

test: deps
	$(CARGO) test --locked --workspace
	$(MAKE) loom

# Directories to and fro between this engine and RocksDB 5.18 to 11.8, with kills. Fetches their libraries,
# 100 MB, once.
SEEDS ?= 2
interop:
	crates/interop/fetch-versions.sh target/rocksdb-versions
	$(CARGO) run --locked -p drumlin-interop --bin rocksdb-versions -- run target/rocksdb-versions $(SEEDS)

loom:
	RUSTFLAGS="--cfg loom" $(CARGO) test --locked --profile loom --no-default-features -p drumlin-base -p drumlin-memtable -p drumlin --test loom --target-dir target/loom

# Under sanitizers of the compiler that is pinned, whose unstable options RUSTC_BOOTSTRAP lets through. What each
# sees is in docs/testing.md. For threads the standard library is built too, from `rust-src`.
SANITIZED = --locked --target x86_64-unknown-linux-gnu --target-dir target/$@
asan:
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address $(CARGO) test $(SANITIZED) --lib --test lookups \
	  -p drumlin-base -p drumlin-fs -p drumlin-memtable -p drumlin-succinct -p drumlin-table -p drumlin

tsan:
	rustup component add rust-src
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=thread $(CARGO) test -Zbuild-std $(SANITIZED) --lib --test concurrency \
	  --test lookups --test merge_during_flush -p drumlin-base -p drumlin-memtable -p drumlin

# The store for Python: a wheel in target/python/wheels, by maturin of a virtual environment. Needs python3 from 3.11 on, with venv.
VENV = target/python/venv
python:
	$(PYTHON) -m venv $(VENV) && $(VENV)/bin/pip install -q maturin==1.16.0
	cd crates/python && CARGO_TARGET_DIR=$(CURDIR)/target/python $(abspath $(VENV))/bin/maturin build --locked --release --out $(CURDIR)/target/python/wheels

# Its tests, by Debian's Python with Debian's plyvel beside it.
PACKAGE = target/python/package
python-test: deps
	cd crates/python && CARGO_TARGET_DIR=$(CURDIR)/target $(CARGO) clippy --locked -- -D warnings && CARGO_TARGET_DIR=$(CURDIR)/target $(CARGO) build --locked
	rm -rf $(PACKAGE) && mkdir -p $(PACKAGE) && cp -r crates/python/python/drumlin $(PACKAGE)/
	cp target/debug/lib_drumlin.so $(PACKAGE)/drumlin/_drumlin.abi3.so
	PYTHONPATH=$(PACKAGE) /usr/bin/python3 -m pytest -q -p no:cacheprovider crates/python/tests

# Beside plyvel and rocksdict, from PyPI.
python-bench: python
	$(VENV)/bin/pip install -q --force-reinstall target/python/wheels/drumlin-*.whl plyvel==1.5.1 rocksdict==0.3.29
	$(VENV)/bin/python crates/python/bench.py

# The store for Node.js: a package in target/node. Needs node and npm.
NODE_CRATE = cd crates/node && CARGO_TARGET_DIR=$(CURDIR)/target/node $(CARGO)
NODE_ADDON = crates/node/drumlin.linux-$(shell uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/').node
node:
	$(NODE_CRATE) build --locked --release
	cp target/node/release/libdrumlin_node.so $(NODE_ADDON)
	cd crates/node && npm pack --silent --pack-destination $(CURDIR)/target/node

# A debug build of the addon, with the lints.
node-addon:
	cd crates/node && CARGO_TARGET_DIR=$(CURDIR)/target $(CARGO) clippy --locked -- -D warnings && CARGO_TARGET_DIR=$(CURDIR)/target $(CARGO) build --locked
	cp target/debug/libdrumlin_node.so $(NODE_ADDON)

NODE_MODULES = crates/node/node_modules/.package-lock.json
$(NODE_MODULES): crates/node/package-lock.json
	cd crates/node && npm ci --ignore-scripts --no-audit --no-fund --silent
	touch $@

# Its tests: abstract-level's own suite, and ours.
node-test: node-addon $(NODE_MODULES)
	cd crates/node && npm test --silent

# Beside classic-level.
node-bench: node $(NODE_MODULES)
	cd crates/node && node bench.js

# The random suites for HOURS, going on from where the last run ended; totals in target/soak/totals.md, and
# as a page in totals.html.
HOURS ?= 1
soak: deps
	$(CARGO) build --locked --release -p drumlin-metamorphic -p drumlin-crashloop
	$(CARGO) build --locked --release -p drumlin-sim
	$(CARGO) test --locked --release -p drumlin-fuzz-targets -p drumlin-interop --no-run
	$(CARGO) test --locked --release -p drumlin --test faults --no-run
	crates/crashloop/soak.sh $(HOURS)

# The same work by other engines, in turn. The first build compiles RocksDB: most of an hour.
bench-peers: deps
	$(CARGO) build --locked --release -p drumlin-cli
	cd crates/bench-peers && $(CARGO) build --locked --release
	target/release/drumlin lab compare --num 3000000 --rounds 2 --against rocksdb,leveldb,fjall,lmdb,db_bench --out target/peers -- --reads=600000

# Lookups in memory beside a writer, and Debian's db_bench with RocksDB's PlainTable: 5 M keys, four
# cases, about five minutes; `crates/bench/ram.sh` says what can be chosen. KEYS=20000000 needs 5 GB of /dev/shm.
bench-ram: deps
	$(CARGO) build --locked --release -p drumlin-cli
	crates/bench/ram.sh

# RocksDB's and LevelDB's C interfaces: the libraries under the names that programs look for, the headers, and files for
# pkg-config. PREFIX: where they will be installed; each in a folder of its own otherwise.
capi: capi-rocksdb capi-leveldb

capi-rocksdb:
	DRUMLIN_ABI=$(ABI) $(CARGO) build --locked --release -p drumlin-capi
	mkdir -p $(CAPI_ROCKSDB)/lib/pkgconfig $(CAPI_ROCKSDB)/include/rocksdb
	cp target/release/libdrumlin_rocksdb.so $(CAPI_ROCKSDB)/lib/librocksdb.so.$(ABI)
	strip --strip-unneeded $(CAPI_ROCKSDB)/lib/librocksdb.so.$(ABI)
	ln -sf librocksdb.so.$(ABI) $(CAPI_ROCKSDB)/lib/librocksdb.so
	cp target/release/libdrumlin_rocksdb.a $(CAPI_ROCKSDB)/lib/librocksdb.a
	sed "s|define DRUMLIN_ROCKSDB_ABI .*|define DRUMLIN_ROCKSDB_ABI $(subst .,,$(ABI:%.8=%.08))|" crates/capi/include/rocksdb/c.h \
	  > $(CAPI_ROCKSDB)/include/rocksdb/c.h
	sed "s|@prefix@|$(or $(PREFIX),$(abspath $(CAPI_ROCKSDB)))|; s|@version@|$(ABI)|" crates/capi/rocksdb.pc.in \
	  > $(CAPI_ROCKSDB)/lib/pkgconfig/rocksdb.pc

capi-leveldb:
	$(CARGO) build --locked --release -p drumlin-capi-leveldb
	mkdir -p $(CAPI)/lib/pkgconfig $(CAPI)/include/leveldb
	cp target/release/libleveldb.so $(CAPI)/lib/libleveldb.so.1
	strip --strip-unneeded $(CAPI)/lib/libleveldb.so.1
	ln -sf libleveldb.so.1 $(CAPI)/lib/libleveldb.so
	ln -sf libleveldb.so.1 $(CAPI)/lib/libleveldb.so.1d
	cp target/release/libleveldb.a $(CAPI)/lib/
	cp crates/capi-leveldb/include/leveldb/c.h $(CAPI)/include/leveldb/
	sed "s|@prefix@|$(or $(PREFIX),$(abspath $(CAPI)))|" crates/capi-leveldb/leveldb.pc.in > $(CAPI)/lib/pkgconfig/leveldb.pc

# The C programs of the tests under address sanitizer: nothing beyond a buffer, nothing after it is given back; and no leak of the
# libraries, by those programs that give everything back.
CAPI_ASAN = CAPI_CFLAGS="-fsanitize=address -fno-omit-frame-pointer"
capi-asan:
	$(CAPI_ASAN) ASAN_OPTIONS=detect_leaks=0 $(CARGO) test --locked -p drumlin-capi -p drumlin-capi-leveldb --test programs
	$(CAPI_ASAN) $(CARGO) test --locked -p drumlin-capi --test programs -- functions_of_later misused perf updates

# The tests of rust-rocksdb, which cargo fetches, over librocksdb; those that do not pass are listed with reasons. FILTER: some of them.
# Needs libclang (Debian's libclang-dev).
FILTER ?=
rust-rocksdb-test:
	crates/capi/rust-rocksdb/run.sh $(FILTER)

# One C program over each of these libraries and over Debian's RocksDB and LevelDB, in turn.
capi-bench: deps capi
	crates/capi/beside.sh
	crates/capi-leveldb/beside.sh

# The command as one file that needs no library, `target/static/drumlin`, and its test in a root with nothing else in it, as root.
STATIC_TARGET = $(shell uname -m)-unknown-linux-musl
static:
	rustup target add $(STATIC_TARGET)
	command -v musl-gcc >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq musl-tools; }
	$(CARGO) build --locked --profile small --target $(STATIC_TARGET) -p drumlin-cli
	mkdir -p target/static && cp target/$(STATIC_TARGET)/small/drumlin target/static/
static-test: static deps
	crates/cli/static.sh target/static/drumlin

# Each crate that can be published, as its package would be.
package:
	$(CARGO) package --locked --workspace --no-verify --allow-dirty $(addprefix --exclude drumlin-,testkit tidy metamorphic crashloop fuzz-targets interop sim)

# The engine without its features: nothing in it is compiled by a C compiler, and what is left out is refused by name.
smallest:
	! $(CARGO) tree --locked -p drumlin --no-default-features -e normal,build --prefix none | grep -E '^(cc|cmake) '
	CARGO_PROFILE_TEST_OPT_LEVEL=0 $(CARGO) test --locked -p drumlin --no-default-features --test smoke --test peer_databases --test table_formats

# The libraries by the oldest Rust that they promise, which `rustup` fetches. The lints see newer names in the rest.
OLDEST = $(shell sed -n 's/^rust-version = "\(.*\)"/\1.0/p' Cargo.toml)
oldest-rust-there:
	rustup run $(OLDEST) rustc --version >/dev/null 2>&1 || rustup toolchain install $(OLDEST) --profile minimal
oldest-rust: oldest-rust-there
	rustup run $(OLDEST) cargo check --locked --target-dir target/oldest-rust --config 'profile.dev.package."*".opt-level=0' -p drumlin -p drumlin-async

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# Rows of lineitem in searchable tables: how small the store is, and reads of it with little memory. About
# four minutes and 12 GB of /tmp; BYTES=500000000 for less. With RocksDB beside it: PEERS=crates/bench-peers/target/release/peers.
bench-r5: deps
	$(CARGO) build --locked --release -p drumlin-cli
	crates/bench/r5.sh

# Seeds of the simulation for HOURS, going on where the last run ended; one line of JSON each time.
sim:
	$(CARGO) run --locked --release -p drumlin-sim -- --hours $(HOURS) --out target/campaigns.jsonl

# The server of Redis's protocol under the simulation: seeds FROM to TO, of each `appendfsync`.
FROM ?= 1000
TO ?= 2000
sim-redis:
	SERVED_SEEDS=$(FROM)..$(TO) $(CARGO) test --locked --release -p drumlin-sim --test served under -- --nocapture

# Each deliberate bug is built in and must be seen within a minute by the suite that the catalogue names; in a
# directory of its own, so that no other build has them. Prints the table of docs/testing.md. ONLY: bugs with
# this in their name or room. With the test profile: nothing here is about speed, and assertions see bugs too.
BUGS_TARGET = target/seeded-bugs
BUGS_PACKAGES = drumlin drumlin-sim drumlin-base drumlin-cli drumlin-doc drumlin-doc-store drumlin-mongo drumlin-fs drumlin-memtable drumlin-object-store drumlin-rdb drumlin-redis drumlin-redis-store drumlin-resp drumlin-succinct drumlin-table
BUGS_SUITES = $(shell sed -n 's/^    bug.".*", ".*", "\([a-z_]*\)[":].*/\1/p' crates/sim/src/seeded.rs | sort -u)
# With `retries` comes the program that looks for the bugs.
BUGS_TESTS = retries $(filter-out sim cuts drumlin drumlin_%,$(BUGS_SUITES))
seeded-bugs:
	mkdir -p $(BUGS_TARGET)
	$(CARGO) test --locked --target-dir $(BUGS_TARGET) $(addprefix -p ,$(BUGS_PACKAGES)) --features drumlin-sim/seeded-bugs \
	  --lib $(addprefix --test ,$(BUGS_TESTS)) --no-run 2> $(BUGS_TARGET)/programs || { cat $(BUGS_TARGET)/programs; exit 1; }
	$(BUGS_TARGET)/debug/drumlin-sim --bugs --programs $(BUGS_TARGET)/programs --only "$(ONLY)"

# Power cuts imagined at operations of seeds, until there were CUTS; going on where the last run ended.
CUTS ?= 100000
cuts:
	$(CARGO) run --locked --release -p drumlin-sim -- --cuts $(CUTS) --out target/campaigns.jsonl
