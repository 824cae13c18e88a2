"""Where two peers answer alike and we do not, and why ours is as MongoDB's: the text of a reason, and a test of a difference.

A test looks at the command, the fewest documents that show the difference, our answer and theirs. Each is to be as narrow as it can be said.
"""

import re

from bson import Regex


def walk(value, name=None):
    """All values below one, with the name that each has."""
    yield name, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from walk(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


def operators(command):
    return {name for name, _ in walk(command) if name and name.startswith("$")}


def values_of(command, operator):
    return [value for name, value in walk(command) if name == operator]


def words(answer):
    return sorted(re.split(r"[\s{}\[\],]+", answer))


def fields(it, names):
    return [document[name] for document in it.documents for name in names if name in document]


def has_array_below(value):
    return any(isinstance(inner, list) and any(isinstance(element, list) for element in inner) for _, inner in walk(value))


def updates_of(command):
    return [*values_of(command, "u"), *([command["update"]] if isinstance(command.get("update"), dict) else [])]


def fields_in_another_order(it):
    return "projection" in it.command and it.ours != it.theirs and words(it.ours) == words(it.theirs)


def paths_of_expressions(command):
    """Names of the fields at which paths of expressions with dots begin."""
    return {value[1:].split(".")[0] for _, value in walk(command) if isinstance(value, str) and re.match(r"\$[a-z]\.", value)}


def place_of_an_array(it):
    names = {name.split(".")[0] for name, _ in walk(it.command) if name and re.fullmatch(r"[a-z](\.[a-z])*\.\d(\.[a-z])*", name)}
    key = it.command.get("key", "")
    return any(has_array_below(value) for value in fields(it, names | ({key[0]} if "." in key else set())))


def behind_an_array(it):
    """Whether a path leads to a place that an array does not have."""
    names = [name for name, _ in walk(it.command) if name and re.match(r"[a-z]\.", name)] + [it.command.get("key", "")]
    for first, *rest in (name.split(".") for name in names):
        place = int(rest[0]) if rest and rest[0].isdigit() else 0
        if any(isinstance(value, list) and len(value) <= place for value in fields(it, [first])):
            return True
    return False


def filter_for_an_array(it):
    items = [item for value in values_of(it.command, "$all") for item in value]
    filters = [it.command.get("filter"), it.command.get("query"), *values_of(it.command, "$match"), *values_of(it.command, "q")]
    is_found = any(isinstance(value, list) for some in filters for name, value in walk(some) if name and not name.startswith("$"))
    return any(isinstance(item, list) for item in items) or is_found and has_array_below(it.documents)


def range_over_an_array(it):
    ranges = [name for name, value in walk(it.command) if isinstance(value, dict) and {"$gte", "$lt"} <= set(value)]
    return any(isinstance(value, list) for value in fields(it, ranges))


def sorted_below_mixed_elements(it):
    """Whether a sort goes to a field of the elements of an array of which some are no documents."""
    firsts = [name.split(".")[0] for value in values_of(it.command, "sort") + values_of(it.command, "$sort") for name in value if "." in name]
    arrays = [value for value in fields(it, firsts) if isinstance(value, list)]
    return any(not isinstance(element, dict) for value in arrays for element in value)


KNOWN = [
    ("a projection of fields that stay leaves them in the order of the document", fields_in_another_order),
    (
        "a path of an expression over an array gives an array of what is found, be it empty; places of an array are not meant",
        lambda it: any(isinstance(inner, list) for value in fields(it, paths_of_expressions(it.command)) for _, inner in walk(value)),
    ),
    ("one element of an array may pass one end of a range, and another the other", range_over_an_array),
    ("a path that ends at a place in an array means the elements of an array there, too", place_of_an_array),
    ("a rename into its own field is a conflict, if nothing matches either", lambda it: it.ours.startswith("error 40") and "$rename" in operators(it.command)),
    ("$slice of anything is null where its second argument is", lambda it: it.theirs.startswith("error 28724") and "$slice" in operators(it.command)),
    (
        "arguments are looked at in turn: the first that is null, or none of the type, decides",
        lambda it: it.ours.startswith("error 14") and {"$multiply", "$add"} & operators(it.command) and not it.theirs.startswith("error"),
    ),
    ("$all with null finds what has no such field", lambda it: any(None in value for value in values_of(it.command, "$all"))),
    ("what an array has no place for is not there, and no null", behind_an_array),
    (
        "$pop below what has no fields is an error: documentdb's functional tests, which are run against MongoDB, say so",
        lambda it: it.ours.startswith("error 28") and "$pop" in operators(it.command) and not it.theirs.startswith("error"),
    ),
    (
        "a double has fifteen digits where it is added to a decimal",
        lambda it: "Decimal128" in it.ours and "Decimal128" in it.theirs and {"$add", "$avg", "$subtract", "$sum"} & operators(it.command),
    ),
    (
        "$elemMatch looks at arrays as at documents: they have no field of a name",
        lambda it: "$elemMatch" in operators(it.command) and has_array_below(it.documents),
    ),
    (
        "a regular expression in the filter of an upsert is no value that the document gets",
        lambda it: any(value is True for value in values_of(it.command, "upsert")) and any(isinstance(value, Regex) for _, value in walk(it.command)),
    ),
    (
        "a field with dots that is computed as nothing leaves the document around it, also for the stages behind",
        lambda it: not it.ours.startswith("error") and any("." in name for fields in values_of(it.command, "$addFields") for name in fields),
    ),
    (
        "of two errors that is told whose field comes first by name, whose document comes first, or what is innermost in an expression",
        lambda it: it.ours.startswith("error")
        and it.theirs.startswith("error")
        and ("aggregate" in it.command or any(len(u) > 1 for u in updates_of(it.command))),
    ),
    ("a filter for an array finds it as an element of an array, and $all does so, too", filter_for_an_array),
    (
        "$gte and $lte of null find what has no such field",
        lambda it: any(value is None for name in ("$gte", "$lte") for value in values_of(it.command, name)),
    ),
    (
        "a range of an array compares arrays whole",
        lambda it: any(isinstance(value, list) for name in ("$gt", "$gte", "$lt", "$lte") for value in values_of(it.command, name)),
    ),
    (
        "$in of one value is that value, also for the document that an upsert makes",
        lambda it: any(value is True for value in values_of(it.command, "upsert"))
        and any(all(value == values[0] for value in values) for values in values_of(it.command, "$in") if values),
    ),
    ("below an element that is no document a sort finds null, as below a document without the field", sorted_below_mixed_elements),
]
