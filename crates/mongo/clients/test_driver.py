"""Goal: MongoDB's own driver does its work over the server. Method: each command by the driver's methods, answers compared with
what MongoDB is documented to give; what is not served is refused by name."""

import datetime
import signal
import socket
import struct
import threading
import time

import bson
import pymongo
import pymongo.monitoring
import pytest
from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo import ASCENDING, DESCENDING, DeleteOne, InsertOne, ReplaceOne, ReturnDocument, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure
from pymongo.write_concern import WriteConcern

from conftest import Running


def test_updates_by_pipelines(db):
    db.c.insert_many([{"_id": n, "a": n, "b": [n, 1]} for n in range(4)])
    done = db.c.update_many({"a": {"$gt": 0}}, [{"$set": {"sum": {"$add": ["$a", {"$sum": "$b"}]}}}, {"$unset": "b"}])
    assert (done.matched_count, done.modified_count) == (3, 3)
    assert db.c.find_one({"_id": 3}) == {"_id": 3, "a": 3, "sum": 7}
    # The new document keeps its _id, whatever the pipeline leaves of it.
    assert db.c.update_one({"_id": 3}, [{"$replaceWith": {"x": "$a"}}]).modified_count == 1
    assert db.c.find_one({"_id": 3}) == {"_id": 3, "x": 3}
    assert db.c.update_one({"_id": 9}, [{"$set": {"at": "$$NOW", "n": "$$n"}}], upsert=True, let={"n": 5}).upserted_id == 9
    assert db.c.find_one({"_id": 9})["n"] == 5
    found = db.c.find_one_and_update({"_id": 1}, [{"$set": {"a": {"$multiply": ["$a", 10]}}}], return_document=True)
    assert found["a"] == 10
    statement = {"q": {"_id": 1}, "u": [{"$set": {"k": "$$k"}}], "c": {"k": 7}}
    assert db.command("update", "c", updates=[statement])["nModified"] == 1
    assert db.c.find_one({"_id": 1})["k"] == 7
    for update, code in [([{"$set": {"_id": 2}}], 66), ([{"$match": {}}], 72), ([{"$set": {"a": {"$nonsense": 1}}}], 168)]:
        with pytest.raises(OperationFailure) as error:
            db.c.update_one({"_id": 1}, update)
        assert error.value.code == code
    with pytest.raises(OperationFailure) as error:
        db.c.update_one({"_id": 1}, [{"$set": {"a": 1}}], array_filters=[{"x": 1}])
    assert error.value.code == 9


def test_the_shape_of_all_statements_is_looked_at_first(db):
    statements = [{"q": {}, "u": {"$set": {"a": 1}}, "upsert": True}, {"q": {}, "u": {"$set": {"a": 1}}, "order": {"a": 1}}]
    with pytest.raises(OperationFailure) as error:
        db.command("update", "c", updates=statements)
    assert error.value.code == 40415 and "updates.order" in str(error.value)
    assert db.c.count_documents({}) == 0


def test_collections_are_renamed(server, db):
    db.a.insert_one({"_id": 1})
    db.a.create_index("x", unique=True)
    db.b.insert_one({"_id": 2})
    cursor = db.a.find(batch_size=1)
    with pytest.raises(OperationFailure) as error:
        db.a.rename("b")
    assert error.value.code == 48
    db.a.rename("b", dropTarget=True)
    assert list(db.b.find()) == [{"_id": 1}] and db.list_collection_names() == ["b"]
    assert set(db.b.index_information()) == {"_id_", "x_1"}
    assert list(cursor) == []
    server.client.admin.command("renameCollection", f"{db.name}.b", to=f"{db.name}-2.c")
    other = server.client[db.name + "-2"]
    assert list(other.c.find()) == [{"_id": 1}] and db.list_collection_names() == []
    for to, code in [("nowhere", 73), (f"{db.name}.system.users", 13)]:
        with pytest.raises(OperationFailure) as error:
            server.client.admin.command("renameCollection", f"{other.name}.c", to=to)
        assert error.value.code == code
    server.client.drop_database(other.name)


