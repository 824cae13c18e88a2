"""Random documents and commands over them, drawn from a seed.

Whatever depends on the order of documents comes behind a sort that ends in `_id`, and keys of upserts are given: what is left has
one right answer.
"""

import datetime
import random

from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

FIELDS = ("a", "b", "c", "d")
PATHS = ("a", "b", "c", "d", "a", "b", "c", "d", "a.x", "a.y", "b.x", "c.0", "c.1", "d.x.y", "b.x.y", "a.0.x", "e")
TYPES = ("double", "string", "object", "array", "bool", "null", "int", "long", "number", "date", "objectId", "binData", 16, 2)
DAY = datetime.datetime(2024, 2, 29, 12, 30, 15, 250_000)


class Grammar:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.upserts = 1000

    def one_in(self, count):
        return self.random.randrange(count) == 0

    def pick(self, *choices):
        return self.random.choice(choices)

    # Values.

    def number(self):
        kind = self.random.randrange(12)
        if kind < 6:
            return self.random.randrange(-3, 6)
        if kind < 9:
            return self.pick(0.5, 1.0, 2.0, -1.5, 0.0, 3.25, 5.0)
        if kind < 11:
            return Int64(self.random.randrange(-2, 4))
        return self.pick(2**31 - 1, 2**31, 2**40, -(2**40), 1e10, float("inf"))

    def string(self):
        return self.pick("", "a", "b", "ab", "abc", "B", "é", "a.b", "2", "x y")

    def scalar(self):
        kind = self.random.randrange(24)
        if kind < 11:
            return self.number()
        if kind < 16:
            return self.string()
        if kind < 18:
            return self.pick(True, False)
        if kind < 20:
            return None
        if kind == 20:
            return DAY + datetime.timedelta(days=self.random.randrange(-2, 3))
        if kind == 21:
            return ObjectId(f"{self.random.randrange(3):024x}")
        return self.rare()

    def rare(self):
        return self.pick(
            Binary(b"ab"), Binary(b"abc"), Timestamp(1, 2), MinKey(), MaxKey(), float("nan"), Decimal128("1.5"), Decimal128("2"), Regex("^a")
        )

    def value(self, depth=2):
        kind = self.random.randrange(10)
        if depth == 0 or kind < 5:
            return self.scalar()
        if kind < 8:
            return [self.value(depth - 1) for _ in range(self.random.randrange(4))]
        return self.small(depth - 1)

    def small(self, depth=1):
        return {name: self.value(depth) for name in self.random.sample(("x", "y", "z"), self.random.randrange(1, 3))}

    def document(self, number):
        names = self.random.sample(FIELDS, self.random.randrange(1, len(FIELDS) + 1))
        return {"_id": number} | {name: self.value() for name in names}

    def path(self):
        return self.random.choice(PATHS)

    # Filters.

    def predicate(self, depth=1):
        name = self.pick(
            "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$type", "$size", "$all", "$elemMatch", "$mod", "$regex", "$not"
        )
        if name in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte"):
            value = self.value(1)
            return {name: self.scalar() if isinstance(value, Regex) else value}
        if name in ("$in", "$nin"):
            return {name: [self.value(1) for _ in range(self.random.randrange(4))]}
        if name == "$exists":
            return {name: self.pick(True, False)}
        if name == "$type":
            return {name: self.random.choice(TYPES) if self.one_in(2) else self.random.sample(TYPES, 2)}
        if name == "$size":
            return {name: self.random.randrange(4)}
        if name == "$all":
            return {name: [self.value(1) for _ in range(self.random.randrange(1, 3))]}
        if name == "$mod":
            return {name: [self.pick(2, 3), self.pick(0, 1)]}
        if name == "$regex":
            return {name: self.pick("a", "^a", "b$", "^A", "."), "$options": self.pick("", "i")}
        if depth == 0:
            return {"$gt": self.number()}
        if name == "$elemMatch":
            if self.one_in(2):
                return {name: {self.pick("x", "y", "x.y"): self.condition(0)}}
            return {name: self.predicate(0)}
        return {name: self.predicate(0)}

    def condition(self, depth=1):
        if self.one_in(3):
            return self.value(1)
        if self.one_in(4):
            return {"$gte": self.number(), "$lt": self.number()}
        return self.predicate(depth)

    def filter(self, depth=1):
        if depth and self.one_in(4):
            name = self.pick("$and", "$or", "$nor")
            return {name: [self.filter(depth - 1) for _ in range(self.random.randrange(1, 3))]}
        if depth and self.one_in(12):
            return {"$expr": {self.pick("$eq", "$gt", "$lte"): ["$" + self.path(), self.number()]}}
        return {self.path(): self.condition() for _ in range(self.pick(1, 1, 1, 2))}

    # Projections and sorts.

    def projection(self):
        kind = self.random.randrange(8)
        if kind < 3:
            names = self.random.sample(("a", "b", "c", "d", "a.x", "b.x"), self.random.randrange(1, 3))
            if len({name[0] for name in names}) < len(names):
                names = names[:1]
            out = {name: 1 for name in names}
            return out | ({"_id": 0} if self.one_in(4) else {})
        if kind < 6:
            names = self.random.sample(("a", "b", "c", "d", "a.x", "d.x"), self.random.randrange(1, 3))
            if len({name[0] for name in names}) < len(names):
                names = names[:1]
            return {name: 0 for name in names}
        if kind == 6:
            return {self.pick("a", "b", "c"): {"$slice": self.pick(1, -1, 2, [1, 1], [-2, 1])}}
        return {self.pick("a", "b", "c"): {"$elemMatch": {self.pick("x", "y"): self.condition(0)}}}

    def sort(self):
        keys = {self.path(): self.pick(1, -1) for _ in range(self.random.randrange(1, 3))}
        return keys | {"_id": self.pick(1, -1)}

    # Updates.

    def operator(self):
        name = self.pick(
            "$set", "$set", "$unset", "$inc", "$inc", "$mul", "$min", "$max", "$rename", "$push", "$push", "$addToSet", "$pop", "$pull", "$pullAll", "$bit"
        )
        path = self.pick("a", "b", "c", "d", "a.x", "b.x", "c.0", "c.2", "d.x.y", "e.f")
        if name in ("$set", "$min", "$max"):
            return name, {path: self.value(1)}
        if name == "$unset":
            return name, {path: ""}
        if name in ("$inc", "$mul"):
            return name, {path: self.pick(1, 2, -1, 0.5, Int64(3), 2**31 - 1)}
        if name == "$rename":
            return name, {path: self.pick("e", "g.h")}
        if name == "$pop":
            return name, {path: self.pick(1, -1)}
        if name == "$pull":
            return name, {path: self.predicate(0) if self.one_in(2) else self.value(1)}
        if name == "$pullAll":
            return name, {path: [self.value(1) for _ in range(self.random.randrange(3))]}
        if name == "$bit":
            return name, {path: {self.pick("and", "or", "xor"): self.random.randrange(8)}}
        if self.one_in(2):
            return name, {path: self.value(1)}
        each = {"$each": [self.value(1) for _ in range(self.random.randrange(3))]}
        if name == "$push":
            if self.one_in(3):
                each["$position"] = self.pick(0, 1, -1)
            if self.one_in(3):
                each["$slice"] = self.pick(2, -2, 0)
            if self.one_in(3):
                each["$sort"] = self.pick(1, -1, {"x": 1})
        return name, {path: each}

    def update(self):
        if self.one_in(10):
            names = self.random.sample(FIELDS, 2)
            return {name: self.value() for name in names}
        if self.one_in(12):
            return [{"$set": {self.pick("a", "e"): self.expression()}}]
        name, change = self.operator()
        out = {name: change}
        if self.one_in(4):
            name, change = self.operator()
            if name not in out and not {path[0] for path in out[next(iter(out))]} & {path[0] for path in change}:
                out[name] = change
        return out

    # Pipelines.

    def expression(self, depth=2):
        if depth == 0 or self.one_in(3):
            return "$" + self.path() if self.one_in(2) else {"$literal": self.scalar()} if self.one_in(4) else self.number()

        def inner():
            return self.expression(depth - 1)

        name = self.pick(
            "$add", "$subtract", "$multiply", "$divide", "$mod", "$abs", "$eq", "$gt", "$lte", "$cmp", "$and", "$or", "$not", "$cond", "$ifNull",
            "$concat", "$toLower", "$size", "$isArray", "$arrayElemAt", "$in", "$type", "$concatArrays", "$setUnion", "$mergeObjects", "$floor",
            "$sum", "$max", "$map", "$filter", "$switch", "$toString", "$first", "$slice", "$reverseArray", "$strLenCP",
        )
        if name in ("$add", "$multiply", "$concat", "$and", "$or", "$concatArrays", "$setUnion", "$max", "$sum"):
            return {name: [inner() for _ in range(self.random.randrange(1, 4))]}
        if name in ("$subtract", "$divide", "$mod", "$eq", "$gt", "$lte", "$cmp", "$ifNull", "$arrayElemAt", "$in", "$slice"):
            return {name: [inner(), inner()]}
        if name == "$cond":
            return {name: [inner(), inner(), inner()]}
        if name == "$map":
            return {name: {"input": inner(), "as": "it", "in": {"$eq": ["$$it", inner()]}}}
        if name == "$filter":
            return {name: {"input": inner(), "as": "it", "cond": {self.pick("$gt", "$ne"): ["$$it", inner()]}}}
        if name == "$switch":
            return {name: {"branches": [{"case": inner(), "then": inner()}], "default": inner()}}
        return {name: inner() if name in ("$not", "$isArray") else [inner()] if self.one_in(2) else inner()}

    def accumulator(self):
        name = self.pick("$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$addToSet")
        return {name: self.pick(1, "$a", "$b", "$c", "$a.x", {"$size": {"$ifNull": ["$c", []]}})}

    def stage(self):
        name = self.pick("$match", "$match", "$project", "$addFields", "$group", "$unwind", "$sort", "$unset", "$replaceRoot", "$sortByCount", "$count")
        if name == "$match":
            return {name: self.filter()}
        if name == "$project":
            if self.one_in(2):
                return {name: {self.pick("a", "e"): self.expression(), "b": 1}}
            return {name: self.pick({"a": 1, "c": 1}, {"a": 0}, {"a.x": 1}, {"b.x": 0, "c": 0})}
        if name == "$addFields":
            return {name: {self.pick("a", "e", "f.g", "a.x"): self.expression()}}
        if name == "$group":
            return {name: {"_id": self.pick(None, "$a", "$b", "$c", {"a": "$a"}), "r": self.accumulator()}}
        if name == "$unwind":
            path = "$" + self.pick("a", "b", "c", "d", "a.x")
            return {name: {"path": path, "preserveNullAndEmptyArrays": True} if self.one_in(2) else path}
        if name == "$sort":
            return {name: self.sort()}
        if name == "$unset":
            return {name: self.pick("a", ["a", "b.x"])}
        if name == "$replaceRoot":
            return {name: {"newRoot": self.pick({"k": "$a", "_id": "$_id"}, {"$mergeObjects": ["$$ROOT", {"z": self.expression(1)}]})}}
        if name == "$sortByCount":
            return {name: self.pick("$a", "$b", "$c")}
        return {name: "n"}

    def pipeline(self):
        """Stages behind a sort by `_id`: what groups goes without an order from there on, so that nothing may follow that asks for one."""
        stages = [{"$sort": {"_id": 1}}]
        for _ in range(self.random.randrange(1, 4)):
            stage = self.stage()
            stages.append(stage)
            if not {"$group", "$sortByCount", "$count"}.isdisjoint(stage):
                return stages
        if self.one_in(4):
            stages.insert(1, {"$limit": self.random.randrange(1, 8)})
        if self.one_in(6):
            stages.insert(1, {"$skip": self.random.randrange(1, 5)})
        return stages

    # Commands: each a document without a database, and whether it writes.

    def read(self):
        kind = self.random.randrange(10)
        if kind < 5:
            command = {"find": "t", "filter": self.filter(), "batchSize": 1000}
            if self.one_in(3):
                command["projection"] = self.projection()
            command["sort"] = self.sort() if self.one_in(2) else {"_id": 1}
            if self.one_in(5):
                command["limit"] = self.random.randrange(1, 5)
            if self.one_in(6):
                command["skip"] = self.random.randrange(1, 5)
            return command
        if kind < 8:
            return {"aggregate": "t", "pipeline": self.pipeline(), "cursor": {"batchSize": 1000}}
        if kind == 8:
            return {"count": "t", "query": self.filter()}
        return {"distinct": "t", "key": self.path(), "query": self.filter()}

    def write(self, has_index):
        """With an index the first of several documents is another one: then all are meant, or an order or a key says which."""
        kind = self.random.randrange(10)
        if kind < 7:
            statement = {"q": self.filter(), "u": self.update(), "multi": False}
            is_partial = isinstance(statement["u"], list) or next(iter(statement["u"])).startswith("$")
            if self.one_in(2) or has_index and not is_partial:
                statement["q"] = {"_id": self.random.randrange(12)} | ({"c": self.condition()} if self.one_in(4) else {})
            elif is_partial and (has_index or self.one_in(2)):
                statement["multi"] = True
            if self.one_in(8):
                self.upserts += 1
                statement["q"] = {"_id": self.upserts} | ({self.pick("a", "b.x"): self.condition()} if self.one_in(2) else {})
                statement |= {"upsert": True, "multi": False}
                if is_partial and isinstance(statement["u"], dict) and self.one_in(2):
                    statement["u"]["$setOnInsert"] = {"i": self.value(1)}
            return {"update": "t", "updates": [statement]}
        if kind == 7:
            return {"delete": "t", "deletes": [{"q": self.filter(), "limit": 0 if has_index else self.pick(0, 1)}]}
        command = {"findAndModify": "t", "query": self.filter(), "sort": self.sort()}
        if self.one_in(4):
            return command | {"remove": True}
        return command | {"update": self.update(), "new": self.pick(True, False)}

    def index(self):
        """An index that our side has: its peers answer without it."""
        spec = {"key": {self.pick("a", "b", "c", "d", "a.x"): self.pick(1, -1)}, "name": "i"}
        if self.one_in(4):
            spec["sparse"] = True
        return {"createIndexes": "t", "indexes": [spec]}
