"""Batches, snapshots, families, merges, backups, and what goes wrong."""

import os
import subprocess
import sys
import textwrap
import weakref

import pytest

import drumlin


def test_a_batch_is_done_whole_or_not_at_all(db):
    users = db.family("users", create=True)
    with db.batch(sync=True) as batch:
        batch.put(b"a", b"1")
        batch[b"b"] = b"2"
        batch.put(b"u", b"3", users)
        batch.delete(b"a")
        assert len(batch) == 4
    assert len(batch) == 0
    assert db.get(b"a") is None and db[b"b"] == b"2" and users[b"u"] == b"3"
    with pytest.raises(RuntimeError, match="mind"):
        with db.batch() as batch:
            batch.put(b"never", b"1")
            raise RuntimeError("changed my mind")
    assert b"never" not in db
    batch = db.batch()
    batch.delete_range(b"a", b"z")
    assert batch.write() == db.latest_seqno
    assert list(db) == []
    other = db.batch()
    other.put(b"x", b"1")
    other.clear()
    other.write()
    assert list(db) == []


def test_a_batch_takes_no_family_of_another_database(db, tmp_path):
    with drumlin.open(tmp_path / "other") as other:
        family = other.family("users", create=True)
        with pytest.raises(ValueError, match="another database"):
            db.batch().put(b"k", b"v", family)


def test_a_snapshot_stays_as_it_is(db):
    users = db.family("users", create=True)
    db[b"k"], users[b"k"] = b"1", b"1"
    snapshot = db.snapshot()
    db[b"k"], users[b"k"] = b"2", b"2"
    db.flush()
    db.compact()
    assert snapshot[b"k"] == b"1" and db[b"k"] == b"2"
    assert snapshot.family("users")[b"k"] == b"1"
    assert list(snapshot.items()) == [(b"k", b"1")]
    assert snapshot.get_many([b"k", b"x"]) == [b"1", None]
    assert snapshot.seqno < db.latest_seqno
    assert not hasattr(snapshot, "put")


def test_families_come_and_go(path):
    with drumlin.open(path) as db:
        with pytest.raises(drumlin.errors.NotFound, match="users"):
            db.family("users")
        users = db.family("users", create=True, compression="zstd")
        users[b"k"] = b"v"
        assert db.families() == ["default", "users"] and users.name == "users"
        db.family("other", create=True, table_format="searchable")
        db.drop_family("other")
        with pytest.raises(drumlin.Error):
            db.drop_family("default")
    assert drumlin.list_families(path) == ["default", "users"]
    with drumlin.open(path) as db:
        assert db.family("users")[b"k"] == b"v"


def test_merges_by_name_and_by_a_function(path):
    def longest(key, existing, operands):
        return max([existing or b"", *operands], key=len)

    options = {"merge": "uint64add", "merges": {"words": longest, "log": "stringappend"}}
    with drumlin.open(path, **options) as db:
        words = db.family("words", create=True, merge=longest)
        log = db.family("log", create=True, merge="stringappend")
        for i in range(10):
            db.merge(b"n", (i).to_bytes(8, "little"))
            words.merge(b"w", b"x" * (i % 7))
            log.merge(b"l", b"%d" % i)
            if i % 3 == 0:
                db.flush(), words.flush(), log.flush()
        words.compact()
        assert int.from_bytes(db[b"n"], "little") == 45
        assert words[b"w"] == b"x" * 6
        assert log[b"l"] == b"0,1,2,3,4,5,6,7,8,9"
    with drumlin.open(path, **options) as db:
        assert db.family("words")[b"w"] == b"x" * 6
        assert db.family("log")[b"l"].startswith(b"0,1")


def test_a_merge_function_that_fails_is_an_error(path):
    def fails(key, existing, operands):
        raise ZeroDivisionError("no such thing")

    with drumlin.open(path, merge=fails) as db:
        db.merge(b"k", b"1")
        db[b"other"] = b"v"
        with pytest.raises(drumlin.errors.InvalidArgument, match="no such thing"):
            db[b"k"]
        assert db[b"other"] == b"v"
    with pytest.raises(ValueError, match="uint64add"):
        drumlin.open(path, merge="addition")
    with pytest.raises(TypeError, match="function"):
        drumlin.open(path, merge=5)


def test_checkpoints_and_backups(path, tmp_path):
    backups = drumlin.Backups(tmp_path / "backups")
    with drumlin.open(path) as db:
        db[b"k"] = b"1"
        db.checkpoint(tmp_path / "copy")
        first = backups.create(db, note=b"the first")
        db[b"k"] = b"2"
        second = backups.create(db)
        assert second["id"] == first["id"] + 1
    assert [(it["id"], it["note"], it["damage"]) for it in backups.list()] == [(1, b"the first", None), (2, b"", None)]
    assert backups.verify() == []
    assert backups.restore(tmp_path / "old", 1) == 1
    assert backups.restore(tmp_path / "new") == 2
    for name, value in [("copy", b"1"), ("old", b"1"), ("new", b"2")]:
        with drumlin.open(tmp_path / name) as db:
            assert db[b"k"] == value
    backups.purge(1)
    assert [it["id"] for it in backups.list()] == [2]
    with pytest.raises(drumlin.errors.NotFound):
        backups.restore(tmp_path / "none", 1)