def test_greetings_wait_and_stream(server):
    class Heartbeats(pymongo.monitoring.ServerHeartbeatListener):
        def __init__(self):
            self.seen = []

        def started(self, event):
            pass

        def succeeded(self, event):
            self.seen.append((event.awaited, event.duration))

        def failed(self, event):
            self.seen.append((event.awaited, event.reply))

    heartbeats = Heartbeats()
    with pymongo.MongoClient("127.0.0.1", server.port, heartbeatFrequencyMS=500, serverMonitoringMode="stream", event_listeners=[heartbeats]) as client:
        topology = client.admin.command("hello")["topologyVersion"]
        deadline = time.monotonic() + 30
        while sum(awaited for awaited, _ in heartbeats.seen) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        waits = [duration for awaited, duration in heartbeats.seen if awaited]
        assert len(waits) >= 3 and all(isinstance(it, float) and 0.4 < it < 10 for it in waits), heartbeats.seen
        # Without leave to send more there is one reply, when the time is up; of another server's topology it comes at once.
        begin = time.monotonic()
        assert client.admin.command("hello", topologyVersion=topology, maxAwaitTimeMS=300)["ok"] == 1
        assert time.monotonic() - begin >= 0.3
        other = {"processId": ObjectId(), "counter": Int64(0)}
        assert client.admin.command("hello", topologyVersion=other, maxAwaitTimeMS=600_000)["topologyVersion"] == topology
        for wrong, code in [({"maxAwaitTimeMS": 1}, 31368), ({"topologyVersion": topology, "maxAwaitTimeMS": -1}, 31373)]:
            with pytest.raises(OperationFailure) as error:
                client.admin.command("hello", **wrong)
            assert error.value.code == code


def test_the_stable_api(server, db):
    from pymongo.server_api import ServerApi

    with pymongo.MongoClient("127.0.0.1", server.port, server_api=ServerApi("1", strict=True)) as client:
        client[db.name].c.insert_one({"_id": 1})
        assert client[db.name].c.find_one() == {"_id": 1}
        for command in ({"distinct": "c", "key": "a"}, {"collStats": "c"}):
            with pytest.raises(OperationFailure) as error:
                client[db.name].command(command)
            assert (error.value.code, error.value.details["codeName"]) == (323, "APIStrictError")
    for arguments, code in [({"apiVersion": "2"}, 322), ({"apiStrict": True}, 72)]:
        with pytest.raises(OperationFailure) as error:
            db.command("ping", **arguments)
        assert error.value.code == code


def test_handshake(server):
    hello = server.client.admin.command("hello")
    assert hello["isWritablePrimary"] and hello["maxWireVersion"] == 21
    assert server.client.admin.command("ping") == {"ok": 1.0}
    assert server.client.server_info()["version"] == "7.0.0"
    assert server.client.admin.command("getParameter", "*")["featureCompatibilityVersion"] == {"version": "7.0"}


def test_documents_come_back_as_they_went(db):
    document = {
        "_id": ObjectId(),
        "types": [1, Int64(1 << 40), 1.5, True, None, "é\0x", b"\x00\xff", Binary(b"x", 5), Decimal128("1.10")],
        "when": datetime.datetime(2026, 1, 2, 3, 4, 5),
        "others": {"re": Regex("a+", "i"), "ts": Timestamp(5, 6), "min": MinKey(), "max": MaxKey(), "empty": {}, "list": []},
    }
    db.c.insert_one(document)
    assert db.c.find_one({"_id": document["_id"]}) == document
    raw = bson.raw_bson.RawBSONDocument(bson.encode(document))
    options = bson.CodecOptions(document_class=bson.raw_bson.RawBSONDocument)
    assert db.get_collection("c", codec_options=options).find_one().raw == raw.raw


