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


def test_statistics_of_collections(db):
    texts = [{"_id": n, "mail": f"m{n}", "text": "drumlin " * 40} for n in range(2000)]
    db.c.insert_many(texts)
    db.c.create_index("mail")
    stage = {"$collStats": {"count": {}, "storageStats": {}}}
    (told,) = db.c.aggregate([stage])
    storage = told["storageStats"]
    assert (told["ns"], told["count"]) == (db.c.full_name, 2000)
    assert (storage["count"], storage["nindexes"], list(storage["indexSizes"])) == (2000, 2, ["_id_", "mail_1"])
    assert storage["avgObjSize"] == storage["size"] // 2000 > 320
    assert storage["totalSize"] == storage["storageSize"] + storage["totalIndexSize"]
    (scaled,) = db.c.aggregate([{"$collStats": {"storageStats": {"scale": 1024}}}, {"$project": {"storageStats.size": 1}}])
    assert scaled == {"storageStats": {"size": storage["size"] // 1024}}
    command = db.command("collStats", "c", scale=1024)
    assert (command["size"], command["scaleFactor"]) == (storage["size"] // 1024, 1024)
    whole = db.command("dbStats", scale=10)
    assert (whole["objects"], whole["dataSize"], whole["indexes"]) == (2000, storage["size"] // 10, 2)

    # As drivers from 2021 to 2022 ask for the estimated count.
    counting = [{"$collStats": {"count": {}}}, {"$group": {"_id": 1, "n": {"$sum": "$count"}}}]
    assert list(db.c.aggregate(counting)) == [{"_id": 1, "n": 2000}]
    joined = db.c.aggregate([{"$limit": 1}, {"$project": {"_id": 1}}, {"$unionWith": {"coll": "c", "pipeline": counting}}])
    assert list(joined) == [{"_id": 0}, {"_id": 1, "n": 2000}]

    assert list(db.none.aggregate([{"$collStats": {"storageStats": {}}}]))[0]["storageStats"]["size"] == 0
    for pipeline, code in [
        ([{"$match": {}}, stage], 40602),
        ([{"$facet": {"a": [stage]}}], 40600),
        ([{"$collStats": 1}], 40166),
        ([{"$collStats": {"count": 1}}], 40166),
        ([{"$collStats": {"nonsense": {}}}], 40415),
        ([{"$collStats": {"latencyStats": {}}}], 115),
        ([{"$collStats": {"storageStats": {"scale": 0}}}], 51024),
        ([{"$collStats": {"storageStats": {"scale": "a"}}}], 14),
    ]:
        with pytest.raises(OperationFailure) as error:
            list(db.c.aggregate(pipeline))
        assert error.value.code == code, pipeline
    with pytest.raises(OperationFailure) as error:
        list(db.none.aggregate([{"$collStats": {"count": {}}}]))
    assert error.value.code == 26


def test_sizes_on_disk_are_told(tmp_path):
    running = Running(str(tmp_path / "data"))
    db = running.client.test
    db.c.insert_many([{"_id": n, "mail": f"m{n}", "text": "drumlin " * 40} for n in range(20000)])
    db.c.create_index("mail")
    # Opening the store writes what memtables held into tables.
    assert running.end(signal.SIGTERM) == 0
    running.start()
    stats = running.client.test.command("collStats", "c")
    assert 0 < stats["storageSize"] < stats["size"]
    assert 0 < stats["indexSizes"]["mail_1"] == stats["totalIndexSize"] < stats["size"]
    assert running.end(signal.SIGTERM) == 0