def test_what_it_tells_of_itself(db, path):
    db.update((b"%05d" % i, os.urandom(100)) for i in range(10_000))
    db.flush()
    assert db.path == path and not db.closed and db.health == "healthy"
    assert db.approximate_size(b"0", b"9") > 500_000
    assert db.verify()["damaged"] == [] and db.verify()["entries"] == 10_000
    assert db.memory()["limit"] == 64 << 20
    db.set_memory_budget(32 << 20)
    assert db.memory()["limit"] == 32 << 20
    with pytest.raises(ValueError):
        db.set_memory_budget(0)
    assert db.sync() == db.durable_seqno == db.latest_seqno
    assert any(db.statistics().values())
    assert "10000" not in repr(db) and str(path) in repr(db)


def test_wrong_openings_say_what_is_wrong(path, tmp_path):
    with pytest.raises(drumlin.errors.NotFound):
        drumlin.open(path, create_if_missing=False)
    with drumlin.open(path) as db:
        db[b"k"] = b"v"
        with pytest.raises(drumlin.errors.Locked):
            drumlin.open(path)
        with drumlin.open(path, read_only=True) as reader:
            assert reader[b"k"] == b"v"
            with pytest.raises(drumlin.errors.ReadOnly):
                reader[b"k"] = b"w"
    with pytest.raises(drumlin.errors.InvalidArgument):
        drumlin.open(path, error_if_exists=True)
    for wrong in [{"colour": 1}, {"memory_budget": "much"}, {"compression": 5}]:
        with pytest.raises(TypeError):
            drumlin.open(path, **wrong)
    for wrong in [{"compression": "lzma"}, {"table_format": "round"}]:
        with pytest.raises(ValueError):
            drumlin.open(path, **wrong)
    with pytest.raises(TypeError):
        drumlin.open(5)
    drumlin.destroy(path)
    with pytest.raises(drumlin.Error):
        drumlin.open(path, create_if_missing=False)


def test_damage_is_told_with_its_place(path):
    with drumlin.open(path, compression="none") as db:
        db.update((b"%05d" % i, b"v" * 100) for i in range(2_000))
        db.flush()
    table = max(path.glob("*.sst"), key=lambda it: it.stat().st_size)
    bytes_ = bytearray(table.read_bytes())
    bytes_[5_000:5_016] = bytes(16)
    table.write_bytes(bytes_)
    with drumlin.open(path) as db:
        with pytest.raises(drumlin.errors.Corruption) as caught:
            list(db.items())
        assert os.fspath(caught.value.file) == os.fspath(table)
        assert caught.value.offset is not None and table.name in str(caught.value)
        assert db[b"01999"] == b"v" * 100
        assert len(db.verify()["damaged"]) == 1


def test_after_close_everything_is_refused_but_what_was_there(path):
    db = drumlin.open(path)
    db.update((b"%04d" % i, b"v") for i in range(1_000))
    snapshot, walk, batch, users = db.snapshot(), db.keys(), db.batch(), db.family("users", create=True)
    batch.put(b"k", b"v")
    next(walk)
    db.close()
    db.close()
    assert db.closed
    for call in [
        lambda: db.put(b"k", b"v"),
        lambda: users.put(b"k", b"v"),
        lambda: batch.write(),
        lambda: db.flush(),
        lambda: db.snapshot().get_many([b"k"]) and db.family("new", create=True),
    ]:
        with pytest.raises(drumlin.errors.Closed):
            call()
    assert len(list(walk)) == 999
    with drumlin.open(path) as again:
        assert len(list(again)) == 1_000


def test_a_database_that_is_let_go_is_released(path):
    db = drumlin.open(path)
    db[b"k"] = b"v"
    gone = weakref.ref(db)
    del db
    assert gone() is None
    with drumlin.open(path) as db:
        assert db[b"k"] == b"v"


@pytest.mark.parametrize("ends", ["", "sys.exit(3)", "raise KeyError(1)", "os.kill(os.getpid(), 9)"])
def test_what_was_written_is_there_however_the_process_ends(path, ends):
    program = f"""
        import os, sys, drumlin
        db = drumlin.open({str(path)!r}, merge=lambda key, old, operands: b"".join([old or b"", *operands]))
        for i in range(1000):
            db.merge(b"k", b"x")
        snapshot, walk = db.snapshot(), db.items()
        {ends}
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], stderr=subprocess.DEVNULL, check=False)
    with drumlin.open(path, merge=lambda key, old, operands: b"".join([old or b"", *operands])) as db:
        assert db[b"k"] == b"x" * 1000


def test_a_forked_child_is_refused(db):
    db[b"k"] = b"v"
    child = os.fork()
    if child == 0:
        try:
            db[b"k"] = b"w"
        except drumlin.Error:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert db[b"k"] == b"v"