@pytest.mark.parametrize("key", [1, -5, Int64(1), 2.5, "x", "a\0b", b"\x01", True, None, {"a": 1}, Decimal128("1.5"), datetime.datetime(1960, 1, 1)])
def test_ids_of_all_types(db, key):
    db.c.insert_one({"a": 1, "_id": key})
    assert db.c.find_one({"_id": key}) == {"_id": key, "a": 1}
    with pytest.raises(DuplicateKeyError):
        db.c.insert_one({"_id": key})


def test_equal_numbers_are_one_id(db):
    db.c.insert_one({"_id": 1})
    for other in (1.0, Int64(1), Decimal128("1"), Decimal128("1.0")):
        with pytest.raises(DuplicateKeyError) as error:
            db.c.insert_one({"_id": other})
        assert error.value.code == 11000 and error.value.details["keyPattern"] == {"_id": 1}


def test_an_array_is_no_id(db):
    with pytest.raises(OperationFailure) as error:
        db.c.insert_one({"_id": [1]})
    assert error.value.code == 53


def test_insert_many_and_cursors(db):
    db.c.insert_many({"_id": n, "x": n % 7, "pad": "x" * 100} for n in range(5000))
    assert db.c.count_documents({}) == db.c.estimated_document_count() == 5000
    assert [d["_id"] for d in db.c.find(batch_size=333)] == list(range(5000))
    assert [d["_id"] for d in db.c.find({"x": 3}).skip(10).limit(25)] == [3 + 7 * n for n in range(10, 35)]
    down = [d["_id"] for d in db.c.find({}, {"_id": 1}).sort("_id", -1).limit(3)]
    assert down == [4999, 4998, 4997]
    by_x = [(d["x"], d["_id"]) for d in db.c.find().sort([("x", -1), ("_id", 1)]).batch_size(100)]
    assert by_x == sorted(by_x, key=lambda pair: (-pair[0], pair[1])) and len(by_x) == 5000
    cursor = db.c.find(batch_size=2)
    next(cursor)
    identity = cursor.cursor_id
    assert identity
    cursor.close()
    with pytest.raises(OperationFailure) as error:
        db.command("getMore", Int64(identity), collection="c")
    assert error.value.code == 43


def test_large_documents_fill_batches(db):
    for n in range(5):
        db.c.insert_one({"_id": n, "x": "y" * (6 << 20)})
    assert [len(d["x"]) for d in db.c.find()] == [6 << 20] * 5
    with pytest.raises(pymongo.errors.DocumentTooLarge):
        db.c.insert_one({"x": "y" * (17 << 20)})


def test_ordered_and_unordered(db):
    documents = [{"_id": 1}, {"_id": 2}, {"_id": 1}, {"_id": 3}]
    with pytest.raises(BulkWriteError) as error:
        db.c.insert_many(documents)
    assert [e["index"] for e in error.value.details["writeErrors"]] == [2]
    assert db.c.count_documents({}) == 2
    with pytest.raises(BulkWriteError) as error:
        db.d.insert_many(documents, ordered=False)
    assert error.value.details["nInserted"] == 3 and db.d.count_documents({}) == 3


