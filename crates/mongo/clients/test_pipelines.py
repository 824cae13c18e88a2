"""Regular expressions, expressions and stages, asked for through the driver."""

import datetime
import re

import pytest
from bson.regex import Regex
from pymongo.errors import OperationFailure

UTC = datetime.timezone.utc


def test_regular_expressions(db):
    db.c.insert_many([{"_id": n, "s": s} for n, s in enumerate(["apple", "Apricot", "banana", "ape\n", 5, ["x", "apx"], Regex("^ap")])])
    ids = lambda filter: sorted(d["_id"] for d in db.c.find(filter))
    for _ in range(2):
        assert ids({"s": {"$regex": "^ap"}}) == [0, 3, 5, 6]
        assert ids({"s": re.compile("^AP", re.I)}) == [0, 1, 3, 5]
        assert ids({"s": {"$in": [re.compile("na$"), 5]}}) == [2, 4]
        assert ids({"s": {"$nin": [re.compile("a")]}}) == [1, 4, 6]
        assert ids({"s": {"$not": re.compile("ap")}}) == [1, 2, 4, 6]
        assert ids({"s": {"$regex": "pe$"}}) == [3]
        assert ids({"s": {"$regex": r"(?=.*n)b\w+"}}) == [2]
        assert ids({"s": {"$eq": Regex("^ap")}}) == [6]
        db.c.create_index("s")
    plan = db.c.find({"s": {"$regex": "^ban"}}).explain()
    assert plan["queryPlanner"]["winningPlan"]["inputStage"]["indexName"] == "s_1"
    assert plan["executionStats"]["totalKeysExamined"] == 1
    for filter, code in [({"s": {"$regex": "("}}, 51091), ({"s": {"$regex": "a", "$options": "q"}}, 51108), ({"s": {"$ne": re.compile("a")}}, 2)]:
        with pytest.raises(OperationFailure) as error:
            db.c.find_one(filter)
        assert error.value.code == code


def test_bits(db):
    db.c.insert_many([{"_id": n, "f": n} for n in range(8)])
    assert [d["_id"] for d in db.c.find({"f": {"$bitsAllSet": [0, 1]}})] == [3, 7]
    assert [d["_id"] for d in db.c.find({"f": {"$bitsAnyClear": 6}})] == [0, 1, 2, 3, 4, 5]


def test_conditions_by_expressions(db):
    db.c.insert_many([{"_id": n, "spent": n * 10, "budget": 45} for n in range(8)])
    assert [d["_id"] for d in db.c.find({"$expr": {"$gt": ["$spent", "$budget"]}})] == [5, 6, 7]
    found = db.command({"find": "c", "filter": {"$expr": {"$eq": ["$_id", "$$wanted"]}}, "let": {"wanted": 3}})
    assert [d["_id"] for d in found["cursor"]["firstBatch"]] == [3]
    assert db.c.update_many({"$expr": {"$lt": ["$spent", 20]}}, {"$set": {"low": True}}).modified_count == 2
    assert db.c.delete_many({"$expr": "$low"}).deleted_count == 2
    with pytest.raises(OperationFailure) as error:
        db.c.find_one({"$expr": {"$divide": [1, {"$subtract": ["$budget", 45]}]}})
    assert error.value.code == 2 and "zero" in str(error.value)


def test_projections_of_find(db):
    db.c.insert_one({"_id": 1, "l": [5, 6, 7, 8], "d": [{"a": 1, "b": 2}, {"a": 2, "b": 3}], "n": 4})
    one = lambda projection, filter={}: db.c.find_one(filter, projection)
    assert one({"l": {"$slice": -1}, "_id": 0, "d": 0, "n": 0}) == {"l": [8]}
    assert one({"l": {"$slice": [1, 2]}, "n": 1}) == {"_id": 1, "l": [6, 7], "n": 4}
    assert one({"d": {"$elemMatch": {"a": 2}}}) == {"_id": 1, "d": [{"a": 2, "b": 3}]}
    assert one({"l.$": 1}, {"l": {"$gt": 6}}) == {"_id": 1, "l": [7]}
    assert one({"_id": 0, "sum": {"$sum": "$l"}, "d": {"a": 1}}) == {"sum": 26, "d": [{"a": 1}, {"a": 2}]}
    with pytest.raises(OperationFailure) as error:
        one({"a": 1, "b": 0})
    assert error.value.code == 31254


