"""What the unified test format calls matching: an expected value may say less than the real one."""

import binascii
import datetime
import re

from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex

TYPES = {
    "double": float, "string": str, "object": dict, "array": list, "binData": (bytes, Binary), "objectId": ObjectId, "bool": bool,
    "date": datetime.datetime, "null": type(None), "regex": (Regex, re.Pattern), "dbPointer": DBRef, "javascript": Code, "int": int,
    "long": (Int64, int), "decimal": Decimal128, "minKey": MinKey, "maxKey": MaxKey, "number": (int, float, Decimal128),
}  # fmt: skip
MISSING = object()


class Mismatch(AssertionError):
    pass


def demand(is_so, where, text):
    if not is_so:
        raise Mismatch(f"{where}: {text}")


def match(expected, actual, entities, where="result", is_root=True):
    """Raises Mismatch where `actual` is not what `expected` asks for. At the root, documents may have more fields."""
    if isinstance(expected, dict) and len(expected) == 1 and next(iter(expected)).startswith("$$"):
        ((operator, argument),) = expected.items()
        return special(operator, argument, actual, entities, where)
    demand(actual is not MISSING, where, f"missing, expected {expected!r}")
    if isinstance(expected, dict):
        demand(isinstance(actual, dict), where, f"{actual!r} is no document")
        for name, value in expected.items():
            match(value, actual.get(name, MISSING), entities, f"{where}.{name}", False)
        more = set(actual) - set(expected)
        demand(is_root or not more, where, f"has also {sorted(more)}")
    elif isinstance(expected, list):
        demand(isinstance(actual, list) and len(actual) == len(expected), where, f"{actual!r} for {expected!r}")
        for at, (one, other) in enumerate(zip(expected, actual)):
            # The documents of a result are roots, too.
            match(one, other, entities, f"{where}[{at}]", is_root and where == "result")
    elif isinstance(expected, (int, float)) and not isinstance(expected, bool):
        is_number = isinstance(actual, (int, float)) and not isinstance(actual, bool)
        demand(is_number and actual == expected, where, f"{actual!r} for {expected!r}")
    else:
        demand(isinstance(actual, type(expected)) and actual == expected, where, f"{actual!r} for {expected!r}")


def special(operator, argument, actual, entities, where):
    if operator == "$$exists":
        demand((actual is not MISSING) == argument, where, "there" if actual is not MISSING else "missing")
    elif operator == "$$unsetOrMatches":
        if actual is not MISSING and actual is not None:
            match(argument, actual, entities, where, where == "result")
    elif operator == "$$type":
        names = [argument] if isinstance(argument, str) else argument
        is_of = any(isinstance(actual, TYPES[name]) and (name == "bool") == isinstance(actual, bool) for name in names)
        demand(is_of, where, f"{actual!r} is no {argument}")
    elif operator == "$$matchesEntity":
        match(entities[argument], actual, entities, where, where == "result")
    elif operator == "$$matchesHexBytes":
        demand(actual == binascii.unhexlify(argument), where, f"{actual!r} for {argument}")
    elif operator == "$$sessionLsid":
        demand(actual == entities["lsid " + argument], where, f"{actual!r} is not the session's id")
    elif operator == "$$lte":
        demand(actual is not MISSING and actual <= argument, where, f"{actual!r} is above {argument}")
    else:
        raise NotImplementedError(operator)
