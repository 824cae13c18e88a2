"""Keys and values, one at a time and in ranges."""

import random
import sys
import threading

import pytest

import drumlin


def test_a_database_is_a_mapping(db):
    db[b"a"] = b"1"
    assert db[b"a"] == b"1"
    assert b"a" in db and b"b" not in db
    with pytest.raises(KeyError):
        db[b"b"]
    with pytest.raises(KeyError):
        del db[b"b"]
    del db[b"a"]
    assert db.get(b"a") is None
    assert db.get(b"a", b"other") == b"other"
    db.delete(b"never")
    db.update({b"x": b"1", b"y": b"2"})
    db.update([(b"z", b"3")])
    assert dict(db.items()) == {b"x": b"1", b"y": b"2", b"z": b"3"}
    assert list(db) == [b"x", b"y", b"z"]
    assert list(reversed(db)) == [b"z", b"y", b"x"]
    assert db.pop(b"x") == b"1"
    assert db.pop(b"x", None) is None
    with pytest.raises(KeyError):
        db.pop(b"x")
    assert bool(db)


def test_ranges_are_those_of_a_sorted_dict(db):
    rng = random.Random(7)
    model = {}
    for _ in range(3_000):
        key = bytes(rng.choices(b"abc\xff", k=rng.randrange(6)))
        if rng.random() < 0.2:
            db.delete(key)
            model.pop(key, None)
        else:
            value = rng.randbytes(rng.randrange(40))
            db[key] = value
            model[key] = value
        if rng.random() < 0.002:
            db.flush()
    ordered = sorted(model.items())
    assert list(db.items()) == ordered
    assert db.first() == ordered[0] and db.last() == ordered[-1]
    for _ in range(200):
        start, stop = (bytes(rng.choices(b"abc\xff", k=rng.randrange(4))) for _ in "12")
        inside = [pair for pair in ordered if start <= pair[0] < stop]
        assert list(db.items(start, stop)) == inside
        assert list(db.items(start, stop, reverse=True)) == inside[::-1]
        assert list(db.keys(start)) == [key for key, _ in ordered if key >= start]
        assert list(db.values(stop=stop)) == [value for key, value in ordered if key < stop]
        behind = [pair for pair in ordered if pair[0].startswith(start)]
        assert list(db.items(prefix=start)) == behind
        assert list(db.keys(prefix=start, reverse=True)) == [key for key, _ in behind][::-1]
    keys = rng.sample(sorted(model), 50) + [b"nothing"]
    assert db.get_many(keys) == [model.get(key) for key in keys]
    assert db.get_many(key for key in keys) == [model.get(key) for key in keys]


def test_a_walk_shows_the_moment_it_began(db):
    db.update((b"%04d" % i, b"v") for i in range(2_000))
    walk = db.keys()
    assert next(walk) == b"0000"
    db.delete_range(b"0000", b"2000")
    assert len(list(walk)) == 1_999
    assert list(db.keys()) == []


def test_everything_with_a_buffer_is_bytes(db):
    for key, value in [(bytearray(b"k1"), memoryview(b"v1")), (memoryview(b"k2x")[:2], bytearray(b"v2"))]:
        db[key] = value
        assert db[key] == bytes(value)
    for wrong in ["text", 5, None, [1, 2]]:
        with pytest.raises(TypeError, match="bytes"):
            db[wrong] = b"v"
        with pytest.raises(TypeError, match="bytes"):
            db[b"k"] = wrong
        with pytest.raises(TypeError):
            db[wrong]
    with pytest.raises(ValueError, match="not both"):
        db.items(b"a", prefix=b"b")


def test_a_buffer_of_a_value_outlives_the_database(path):
    db = drumlin.open(path)
    big = bytes(range(256)) * 400
    db[b"k"] = big
    db.flush()
    value = db.get_buffer(b"k")
    assert db.get_buffer(b"none") is None
    view = memoryview(value)
    assert view.readonly and len(value) == len(big)
    with pytest.raises(TypeError):
        view[0] = 1
    db.close()
    del value
    assert view[256:512] == bytes(range(256)) and bytes(view) == big


def test_empty_and_large_keys_and_values(db):
    db[b""] = b""
    assert db[b""] == b""
    db[b"k" * 10_000] = b"v" * 5_000_000
    assert db[b"k" * 10_000] == b"v" * 5_000_000
    with pytest.raises(drumlin.errors.TooLarge):
        db[b"k" * (9 << 20)] = b"v"


def test_threads_share_a_database(db):
    def write(thread):
        for i in range(2_000):
            db[b"%d-%05d" % (thread, i)] = b"%d" % i
            assert db[b"%d-%05d" % (thread, i)] == b"%d" % i

    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    # A walk that many take from gives each entry once.
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    walk, taken, lock = db.keys(), [], threading.Lock()

    def take():
        own = list(walk)
        with lock:
            taken.extend(own)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(b"%d-%05d" % (n, i) for n in range(6) for i in range(2_000))


def test_references_come_and_go_evenly(db):
    value = b"v" * 100
    before = sys.getrefcount(value)
    for i in range(500):
        db[b"%d" % i] = value
        with db.batch() as batch:
            batch.put(b"b%d" % i, value)
    assert sys.getrefcount(value) == before