def test_updates(db):
    db.c.insert_many([{"_id": n, "a": n, "tags": ["x"]} for n in range(10)])
    result = db.c.update_one({"a": 3}, {"$set": {"a": 33, "b.c": 1}, "$push": {"tags": "y"}})
    assert (result.matched_count, result.modified_count) == (1, 1)
    assert db.c.find_one({"a": 33}) == {"_id": 3, "a": 33, "tags": ["x", "y"], "b": {"c": 1}}
    result = db.c.update_many({"a": {"$lt": 5}}, {"$inc": {"a": 100}})
    assert (result.matched_count, result.modified_count) == (4, 4)
    result = db.c.update_one({"a": 5}, {"$set": {"a": 5}})
    assert (result.matched_count, result.modified_count) == (1, 0)
    assert db.c.replace_one({"_id": 7}, {"z": 1}).modified_count == 1
    assert db.c.find_one({"_id": 7}) == {"_id": 7, "z": 1}
    result = db.c.update_one({"_id": 77, "k": "v"}, {"$set": {"n": 1}, "$setOnInsert": {"m": 2}}, upsert=True)
    assert result.upserted_id == 77 and db.c.find_one({"_id": 77}) == {"_id": 77, "k": "v", "m": 2, "n": 1}
    assert isinstance(db.c.update_one({"q": 1}, {"$set": {"n": 1}}, upsert=True).upserted_id, ObjectId)
    db.c.update_one({"_id": 8}, {"$set": {"items": [{"n": 1}, {"n": 5}, {"n": 9}]}})
    db.c.update_one({"_id": 8, "items.n": 5}, {"$set": {"items.$.hit": True}})
    db.c.update_one({"_id": 8}, {"$inc": {"items.$[big].n": 1}}, array_filters=[{"big.n": {"$gt": 4}}])
    assert db.c.find_one({"_id": 8})["items"] == [{"n": 1}, {"n": 6, "hit": True}, {"n": 10}]


@pytest.mark.parametrize(
    ("update", "code"),
    [
        ({"$set": {"_id": 5}}, 66),
        ({"$set": {"a": 1, "a.b": 2}}, 40),
        ({"$set": {"a.b.c": 2}}, 28),
        ({"$inc": {"s": 1}}, 14),
        ({"$nonsense": {"a": 1}}, 9),
        ({"$bit": {"a": {"nand": 1}}}, 2),
    ],
)
def test_wrong_updates(db, update, code):
    db.c.insert_one({"_id": 1, "a": {"b": 1}, "s": "x"})
    with pytest.raises(OperationFailure) as error:
        db.c.update_one({}, update)
    assert error.value.code == code
    assert db.c.find_one() == {"_id": 1, "a": {"b": 1}, "s": "x"}


def test_deletes(db):
    db.c.insert_many([{"_id": n, "a": n % 2} for n in range(10)])
    assert db.c.delete_one({"a": 1}).deleted_count == 1
    assert db.c.delete_many({"a": 1}).deleted_count == 4
    assert [d["_id"] for d in db.c.find()] == [0, 2, 4, 6, 8]
    assert db.c.estimated_document_count() == 5


def test_bulk_write(db):
    result = db.c.bulk_write(
        [
            InsertOne({"_id": 1}),
            UpdateOne({"_id": 1}, {"$set": {"a": 1}}),
            UpdateMany({}, {"$inc": {"a": 1}}),
            ReplaceOne({"_id": 2}, {"b": 1}, upsert=True),
            DeleteOne({"_id": 1}),
        ]
    )
    assert (result.inserted_count, result.modified_count, result.deleted_count) == (1, 2, 1)
    assert result.upserted_ids == {3: 2} and list(db.c.find()) == [{"_id": 2, "b": 1}]


def test_find_and_modify(db):
    db.c.insert_many([{"_id": n, "rank": 9 - n} for n in range(5)])
    assert db.c.find_one_and_update({}, {"$set": {"x": 1}}, sort=[("rank", 1)]) == {"_id": 4, "rank": 5}
    after = db.c.find_one_and_update({"_id": 1}, {"$inc": {"rank": 1}}, return_document=ReturnDocument.AFTER, projection={"_id": 0})
    assert after == {"rank": 9}
    assert db.c.find_one_and_delete({"_id": 0}) == {"_id": 0, "rank": 9}
    assert db.c.find_one_and_update({"_id": 99}, {"$set": {"x": 1}}) is None
    made = db.c.find_one_and_replace({"_id": 50}, {"y": 1}, upsert=True, return_document=ReturnDocument.AFTER)
    assert made == {"_id": 50, "y": 1}