def test_computed_fields(db):
    day = datetime.datetime(2024, 2, 29, 22, 30, tzinfo=UTC)
    db.c.insert_one({"_id": 1, "price": 10, "count": 3, "day": day, "tags": ["b", "a"], "o": {"x": 1}})
    project = {
        "_id": 0,
        "total": {"$multiply": ["$price", "$count"]},
        "label": {"$concat": [{"$toUpper": {"$first": "$tags"}}, "-", {"$toString": "$price"}]},
        "o.y": {"$add": ["$o.x", 1]},
        "month": {"$dateToString": {"date": "$day", "format": "%Y-%m", "timezone": "Europe/Berlin"}},
        "next": {"$dateAdd": {"startDate": "$day", "unit": "year", "amount": 1}},
        "sorted": {"$sortArray": {"input": "$tags", "sortBy": 1}},
        "big": {"$cond": [{"$gte": ["$count", 3]}, "yes", "no"]},
        "doubled": {"$map": {"input": {"$range": [0, "$count"]}, "as": "n", "in": {"$multiply": ["$$n", 2]}}},
    }
    found = next(db.c.with_options(codec_options=db.codec_options.with_options(tz_aware=True)).aggregate([{"$project": project}]))
    assert found == {
        "total": 30,
        "label": "B-10",
        "o": {"y": 2},
        "month": "2024-02",
        "next": datetime.datetime(2025, 2, 28, 22, 30, tzinfo=UTC),
        "sorted": ["a", "b"],
        "big": "yes",
        "doubled": [0, 2, 4],
    }
    added = next(db.c.aggregate([{"$addFields": {"o": {"z": {"$size": "$tags"}}, "tags": "$$REMOVE"}}, {"$unset": "day"}]))
    assert added == {"_id": 1, "price": 10, "count": 3, "o": {"x": 1, "z": 2}}


def test_groups_over_expressions(db):
    db.c.insert_many([{"_id": n, "v": n, "o": {f"k{n % 2}": n}} for n in range(10)])
    groups = list(
        db.c.aggregate(
            [
                {"$group": {"_id": {"even": {"$eq": [{"$mod": ["$v", 2]}, 0]}}, "sum": {"$sum": {"$multiply": ["$v", 10]}}, "dev": {"$stdDevPop": "$v"}, "last": {"$mergeObjects": "$o"}}},
                {"$sort": {"sum": 1}},
            ]
        )
    )
    assert groups[0]["_id"] == {"even": True} and groups[0]["sum"] == 200 and groups[0]["last"] == {"k0": 8}
    assert groups[1]["_id"] == {"even": False} and abs(groups[1]["dev"] - 8**0.5) < 1e-12
    buckets = list(db.c.aggregate([{"$bucket": {"groupBy": "$v", "boundaries": [0, 3, 8], "default": "more", "output": {"all": {"$push": "$v"}}}}]))
    assert buckets == [{"_id": 0, "all": [0, 1, 2]}, {"_id": 3, "all": [3, 4, 5, 6, 7]}, {"_id": "more", "all": [8, 9]}]


def test_lookup(db):
    db.orders.insert_many([{"_id": 1, "item": "a", "n": 2}, {"_id": 2, "item": ["a", "b"], "n": 5}, {"_id": 3, "n": 1}])
    db.stock.insert_many([{"_id": 10, "sku": "a", "left": 3}, {"_id": 11, "sku": "b", "left": 9}, {"_id": 12, "left": 0}])
    db.stock.create_index("sku")
    joined = db.orders.aggregate([{"$lookup": {"from": "stock", "localField": "item", "foreignField": "sku", "as": "s"}}, {"$set": {"s": "$s._id"}}])
    assert [d["s"] for d in joined] == [[10], [10, 11], [12]]
    pipeline = [{"$match": {"$expr": {"$gte": ["$left", "$$need"]}}}, {"$project": {"left": 1, "_id": 0}}]
    joined = db.orders.aggregate([{"$lookup": {"from": "stock", "let": {"need": "$n"}, "pipeline": pipeline, "as": "s"}}])
    assert [[x["left"] for x in d["s"]] for d in joined] == [[3, 9], [9], [3, 9]]
    both = {"from": "stock", "localField": "item", "foreignField": "sku", "let": {"need": "$n"}, "pipeline": pipeline, "as": "s"}
    assert [len(d["s"]) for d in db.orders.aggregate([{"$lookup": both}])] == [1, 1, 0]
    missing = db.orders.aggregate([{"$lookup": {"from": "nowhere", "localField": "item", "foreignField": "x", "as": "s"}}])
    assert [d["s"] for d in missing] == [[], [], []]


