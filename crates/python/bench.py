"""This store beside plyvel and rocksdict, in one run and in turn.

    python bench.py [KEYS] [ROUNDS]

KEYS keys of 16 bytes (300,000) with values of 100 that half compress: puts one by one in random order, puts in batches of
1,000, gets of random keys, and a walk over all. Each store gets LZ4 or what it has, and 256 MiB for its caches. Printed are
operations a second by store, medians of ROUNDS (5), and how many times as fast as each peer this store was, with the least and the most.
"""

import importlib.util
import random
import shutil
import statistics
import sys
import tempfile
import time

import drumlin

KEYS = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
MEMORY = 256 << 20


class Ours:
    name = "drumlin"

    def __init__(self, path):
        self.db = drumlin.open(path, memory_budget=MEMORY)
        self.get = self.db.get
        self.put = self.db.put

    def batch(self, pairs):
        with self.db.batch() as batch:
            for key, value in pairs:
                batch.put(key, value)

    def walk(self):
        return self.db.items()

    def close(self):
        self.db.close()


class Plyvel:
    name = "plyvel"

    def __init__(self, path):
        import plyvel

        self.db = plyvel.DB(path, create_if_missing=True, lru_cache_size=MEMORY // 2, write_buffer_size=MEMORY // 8, bloom_filter_bits=10)
        self.get = self.db.get
        self.put = self.db.put

    def batch(self, pairs):
        with self.db.write_batch() as batch:
            for key, value in pairs:
                batch.put(key, value)

    def walk(self):
        return self.db.iterator()

    def close(self):
        self.db.close()


class Rocksdict:
    name = "rocksdict"

    def __init__(self, path):
        import rocksdict

        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_compression_type(rocksdict.DBCompressionType.lz4())
        options.set_write_buffer_size(MEMORY // 8)
        table = rocksdict.BlockBasedOptions()
        table.set_block_cache(rocksdict.Cache(MEMORY // 2))
        table.set_bloom_filter(10, False)
        options.set_block_based_table_factory(table)
        self.kind = rocksdict.WriteBatch
        self.db = rocksdict.Rdict(path, options)
        self.get = self.db.get
        self.put = self.db.put

    def batch(self, pairs):
        batch = self.kind(raw_mode=True)
        for key, value in pairs:
            batch.put(key, value)
        self.db.write(batch)

    def walk(self):
        return self.db.items()

    def close(self):
        self.db.close()


def lines(store, keys, values):
    """The name of each line and its operations a second."""
    some = keys[: KEYS // 3]
    began = time.perf_counter()
    for key, value in zip(some, values):
        store.put(key, value)
    yield "put", len(some) / (time.perf_counter() - began)
    began = time.perf_counter()
    for first in range(0, KEYS, 1_000):
        store.batch(zip(keys[first : first + 1_000], values[first : first + 1_000]))
    yield "batch put", KEYS / (time.perf_counter() - began)
    wanted = random.Random(2).choices(keys, k=KEYS)
    # Once for the caches.
    for key in wanted[::10]:
        store.get(key)
    began = time.perf_counter()
    for key in wanted:
        store.get(key)
    yield "get", KEYS / (time.perf_counter() - began)
    began = time.perf_counter()
    found = sum(1 for _ in store.walk())
    assert found == KEYS, (store.name, found)
    yield "walk", KEYS / (time.perf_counter() - began)


def main():
    rng = random.Random(1)
    keys = [b"%016d" % number for number in rng.sample(range(10**12), KEYS)]
    values = [rng.randbytes(50) + b"x" * 50 for _ in keys]
    stores = [Ours] + [it for it in (Plyvel, Rocksdict) if importlib.util.find_spec(it.name)]
    found = {}
    for _ in range(ROUNDS):
        for kind in stores:
            path = tempfile.mkdtemp()
            store = kind(path)
            for line, rate in lines(store, keys, values):
                found.setdefault(line, {}).setdefault(kind.name, []).append(rate)
            store.close()
            shutil.rmtree(path)
    for line, rates in found.items():
        text = ", ".join(f"{name} {statistics.median(them) / 1000:.0f} K/s" for name, them in rates.items())
        ours = rates["drumlin"]
        for name, them in rates.items():
            if name != "drumlin":
                ratios = [mine / theirs for mine, theirs in zip(ours, them)]
                text += f"; {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) times {name}"
        print(f"{line}: {text}")


main()
