"""Transactions: what others see, what they wait for, and what goes wrong. And the feed of changes."""

import subprocess
import sys
import textwrap
import threading

import pytest

import drumlin
from drumlin import errors


def test_others_see_a_transaction_when_it_is_committed(db):
    users = db.family("users", create=True, merge="stringappend")
    db[b"a"] = b"1"
    with db.transaction(sync=True) as tx:
        tx[b"a"] = b"2"
        tx.put(b"u", b"x", family=users)
        tx.merge(b"u", b"y", family=users)
        tx.delete(b"gone")
        assert tx[b"a"] == b"2" and b"a" in tx and tx.get(b"b", b"none") == b"none"
        assert tx.get(b"u", family=users) == b"x,y"
        assert db[b"a"] == b"1" and b"u" not in users
    assert db[b"a"] == b"2" and users[b"u"] == b"x,y"
    with pytest.raises(KeyError):
        db.transaction()[b"nothing"]


def test_one_that_fails_or_goes_away_leaves_nothing(db):
    with pytest.raises(RuntimeError, match="mind"):
        with db.transaction() as tx:
            tx[b"a"] = b"1"
            raise RuntimeError("changed my mind")
    assert list(db) == []
    tx = db.transaction()
    tx[b"a"] = b"1"
    del tx
    with db.transaction(lock_timeout=0) as tx:  # Nobody holds its lock.
        tx[b"a"] = b"2"
    tx = db.transaction()
    assert tx.commit() == db.latest_seqno
    tx.rollback()
    for step in (tx.commit, lambda: tx.put(b"a", b"3"), lambda: list(tx.items())):
        with pytest.raises(drumlin.Error, match="already"):
            step()
    assert list(db.items()) == [(b"a", b"2")]


def test_a_key_belongs_to_one_at_a_time(db):
    first = db.transaction()
    assert first.get(b"k", for_update=True) is None
    second = db.transaction(lock_timeout=0.01)
    with pytest.raises(errors.TimedOut):
        second.put(b"k", b"2")
    third = db.transaction(lock_timeout=60, snapshot=False)
    waits = threading.Thread(target=lambda: third.put(b"k", b"3"))
    waits.start()
    first[b"k"] = b"1"
    first.commit()
    waits.join()  # The interpreter went on while it waited.
    assert list(third.items()) == [(b"k", b"3")]
    third.rollback()
    assert db[b"k"] == b"1"


def test_each_isolation_refuses_what_it_says(db):
    db.update({b"a": b"1", b"b": b"1"})
    for isolation, refused in (("snapshot", False), ("serializable", True)):
        one, two = (db.transaction(isolation=isolation) for _ in range(2))
        assert one[b"a"] == two[b"b"] == b"1"
        one[b"b"] = two[b"a"] = b"1"
        one.commit()
        if refused:
            with pytest.raises(errors.Busy):
                two.commit()
        else:
            two.commit()
    with pytest.raises(ValueError, match='isolation "none"'):
        db.transaction(isolation="none")
    with pytest.raises(ValueError, match="wait"):
        db.transaction(lock_timeout=-1)


def test_a_walk_sees_what_is_written_ahead_of_it(db):
    db.update({b"%04d" % i: b"stored" for i in range(0, 2000, 2)})
    with db.transaction() as tx:
        for i in range(1, 2000, 2):
            tx[b"%04d" % i] = b"own"
        tx.delete_range(b"1000", b"1500")
        assert len(list(tx.items())) == 1500
        assert [key for key, _ in tx.items(b"0998", b"1502")] == [b"0998", b"0999", b"1500", b"1501"]
        seen = []
        for key, _ in tx.items(b"0000", b"0010"):
            seen.append(key)
            del tx[b"0008"]
        assert seen == [b"%04d" % i for i in range(10) if i != 8]
        other = db.transaction(lock_timeout=0)
        list(tx.items(b"3000", b"4000", for_update=True))
        with pytest.raises(errors.TimedOut):
            other.put(b"3500", b"phantom")
        tx.rollback()