def test_distinct_and_count(db):
    db.c.insert_many([{"_id": n, "a": [n % 3, "x"], "b": {"c": n % 2}} for n in range(6)])
    assert sorted(db.c.distinct("a"), key=str) == [0, 1, 2, "x"]
    assert db.c.distinct("b.c", {"_id": {"$gt": 4}}) == [1]
    assert db.command("count", "c", query={"a": 1}, limit=1)["n"] == 1


def test_aggregate(db):
    db.c.insert_many([{"_id": n, "g": n % 3, "v": n, "l": [n, n + 1]} for n in range(9)])
    groups = db.c.aggregate(
        [
            {"$match": {"v": {"$gte": 1}}},
            {"$group": {"_id": "$g", "sum": {"$sum": "$v"}, "mean": {"$avg": "$v"}, "all": {"$push": "$v"}, "n": {"$count": {}}}},
            {"$sort": {"_id": 1}},
        ]
    )
    assert list(groups) == [
        {"_id": 0, "sum": 9, "mean": 4.5, "all": [3, 6], "n": 2},
        {"_id": 1, "sum": 12, "mean": 4.0, "all": [1, 4, 7], "n": 3},
        {"_id": 2, "sum": 15, "mean": 5.0, "all": [2, 5, 8], "n": 3},
    ]
    assert list(db.c.aggregate([{"$unwind": "$l"}, {"$sortByCount": "$l"}, {"$limit": 1}])) == [{"_id": 1, "count": 2}]
    shaped = db.c.aggregate([{"$sort": {"v": -1}}, {"$limit": 1}, {"$project": {"_id": 0, "w": "$v", "g": 1}}])
    assert list(shaped) == [{"g": 2, "w": 8}]
    assert list(db.c.aggregate([{"$skip": 4}, {"$count": "n"}])) == [{"n": 5}]
    assert list(db.c.aggregate([{"$match": {"_id": 3}}, {"$replaceWith": {"a": "$l", "b": {"$literal": "$x"}}}])) == [{"a": [3, 4], "b": "$x"}]
    assert list(db.c.aggregate([{"$limit": 1}, {"$set": {"v": "$g", "z": "new"}}, {"$unset": "l"}])) == [{"_id": 0, "g": 0, "v": 0, "z": "new"}]
    for pipeline, code in [([{"$graphLookup": {}}], 40324), ([{"$limit": 1, "$skip": 1}], 40323)]:
        with pytest.raises(OperationFailure) as error:
            list(db.c.aggregate(pipeline))
        assert error.value.code == code


def test_indexes_are_used_and_true(db):
    db.c.insert_many([{"_id": n, "a": n % 50, "b": n, "t": [n % 4, n % 5]} for n in range(1000)])
    assert db.c.create_index([("a", ASCENDING), ("b", DESCENDING)]) == "a_1_b_-1"
    assert db.c.create_index("t") == "t_1"
    assert set(db.c.index_information()) == {"_id_", "a_1_b_-1", "t_1"}
    found = db.c.find({"a": 7}).sort("b", -1)
    plan = found.explain()
    assert plan["queryPlanner"]["winningPlan"]["inputStage"]["indexName"] == "a_1_b_-1"
    assert plan["executionStats"]["totalDocsExamined"] == 20
    assert [d["b"] for d in found] == list(range(957, 0, -50))
    assert [d["b"] for d in db.c.find({"a": {"$gt": 47}, "b": {"$lt": 100}}).sort([("a", 1), ("b", -1)])] == [98, 48, 99, 49]
    expected = [n for n in range(1000) if n % 4 == 3 or n % 5 == 3]
    assert sorted(d["_id"] for d in db.c.find({"t": 3})) == expected
    # Two fifths of the documents match: without a hint all are looked at.
    assert db.c.find({"t": 3}).hint("t_1").explain()["queryPlanner"]["winningPlan"]["inputStage"]["isMultiKey"]
    db.c.update_many({"a": 7}, {"$set": {"a": 8}})
    assert db.c.count_documents({"a": 7}) == 0 and db.c.count_documents({"a": 8}) == 40
    assert db.command("validate", "c")["valid"]
    db.c.drop_index("a_1_b_-1")
    assert db.c.find({"a": 8}).explain()["queryPlanner"]["winningPlan"]["stage"] == "COLLSCAN"
    db.c.drop_indexes()
    assert set(db.c.index_information()) == {"_id_"}


