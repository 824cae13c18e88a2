"""Operations of the unified test format, as calls of pymongo."""

import binascii
import re

from pymongo import operations, ReadPreference
from pymongo.collation import Collation
from pymongo.errors import ClientBulkWriteException
from pymongo.read_concern import ReadConcern
from pymongo.results import BulkWriteResult
from pymongo.write_concern import WriteConcern


def snake(name):
    return re.sub("([A-Z]+)", r"_\1", name).lower()


def options(given):
    """Concerns, preferences and times as the driver takes them."""
    made = {}
    for name, value in given.items():
        if name == "readConcern":
            made["read_concern"] = ReadConcern(**value)
        elif name == "writeConcern":
            made["write_concern"] = WriteConcern(**{"j" if it == "journal" else snake(it): x for it, x in value.items()})
        elif name == "readPreference":
            made["read_preference"] = getattr(ReadPreference, snake(value["mode"]).upper())
        elif name == "timeoutMS":
            made["timeout"] = value / 1000
        else:
            made[name] = value
    return made


def model(of):
    ((name, arguments),) = of.items()
    return getattr(operations, name[0].upper() + name[1:])(**{snake(it): value for it, value in arguments.items()})


# Arguments that the driver passes on to the command, and so takes by the command's names.
PASSED = {
    "aggregate": {"batchSize", "allowDiskUse", "bypassDocumentValidation", "maxTimeMS"},
    "createCollection": None, "modifyCollection": None, "createIndex": None, "rename": {"dropTarget"},
    "findOneAndUpdate": {"bypassDocumentValidation"}, "findOneAndReplace": {"bypassDocumentValidation"},
}  # fmt: skip


def arguments_of(name, given, entities):
    made = {}
    for key, value in options(given).items():
        passed = PASSED.get(name, set())
        if key == "session":
            value = entities[value]
        elif key == "returnDocument":
            value = value == "After"
        elif key == "requests" or (key == "models" and name == "clientBulkWrite"):
            value = [model(request) for request in value]
        elif key == "collation":
            value = Collation(**{snake(it): x for it, x in value.items()})
        elif key == "fieldName":
            key = "key"
        if key == "maxTimeMS" and not name.startswith("find") or passed is None or key in passed:
            made[key] = value
        else:
            made[snake(key)] = value
    return made


def counts(result):
    names = ("deletedCount", "insertedCount", "matchedCount", "modifiedCount", "upsertedCount")
    made = {name: getattr(result, snake(name)) for name in names}
    if isinstance(result, BulkWriteResult):
        made["upsertedIds"] = {str(at): value for at, value in result.upserted_ids.items()}
    return made


def plain(name, result):
    """A result as the format has it."""
    if getattr(result, "acknowledged", True) is False:
        return {"acknowledged": False}
    if name in ("bulkWrite", "clientBulkWrite"):
        return counts(result)
    if name == "insertOne":
        return {"insertedId": result.inserted_id}
    if name == "insertMany":
        return {"insertedIds": {str(at): value for at, value in enumerate(result.inserted_ids)}}
    if name in ("deleteOne", "deleteMany"):
        return {"deletedCount": result.deleted_count}
    if name in ("updateOne", "updateMany", "replaceOne"):
        made = {"matchedCount": result.matched_count, "modifiedCount": result.modified_count}
        upserted = {} if result.upserted_id is None else {"upsertedId": result.upserted_id}
        return made | {"upsertedCount": len(upserted)} | upserted
    return result


def partial(error):
    """What had been done before a bulk of writes failed."""
    if isinstance(error, ClientBulkWriteException):
        return counts(error.partial_result)
    return counts(BulkWriteResult(error.details, True))


def on_client(client, name, given):
    if name == "clientBulkWrite":
        return client.bulk_write(**given)
    if name == "listDatabases":
        return list(client.list_databases(**given))
    return getattr(client, snake(name))(**given)


def on_database(database, name, given):
    if name == "runCommand":
        first = given.pop("command_name")
        return database.command({first: given["command"][first]} | given.pop("command"), **given)
    if name == "createCollection":
        return database.create_collection(given.pop("collection"), check_exists=False, **given)
    if name == "dropCollection":
        return database.drop_collection(given.pop("collection"), **given)
    if name == "modifyCollection":
        return database.command({"collMod": given.pop("collection")} | given)
    if name in ("aggregate", "listCollections"):
        return list(getattr(database, snake(name))(**given))
    return getattr(database, snake(name))(**given)


def on_collection(collection, name, given):
    if name == "createSearchIndexes":
        return collection.create_search_indexes([operations.SearchIndexModel(**it) for it in given["models"]])
    if name == "listSearchIndexes":
        return list(collection.list_search_indexes(given.get("name"), **given.get("aggregation_options", {})))
    if name == "createIndex":
        return collection.create_index(list(given.pop("keys").items()), **given)
    if name in ("find", "aggregate", "listIndexes"):
        return list(getattr(collection, snake(name))(**given))
    return getattr(collection, snake(name))(**given)


def on_session(session, name, given):
    return getattr(session, snake(name))(**given)


def on_bucket(bucket, name, given):
    if "id" in given:
        given["file_id"] = given.pop("id")
    given.pop("disable_md5", None)
    if name in ("upload", "uploadWithId"):
        given["source"] = binascii.unhexlify(given["source"]["$$hexBytes"])
        if "content_type" in given:
            given.setdefault("metadata", {})["contentType"] = given.pop("content_type")
    by_name = {"upload": "upload_from_stream", "uploadWithId": "upload_from_stream_with_id"}
    if name in ("download", "downloadByName"):
        opened = bucket.open_download_stream if name == "download" else bucket.open_download_stream_by_name
        with opened(**given) as stream:
            return stream.read()
    if name == "find":
        return list(bucket.find(**given))
    return getattr(bucket, by_name.get(name, snake(name)))(**given)
