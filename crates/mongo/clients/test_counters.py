"""What the server says of itself: `serverStatus` through the driver, and `/metrics` over HTTP."""

import re
import signal
import urllib.error
import urllib.request

import pytest
from pymongo.errors import OperationFailure

from conftest import Running

SAMPLE = re.compile(r'^drumlin_[a-z0-9_:]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [-+.eInfNa0-9]+$')


def test_counters_count(tmp_path):
    running = Running(str(tmp_path / "data"), "--metrics-port", "0")
    db = running.client.test

    def status():
        return running.client.admin.command("serverStatus")

    before = status()
    db.c.insert_many([{"_id": n} for n in range(150)])
    db.c.update_many({"_id": {"$lt": 10}}, {"$set": {"a": 1}})
    db.c.update_one({"_id": 900}, {"$set": {"a": 1}}, upsert=True)
    db.c.delete_many({"_id": {"$lt": 5}})
    assert len(list(db.c.find())) == 146
    with pytest.raises(OperationFailure):
        db.command("nonsense")
    with pytest.raises(OperationFailure):
        db.command("find", "c", nonsense=1)
    after = status()

    def grown(*path):
        one, other = before, after
        for name in path:
            one, other = one.get(name, {}), other[name]
        return other - (one or 0)

    assert [grown("opcounters", name) for name in ("insert", "query", "update", "delete", "getmore")] == [150, 2, 2, 1, 1]
    assert [grown("metrics", "document", name) for name in ("inserted", "updated", "deleted", "returned")] == [151, 10, 5, 146]
    assert (grown("metrics", "commands", "find", "total"), grown("metrics", "commands", "find", "failed")) == (2, 1)
    assert grown("asserts", "user") == 2 and grown("opLatencies", "writes", "ops") == 4 and grown("opLatencies", "writes", "latency") > 0
    assert grown("network", "numRequests") >= 9 and grown("network", "bytesIn") > 150 * 14 and grown("network", "bytesOut") > 146 * 14
    assert after["connections"]["current"] >= 1 and after["connections"]["totalCreated"] >= after["connections"]["current"]

    page = f"http://{running.facts['metrics']}/metrics"
    for _ in range(20):
        text = urllib.request.urlopen(page, timeout=10).read().decode()
    lines = text.splitlines()
    assert all(line.startswith("# ") or SAMPLE.match(line) for line in lines)
    for line in (
        'drumlin_mongo_documents_total{what="inserted"} 151',
        'drumlin_mongo_commands_total{command="insert"} 1',
        'drumlin_mongo_commands_failed_total{command="find"} 1',
        "drumlin_mongo_cursors 0",
    ):
        assert line in lines
    assert any(line.startswith("drumlin_engine_") for line in lines)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(page + "x", timeout=10)
    assert error.value.code == 404
    assert running.end(signal.SIGTERM) == 0