def test_unique_and_sparse(db):
    db.c.create_index("email", unique=True, sparse=True)
    db.c.insert_many([{"_id": 1, "email": "x"}, {"_id": 2}, {"_id": 3}])
    with pytest.raises(DuplicateKeyError) as error:
        db.c.insert_one({"_id": 4, "email": "x"})
    assert "index: email_1 dup key: { email: \"x\" }" in str(error.value)
    assert error.value.details["keyValue"] == {"email": "x"}
    with pytest.raises(DuplicateKeyError):
        db.c.update_one({"_id": 2}, {"$set": {"email": "x"}})
    db.c.delete_one({"_id": 1})
    db.c.update_one({"_id": 2}, {"$set": {"email": "x"}})
    db.d.insert_many([{"a": 1}, {"a": 1}])
    with pytest.raises(DuplicateKeyError):
        db.d.create_index("a", unique=True)
    assert set(db.d.index_information()) == {"_id_"}
    assert db.command("validate", "c")["valid"] and db.command("validate", "d")["valid"]


def test_partial_indexes(db):
    db.c.create_index("a", unique=True, partialFilterExpression={"live": True, "n": {"$gt": 10}})
    db.c.insert_many([{"_id": 1, "a": 1, "live": True, "n": 20}, {"_id": 2, "a": 1, "live": False, "n": 20}, {"_id": 3, "a": 1, "live": True, "n": 5}])
    with pytest.raises(DuplicateKeyError):
        db.c.update_one({"_id": 3}, {"$set": {"n": 11}})
    assert db.c.index_information()["a_1"]["partialFilterExpression"] == {"live": True, "n": {"$gt": 10}}
    stage = lambda filter: db.c.find(filter).explain()["queryPlanner"]["winningPlan"]["stage"]
    assert stage({"a": 1, "live": True, "n": {"$gte": 15}}) == "FETCH"
    assert stage({"a": 1, "live": True, "n": {"$gt": 5}}) == "COLLSCAN"
    assert db.c.count_documents({"a": 1}) == 3
    assert db.command("validate", "c")["valid"]


def test_documents_expire(db):
    now = datetime.datetime.now(datetime.timezone.utc)
    db.c.create_index("at", expireAfterSeconds=100)
    db.c.insert_many([{"_id": n, "at": now - datetime.timedelta(seconds=50 * n)} for n in range(5)] + [{"_id": 9}])
    was = db.client.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)["was"]
    while db.c.count_documents({}) > 3:
        pass
    assert [d["_id"] for d in db.c.find()] == [0, 1, 9]
    assert db.client.admin.command("serverStatus")["metrics"]["ttl"]["deletedDocuments"] >= 3
    db.client.admin.command("setParameter", 1, ttlMonitorSleepSecs=was)


def test_catalog(server, db):
    db.create_collection("made")
    db.c.insert_one({})
    assert sorted(db.list_collection_names()) == ["c", "made"]
    assert db.name in server.client.list_database_names()
    with pytest.raises(pymongo.errors.CollectionInvalid):
        db.create_collection("made")
    db.drop_collection("made")
    db.drop_collection("never")
    assert db.list_collection_names(filter={"name": "c"}) == ["c"]
    server.client.drop_database(db.name)
    assert db.list_collection_names() == [] and db.c.count_documents({}) == 0


