"""The driver for Python of 2022, which greets by isMaster and OP_QUERY, as applications of then use it. (The newest one has tests of its
own: crates/mongo/clients.)"""

import datetime
import os
import subprocess
import threading
import time

import bson
import gridfs
import pymongo
from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, PyMongoError

assert pymongo.version_tuple[0] == 3
client = pymongo.MongoClient(os.environ["MONGO_URI"])
db = client.old


def refused(error, body, code=None):
    try:
        body()
    except error as said:
        assert code is None or said.code == code, said
        return said
    raise AssertionError("it was not refused")


def single_writes():
    c = db.single
    at = c.insert_one({"a": 1, "b": {"c": ["x"]}}).inserted_id
    assert c.find_one(at) == {"_id": at, "a": 1, "b": {"c": ["x"]}}
    done = c.update_one({"a": 1}, {"$inc": {"a": 1}, "$push": {"b.c": "y"}})
    assert (done.matched_count, done.modified_count) == (1, 1)
    assert c.update_one({"_id": "new"}, {"$set": {"a": 5}}, upsert=True).upserted_id == "new"
    assert c.replace_one({"_id": "new"}, {"z": 1}).modified_count == 1
    assert c.find_one({"b.c": "y"}, {"_id": 0, "a": 1}) == {"a": 2}
    assert c.delete_many({}).deleted_count == 2
    assert c.count_documents({}) == 0


def the_api_of_pymongo_2():
    c = db.older
    c.insert([{"_id": 1}, {"_id": 2}])
    c.save({"_id": 1, "x": 1})
    assert c.update({"_id": 2}, {"$set": {"x": 2}})["nModified"] == 1
    assert c.find().count() == 2
    assert c.find_and_modify({"_id": 1}, {"$inc": {"x": 1}}, new=True)["x"] == 2
    assert c.remove({"_id": 1})["n"] == 1
    assert c.group is not None and c.find_one()["x"] == 2


def unacknowledged():
    c = db.get_collection("unacknowledged", write_concern=pymongo.WriteConcern(w=0))
    for n in range(10):
        assert not c.insert_one({"_id": n}).acknowledged
    for _ in range(100):
        if db.unacknowledged.count_documents({}) == 10:
            return
        time.sleep(0.01)
    raise AssertionError("they did not arrive")


def cursors():
    c = db.many
    assert len(c.insert_many({"_id": n, "n": n} for n in range(10000)).inserted_ids) == 10000
    assert sum(each["n"] for each in c.find({"n": {"$gte": 5000}}).batch_size(333)) == (5000 + 9999) * 5000 // 2
    assert [each["n"] for each in c.find().sort("n", -1).skip(10).limit(2)] == [9989, 9988]
    assert sorted(c.distinct("n", {"n": {"$lt": 3}})) == [0, 1, 2]
    assert c.estimated_document_count() == 10000


def duplicates():
    c = db.dups
    c.insert_one({"_id": 1})
    refused(DuplicateKeyError, lambda: c.insert_one({"_id": 1}), 11000)
    said = refused(BulkWriteError, lambda: c.insert_many([{"_id": 2}, {"_id": 1}, {"_id": 3}], ordered=False))
    assert said.details["nInserted"] == 2 and said.details["writeErrors"][0]["index"] == 1


def indexes_and_pipelines():
    c = db.indexed
    c.insert_many({"mail": "m%d" % n, "a": n % 10, "b": n} for n in range(100))
    assert c.create_index("mail", unique=True) == "mail_1"
    c.create_index([("a", 1), ("b", -1)])
    assert set(c.index_information()) == {"_id_", "mail_1", "a_1_b_-1"}
    refused(DuplicateKeyError, lambda: c.insert_one({"mail": "m5"}))
    assert c.find({"a": 3}).sort("b", -1).explain()["queryPlanner"]["winningPlan"]
    c.drop_index("mail_1")
    c.insert_one({"mail": "m5"})
    groups = c.aggregate([{"$match": {"a": {"$lt": 2}}}, {"$group": {"_id": "$a", "t": {"$sum": "$b"}}}, {"$sort": {"_id": 1}}])
    assert list(groups) == [{"_id": 0, "t": 450}, {"_id": 1, "t": 460}]


def types():
    document = {
        "_id": ObjectId(),
        "string": "häß\0lich",
        "double": 1.5,
        "int": 7,
        "long": Int64(9007199254740993),
        "decimal": Decimal128("1.2345678901234567890123456789"),
        "date": datetime.datetime(2023, 11, 14, 22, 13, 20, 123000),
        "binary": Binary(b"\1\2\3", 128),
        "regex": Regex("^a", "i"),
        "stamp": Timestamp(5, 6),
        "min": MinKey(),
        "max": MaxKey(),
        "none": None,
        "yes": True,
        "code": bson.Code("f()"),
        "deep": [[], {}, [1, {"a": []}]],
    }
    db.types.insert_one(document)
    assert db.types.find_one() == document


def workers():
    c = db.counter
    c.insert_one({"_id": 1, "n": 0})

    def work():
        for _ in range(200):
            c.update_one({"_id": 1}, {"$inc": {"n": 1}})

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert c.find_one() == {"_id": 1, "n": 1600}


def files_and_sessions():
    files = gridfs.GridFS(db)
    data = b"drumlin " * 87500
    at = files.put(data, filename="a.bin")
    assert files.get(at).read() == data
    files.delete(at)
    with client.start_session() as session:
        db.sessions.insert_one({"a": 1}, session=session)
        assert db.sessions.count_documents({}, session=session) == 1
    other = pymongo.MongoClient(os.environ["MONGO_URI"], compressors="zlib")
    other.old.compressed.insert_many({"n": n, "text": "again and again " * 20} for n in range(1000))
    assert len(list(other.old.compressed.find())) == 1000


def refusals():
    c = db.refused
    c.insert_one({"a": 1})
    assert "$where" in str(refused(OperationFailure, lambda: list(c.find({"$where": "this.a"}))))
    assert "changestream" in str(refused(OperationFailure, lambda: c.watch().next())).lower()
    refused(OperationFailure, lambda: db.command("nonsense"), 59)
    refused(OperationFailure, lambda: c.map_reduce("function() {}", "function() {}", "out"), 115)
    assert c.count_documents({}) == 1


def a_killed_server():
    c = db.killed
    acknowledged = []
    stop = threading.Event()

    def write():
        n = 0
        while not stop.is_set():
            try:
                c.insert_one({"_id": n})
                acknowledged.append(n)
            except PyMongoError:
                pass
            n += 1

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.3)
    subprocess.run([os.environ["RESTART_SERVER"]], check=True)
    time.sleep(0.3)
    stop.set()
    writer.join()
    assert len(acknowledged) > 10
    assert set(acknowledged) <= {each["_id"] for each in c.find()}


failed = 0
checks = [
    single_writes, the_api_of_pymongo_2, unacknowledged, cursors, duplicates, indexes_and_pipelines, types, workers, files_and_sessions,
    refusals, a_killed_server,
]  # fmt: skip
for check in checks:
    try:
        check()
        print("ok", check.__name__)
    except Exception as error:
        failed += 1
        print("FAILED", check.__name__, repr(error))
print(f"{len(checks) - failed} passed, {failed} failed")
raise SystemExit(failed > 0)