def test_savepoints(db):
    with db.transaction() as tx:
        tx[b"a"] = b"1"
        tx.set_savepoint()
        tx[b"b"] = b"2"
        tx.rollback_to_savepoint()
        tx.set_savepoint()
        tx[b"c"] = b"3"
        tx.pop_savepoint()
        with pytest.raises(drumlin.Error):
            tx.pop_savepoint()
    assert list(db) == [b"a", b"c"]


def test_transact_does_it_again(db):
    db[b"n"] = b"0"

    def add(tx):
        tx[b"n"] = b"%d" % (int(tx.get(b"n", for_update=True)) + 1)

    threads = [threading.Thread(target=lambda: [drumlin.transact(db, add) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db[b"n"] == b"200"
    tries = []

    def never(tx):
        tries.append(tx)
        raise errors.Busy("always")

    with pytest.raises(errors.Busy):
        drumlin.transact(db, never, attempts=3)
    assert len(tries) == 3


def test_what_is_prepared_outlives_the_process(path):
    program = """
        import os, sys, drumlin
        db = drumlin.open(sys.argv[1])
        for name in (b"one", b"two"):
            tx = db.transaction()
            tx[name] = b"1"
            tx.prepare(name)
        os._exit(0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(path)], check=True)
    with drumlin.open(path) as db:
        assert db.prepared() == [b"one", b"two"] and list(db) == []
        with pytest.raises(errors.TimedOut):
            db.transaction(lock_timeout=0).put(b"one", b"2")
        one = db.prepared_transaction(b"one")
        with pytest.raises(drumlin.Error, match="prepared"):
            one.put(b"one", b"3")
        one.commit()
        db.prepared_transaction(b"two").rollback()
        assert db.prepared_transaction(b"two") is None
        assert list(db) == [b"one"] and db.prepared() == []


def test_a_transaction_of_a_closed_database_is_refused(path):
    db = drumlin.open(path)
    tx = db.transaction()
    tx[b"a"] = b"1"
    db.close()
    with pytest.raises(errors.Closed):
        tx.commit()
    with drumlin.open(path) as again, drumlin.open(path.with_name("other")) as other:
        assert list(again) == []
        with pytest.raises(errors.InvalidArgument):
            again.transaction().put(b"a", b"1", family=other)


def test_changes_come_in_their_order_and_once(path):
    with drumlin.open(path) as db:
        with pytest.raises(errors.InvalidArgument, match="keep_changes"):
            db.changes()
    with drumlin.open(path, keep_changes_seconds=3600, merge="stringappend") as db:
        with db.batch() as batch:
            batch.put(b"a", b"1")
            batch.delete(b"b")
        db.merge(b"a", b"2")
        db.delete_range(b"x", b"z")
        users = db.family("users", create=True)
        users[b"u"] = b"3"
        changes = db.changes()
        told = [entry for batch in changes for entry in batch.entries()]
        assert told == [
            {"what": "put", "family": db.id, "key": b"a", "value": b"1"},
            {"what": "delete", "family": db.id, "key": b"b"},
            {"what": "merge", "family": db.id, "key": b"a", "operand": b"2"},
            {"what": "delete-range", "family": db.id, "start": b"x", "stop": b"z"},
            {"what": "create-family", "family": users.id, "name": "users"},
            {"what": "put", "family": users.id, "key": b"u", "value": b"3"},
        ]
        assert changes.next_within(0.001) is None
        threading.Timer(0.05, lambda: db.put(b"late", b"4")).start()
        late = changes.next_within(60)
        assert late.entries()[0]["key"] == b"late" and late.seqno == late.last_seqno == db.latest_seqno
        again = db.changes(late.seqno)
        assert [batch.seqno for batch in again] == [late.seqno]
        assert again.position == changes.position == late.seqno + 1
        with pytest.raises(errors.InvalidArgument):
            db.changes(late.seqno + 100)
        with pytest.raises(ValueError, match="wait"):
            changes.next_within(-1)