@pytest.mark.parametrize(
    ("command", "code", "name"),
    [
        ({"mapReduce": "c"}, 115, "mapReduce"),
        ({"nonsense": 1}, 59, "nonsense"),
        ({"find": "c", "collation": {"locale": "de"}}, 115, "collation"),
        ({"find": "c", "wrong": 1}, 40415, "find.wrong"),
        ({"find": "c", "filter": {"$where": "1"}}, 2, "$where"),
        ({"find": "c", "projection": {"a": {"$meta": "textScore"}}}, 115, "$meta"),
        ({"create": "t", "timeseries": {"timeField": "t"}}, 115, "timeseries"),
        ({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a", "expireAfterSeconds": -5}]}, 67, "expireAfterSeconds"),
        ({"createIndexes": "c", "indexes": [{"key": {"a": "text"}, "name": "a"}]}, 67, "text"),
        ({"insert": "c", "documents": [{}], "txnNumber": Int64(1)}, 20, "replica set"),
        ({"insert": "c$d", "documents": [{}]}, 73, "c$d"),
    ],
)
def test_what_is_not_served_is_refused_by_name(db, command, code, name):
    with pytest.raises(OperationFailure) as error:
        db.command(command)
    assert error.value.code == code and name in str(error.value)


def test_views(db):
    db.c.insert_many({"_id": n, "even": n % 2 == 0} for n in range(300))
    view = db.create_collection("v", viewOn="c", pipeline=[{"$match": {"even": True}}])
    assert [it["_id"] for it in view.find(batch_size=7).sort("_id", -1)] == list(range(298, -1, -2))
    assert (view.count_documents({"_id": {"$lt": 10}}), view.estimated_document_count()) == (5, 150)
    with pytest.raises(OperationFailure) as error:
        view.insert_one({})
    assert error.value.code == 166
    assert [it["type"] for it in db.list_collections(filter={"name": "v"})] == ["view"]
    view.drop()
    assert db.list_collection_names() == ["c"]


def test_validators(db):
    collection = db.create_collection("c", validator={"n": {"$type": "int"}}, validationLevel="moderate")
    with pytest.raises(OperationFailure) as error:
        collection.insert_one({"_id": 1, "n": "x"})
    assert error.value.code == 121 and error.value.details["errInfo"]["failingDocumentId"] == 1
    with pytest.raises(BulkWriteError) as error:
        collection.insert_many([{"_id": 2, "n": 1}, {"_id": 3}], ordered=False)
    assert error.value.details["writeErrors"][0]["errInfo"]["details"]["reason"] == "field was missing"
    collection.insert_many([{"_id": 3}], bypass_document_validation=True)
    assert collection.update_many({}, {"$set": {"m": 1}}).modified_count == 2
    assert collection.options() == {"validator": {"n": {"$type": "int"}}, "validationLevel": "moderate"}


def test_capped_collections(server, db):
    collection = db.create_collection("log", capped=True, size=10_000, max=5)
    assert db.create_collection("log", check_exists=False, capped=True, size=10_000, max=5).name == "log"
    with pytest.raises(OperationFailure) as error:
        db.create_collection("log", check_exists=False)
    assert error.value.code == 48
    collection.create_index("n")
    collection.insert_many({"_id": -n, "n": n % 2} for n in range(8))
    assert [it["_id"] for it in collection.find()] == [-3, -4, -5, -6, -7]
    assert [it["_id"] for it in collection.find({"n": 1}, sort=[("$natural", -1)])] == [-7, -5, -3]
    assert collection.find_one_and_update({}, {"$set": {"x": "y" * 100}}, sort=[("_id", 1)])["_id"] == -7
    assert collection.find_one({"_id": -7})["x"] == "y" * 100
    assert collection.options() == {"capped": True, "size": 10_240, "max": 5}
    stats = db.command("collStats", "log")
    assert (stats["capped"], stats["max"], stats["maxSize"], stats["nindexes"], stats["count"]) == (True, 5, 10_240, 2, 5)
    assert [it["name"] for it in collection.list_indexes()] == ["_id_", "n_1"]
    collection.drop_indexes()
    assert [it["name"] for it in collection.list_indexes()] == ["_id_"]
    db.command("collMod", "log", cappedMax=3)
    collection.insert_one({"_id": 1})
    assert [it["_id"] for it in collection.find()] == [-6, -7, 1]
    db.plain.insert_many({"_id": n} for n in range(10))
    db.command("cloneCollectionAsCapped", "plain", toCollection="clone", size=100)
    assert [it["_id"] for it in db.clone.find()] == list(range(10))
    db.command("convertToCapped", "plain", size=100)
    assert db.plain.options() == {"capped": True, "size": 256}
    for name in ("log", "clone", "plain"):
        assert db.command("validate", name)["valid"]


@pytest.mark.parametrize("compressors", [[], ["zlib"]])
def test_tailable_cursors(server, db, compressors):
    db.create_collection("log", capped=True, size=10_000)
    db.log.insert_one({"_id": 0})
    with pymongo.MongoClient("127.0.0.1", server.port, compressors=compressors) as client:
        cursor = client[db.name].log.find({}, cursor_type=pymongo.CursorType.TAILABLE_AWAIT).max_await_time_ms(20_000)
        heard = []

        def listen():
            for document in cursor:
                heard.append(document["_id"])
                if document["_id"] == 5:
                    return

        listener = threading.Thread(target=listen)
        listener.start()
        for n in range(1, 6):
            db.log.insert_one({"_id": n})
        listener.join(timeout=60)
        assert heard == [0, 1, 2, 3, 4, 5] and cursor.alive


def test_a_kill_loses_nothing_that_was_answered(tmp_path):
    running = Running(str(tmp_path / "data"))
    collection = running.client.test.c
    collection.create_index("n", unique=True)
    collection.insert_many([{"_id": n, "n": n} for n in range(2000)])
    collection.update_many({"n": {"$lt": 500}}, {"$inc": {"n": 10_000}})
    collection.with_options(write_concern=WriteConcern(j=True)).delete_many({"n": {"$gte": 10_400}})
    assert running.end(signal.SIGKILL) != 0
    running.start()
    collection = running.client.test.c
    assert collection.estimated_document_count() == collection.count_documents({}) == 1900
    assert running.client.test.command("validate", "c")["valid"]
    assert running.end(signal.SIGTERM) == 0


def test_unacknowledged_writes_are_applied(db):
    db.c.with_options(write_concern=WriteConcern(w=0)).insert_many([{"_id": n} for n in range(100)])
    # The same connection is used for the next command, which comes after.
    assert db.c.count_documents({"_id": {"$gte": 0}}) <= 100
    db.c.insert_one({"_id": 1000})
    while db.c.count_documents({}) < 101:
        pass


def test_a_wrong_message_ends_its_connection_only(server):
    for message in (b"\xff" * 64, struct.pack("<iiii", 20, 1, 0, 2013) + b"\0" * 4, struct.pack("<iiii", 1 << 30, 1, 0, 2013)):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(message)
            assert connection.recv(100) == b""
    assert server.client.admin.command("ping")["ok"] == 1


def test_the_handshake_of_old_drivers(server):
    body = bson.encode({"isMaster": 1})
    query = struct.pack("<i", 0) + b"admin.$cmd\0" + struct.pack("<ii", 0, -1) + body
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(struct.pack("<iiii", 16 + len(query), 7, 0, 2004) + query)
        reply = connection.recv(65536)
    length, _, to, opcode = struct.unpack_from("<iiii", reply)
    assert (length, to, opcode) == (len(reply), 7, 1)
    assert bson.decode(reply[36:])["ismaster"] is True