def test_other_stages(db):
    db.c.insert_many([{"_id": n, "g": n % 3, "l": [{"x": n}, {"x": n + 1}]} for n in range(30)])
    facets = next(db.c.aggregate([{"$match": {"_id": {"$lt": 9}}}, {"$facet": {"count": [{"$count": "n"}], "groups": [{"$sortByCount": "$g"}, {"$sort": {"_id": 1}}], "none": [{"$match": {"g": 7}}]}}]))
    assert facets == {"count": [{"n": 9}], "groups": [{"_id": g, "count": 3} for g in range(3)], "none": []}
    assert len({d["_id"] for d in db.c.aggregate([{"$sample": {"size": 7}}])}) == 7
    assert {tuple(d["_id"] for d in db.c.aggregate([{"$sample": {"size": 2}}])) for _ in range(20)} != {(0, 1)}
    db.e.insert_many([{"_id": "x"}, {"_id": "y"}])
    union = db.c.aggregate([{"$match": {"_id": {"$lt": 2}}}, {"$project": {"_id": 1}}, {"$unionWith": {"coll": "e", "pipeline": [{"$match": {"_id": "y"}}]}}])
    assert [d["_id"] for d in union] == [0, 1, "y"]
    unwound = db.c.aggregate([{"$match": {"_id": 4}}, {"$unwind": {"path": "$l", "includeArrayIndex": "at"}}])
    assert [(d["at"], d["l"]["x"]) for d in unwound] == [(0, 4), (1, 5)]
    assert list(db.aggregate([{"$documents": [{"a": 1}, {"a": {"$add": [1, 1]}}]}, {"$match": {"a": 2}}])) == [{"a": 2}]
    db.r.insert_one({"_id": 1, "level": 1, "in": {"level": 5, "secret": 1}, "list": [{"level": 2}, {"level": 9}]})
    redacted = db.r.aggregate([{"$redact": {"$cond": [{"$lte": ["$level", 3]}, "$$DESCEND", "$$PRUNE"]}}])
    assert list(redacted) == [{"_id": 1, "level": 1, "list": [{"level": 2}]}]
    plan = db.command("explain", {"aggregate": "c", "pipeline": [{"$match": {"_id": 4}}, {"$count": "n"}], "cursor": {}})
    assert plan["queryPlanner"]["winningPlan"]["stage"] == "IDHACK"


@pytest.mark.parametrize(
    ("stage", "code"),
    [
        ({"$graphLookup": {}}, 40324),
        ({"$set": {"x": {"$nonsense": 1}}}, 168),
        ({"$set": {"x": {"$add": ["x", 1]}}}, 14),
        ({"$project": {}}, 51270),
        ({"$project": {"a": 1, "b": 0}}, 31254),
        ({"$group": {"_id": 1, "x": 1}}, 40234),
        ({"$group": {"_id": 1, "x": {"$median": 1}}}, 15952),
        ({"$limit": 0}, 15958),
        ({"$sort": {}}, 15976),
        ({"$match": 1}, 15959),
        ({"$sample": {"size": 0}}, 28747),
        ({"$facet": {"a": [{"$facet": {}}]}}, 40600),
        ({"$lookup": {"from": "c", "as": "x"}}, 9),
        ({"$bucket": {"groupBy": "$v", "boundaries": [3, 1]}}, 40194),
        ({"$documents": []}, 73),
        ({"$replaceWith": 1}, 40228),
        ({"$set": {"x": {"$toDecimal": 1}}}, 168),
    ],
)
def test_wrong_stages(db, stage, code):
    db.c.insert_one({"_id": 1})
    with pytest.raises(OperationFailure) as error:
        list(db.c.aggregate([stage]))
    assert error.value.code == code
