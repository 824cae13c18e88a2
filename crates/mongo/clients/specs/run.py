"""Runs MongoDB's unified tests of drivers, as pymongo's source archive has them, against our server.

    run.py DIRECTORY_OF_TESTS [FOLDER[/FILE] ...]

Prints what passed by folder. A test that fails has to be in `reasons.txt`, and one that is there has to fail.
"""

import collections
import os
import pathlib
import signal
import sys
import tempfile

import pymongo
from bson import json_util
from gridfs import GridFSBucket
from gridfs.errors import CorruptGridFile, NoFile
from pymongo.errors import BulkWriteError, ClientBulkWriteException, ConfigurationError, ConnectionFailure, InvalidOperation
from pymongo.errors import NotPrimaryError, PyMongoError
from pymongo.monitoring import CommandListener
from pymongo.server_api import ServerApi
from pymongo.write_concern import WriteConcern

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import operations
from conftest import Running
from matching import demand, match

FOLDERS = ("crud", "index_management", "collection_management", "command_monitoring", "sessions", "gridfs", "versioned-api")
DATES = json_util.JSONOptions(tz_aware=False)
SENSITIVE = {"authenticate", "saslstart", "saslcontinue", "getnonce", "createuser", "updateuser", "copydbgetnonce", "copydbsaslstart", "copydb"}


class Skipped(Exception):
    """A test that asks for another server, or for what the driver does not have."""


class Events(CommandListener):
    """The commands of a client, as they went and came."""

    def __init__(self, spec):
        self.kinds = set(spec.get("observeEvents", []))
        self.ignored = {name.lower() for name in spec.get("ignoreCommandMonitoringEvents", [])} | {"configurefailpoint"}
        self.sees_secrets = spec.get("observeSensitiveCommands", False)
        self.seen = []

    def add(self, kind, event, content):
        name = event.command_name.lower()
        is_secret = name in SENSITIVE or content == {}
        if kind in self.kinds and name not in self.ignored and (self.sees_secrets or not is_secret):
            self.seen.append((kind, event))

    def started(self, event):
        self.add("commandStartedEvent", event, event.command)

    def succeeded(self, event):
        self.add("commandSucceededEvent", event, event.reply)

    def failed(self, event):
        self.add("commandFailedEvent", event, None)


class Server:
    """What tests ask about the server before they run."""

    def __init__(self, running):
        self.running = running
        self.admin = running.client.admin
        self.version = tuple(self.admin.command("buildInfo")["versionArray"][:3])
        self.parameters = self.admin.command("getParameter", "*")

    def lacks(self, requirements):
        """Why none of the requirements is met; nothing where one is."""
        reasons = [self.lacks_one(requirement) for requirement in requirements]
        return None if None in reasons else reasons[0] if reasons else None

    def lacks_one(self, requirement):
        def version(text):
            return tuple((list(map(int, text.split("."))) + [0, 0])[:3])

        if "single" not in requirement.get("topologies", ["single"]):
            return "is for " + " or ".join(requirement["topologies"])
        if self.version < version(requirement.get("minServerVersion", "0")):
            return f"is for MongoDB {requirement['minServerVersion']} and later"
        if self.version[: len(requirement.get("maxServerVersion", "9.9").split("."))] > version(requirement.get("maxServerVersion", "9.9")):
            return f"is for MongoDB up to {requirement['maxServerVersion']}"
        for name, value in requirement.get("serverParameters", {}).items():
            if self.parameters.get(name) != value:
                return f"asks for the parameter {name}"
        return next((f"asks for {name}" for name in ("auth", "csfle") if requirement.get(name)), None)


class Scenario:
    """One test: its entities, and what it does with them."""

    def __init__(self, server, spec, test):
        self.server, self.spec, self.test = server, spec, test
        self.entities, self.events = {}, {}

    def run(self):
        reason = self.server.lacks(self.spec.get("runOnRequirements", [])) or self.server.lacks(self.test.get("runOnRequirements", []))
        if reason or "skipReason" in self.test:
            raise Skipped(reason or self.test["skipReason"])
        try:
            for entity in self.spec.get("createEntities", []):
                self.create(*next(iter(entity.items())))
            self.fill()
            for operation in self.test["operations"]:
                self.operate(operation)
            for expected in self.test.get("expectEvents", []):
                self.check_events(expected)
            for outcome in self.test.get("outcome", []):
                found = self.server.running.client[outcome["databaseName"]][outcome["collectionName"]].find(sort=[("_id", 1)])
                demand(list(found) == sorted(outcome["documents"], key=lambda it: it["_id"]), "outcome", "other documents")
        finally:
            if any(operation["name"] == "failPoint" for operation in self.test["operations"]):
                self.server.admin.command({"configureFailPoint": "failCommand", "mode": "off"})
            for client in [it for it in self.entities.values() if isinstance(it, pymongo.MongoClient)]:
                client.close()

    def create(self, kind, spec):
        given = operations.options(spec.get(kind + "Options", {}))
        if kind == "client":
            listener = self.events[spec["id"]] = Events(spec)
            given = spec.get("uriOptions", {})
            if "serverApi" in spec:
                api = {operations.snake(name): value for name, value in spec["serverApi"].items()}
                given = given | {"server_api": ServerApi(api.pop("version"), **api)}
            made = pymongo.MongoClient("127.0.0.1", self.server.running.port, event_listeners=[listener], **({"serverSelectionTimeoutMS": 5000} | given))
        elif kind == "database":
            made = self.entities[spec["client"]].get_database(spec["databaseName"], **given)
        elif kind == "collection":
            made = self.entities[spec["database"]].get_collection(spec["collectionName"], **given)
        elif kind == "session":
            given = {operations.snake(name): value for name, value in given.items()}
            made = self.entities[spec["client"]].start_session(**given)
            self.entities["lsid " + spec["id"]] = dict(made.session_id)
        elif kind == "bucket":
            given = {operations.snake(name): value for name, value in given.items()}
            made = GridFSBucket(self.entities[spec["database"]], **given)
        else:
            raise NotImplementedError(kind)
        self.entities[spec["id"]] = made

    def fill(self):
        for data in self.spec.get("initialData", []):
            database = self.server.running.client[data["databaseName"]]
            database.drop_collection(data["collectionName"])
            given = data.get("createOptions", {})
            if given or not data["documents"]:
                database.create_collection(data["collectionName"], **given)
            if data["documents"]:
                collection = database.get_collection(data["collectionName"], write_concern=WriteConcern("majority"))
                collection.insert_many(data["documents"])

    def operate(self, operation):
        name, given = operation["name"], operation.get("arguments", {})
        if operation["object"] == "testRunner":
            return self.direct(name, given)
        target = self.entities[operation["object"]]
        kinds = {"MongoClient": "client", "ClientSession": "session", "GridFSBucket": "bucket"}
        call = getattr(operations, "on_" + kinds.get(type(target).__name__, type(target).__name__.lower()))
        if name in ("count", "listIndexNames"):
            raise Skipped("is for a method that pymongo does not have")
        try:
            given = operations.arguments_of(name, given, self.entities)
            with pymongo.timeout(given.pop("timeout", None)):
                result = call(target, name, given)
        except Exception as error:
            if "expectError" not in operation or isinstance(error, NotImplementedError):
                raise
            return self.check_error(operation["expectError"], error)
        demand("expectError" not in operation, name, f"succeeded: {result!r}")
        if "expectResult" in operation:
            match(operation["expectResult"], operations.plain(name, result), self.entities)
        if "saveResultAsEntity" in operation:
            self.entities[operation["saveResultAsEntity"]] = result

    def check_error(self, expected, error):
        inner = error.error if isinstance(error, ClientBulkWriteException) else error
        details = getattr(inner, "details", None) or {}
        text = str(details if isinstance(error, BulkWriteError) else error)
        if expected.get("isClientError"):
            clients = (ConnectionFailure, CorruptGridFile, NoFile, InvalidOperation, ConfigurationError)
            is_client = isinstance(inner, clients) and not isinstance(inner, NotPrimaryError)
            demand(is_client or not isinstance(inner, PyMongoError), "error", f"{error!r} is not the client's")
        demand(expected.get("errorContains", "").lower() in text.lower(), "error", text)
        for name, field in (("errorCode", "code"), ("errorCodeName", "codeName")):
            demand(name not in expected or expected[name] == details.get(field), "error", f"{details} for {expected}")
        for label in expected.get("errorLabelsContain", []):
            demand(inner.has_error_label(label), "error", f"lacks {label}")
        for label in expected.get("errorLabelsOmit", []):
            demand(not inner.has_error_label(label), "error", f"has {label}")
        if "errorResponse" in expected:
            match(expected["errorResponse"], details, self.entities, "error")
        if "expectResult" in expected:
            match(expected["expectResult"], operations.partial(error), self.entities)

    def direct(self, name, given):
        client = self.server.running.client
        if name == "failPoint":
            if not self.server.parameters.get("enableTestCommands"):
                raise Skipped("asks for fail points")
            self.server.admin.command(given["failPoint"])
        elif name in ("assertCollectionExists", "assertCollectionNotExists"):
            is_there = given["collectionName"] in client[given["databaseName"]].list_collection_names()
            demand(is_there == (name == "assertCollectionExists"), name, given)
        elif name in ("assertSessionDirty", "assertSessionNotDirty"):
            is_dirty = self.entities[given["session"]]._server_session.dirty
            demand(is_dirty == (name == "assertSessionDirty"), name, is_dirty)
        elif name in ("assertSameLsidOnLastTwoCommands", "assertDifferentLsidOnLastTwoCommands"):
            started = [event for kind, event in self.events[given["client"]].seen if kind == "commandStartedEvent"]
            one, other = (event.command["lsid"] for event in started[-2:])
            demand((one == other) == (name == "assertSameLsidOnLastTwoCommands"), name, (one, other))
        else:
            raise NotImplementedError(name)

    def check_events(self, expected):
        if expected.get("eventType", "command") != "command":
            raise NotImplementedError(expected["eventType"])
        seen = self.events[expected["client"]].seen
        if expected.get("ignoreExtraEvents"):
            seen = seen[: len(expected["events"])]
        kinds = [kind for kind, _ in seen]
        demand(kinds == [next(iter(event)) for event in expected["events"]], "events", seen)
        for at, (event, (_, actual)) in enumerate(zip(expected["events"], seen)):
            ((_, spec),) = event.items()
            for field, value in spec.items():
                where = f"events[{at}].{field}"
                if field in ("hasServerConnectionId", "hasServiceId"):
                    there = getattr(actual, operations.snake(field).removeprefix("has_"))
                    demand((there is not None) == value, where, there)
                elif value not in ({}, None):
                    match(value, getattr(actual, operations.snake(field)), self.entities, where)


def reasons():
    """The tests that fail, by folder, file and description; a file's name alone is for all in it."""
    lines = pathlib.Path(__file__).with_name("reasons.txt").read_text().splitlines()
    pairs = (line.split(" -- ") for line in lines if line and not line.startswith("#"))
    return {name.strip(): reason.strip() for name, reason in pairs}


def main(root, wanted):
    known, unused = reasons(), set(reasons())
    table, skipped, wrong = collections.defaultdict(collections.Counter), collections.Counter(), []
    with tempfile.TemporaryDirectory() as directory:
        running = Running(directory, *os.environ.get("FLAGS", "").split())
        server = Server(running)
        for folder in FOLDERS:
            files = sorted((pathlib.Path(root) / folder).rglob("*.json"))
            for file in files:
                short = f"{folder}/{file.name}"
                if wanted and not any(short.startswith(it) for it in wanted):
                    continue
                texts = file.read_text()
                for at, test in enumerate(json_util.loads(texts, json_options=DATES)["tests"]):
                    # Read anew for each: the driver adds ids to documents that it is given.
                    spec = json_util.loads(texts, json_options=DATES)
                    test = spec["tests"][at]
                    name = f"{short}: {test['description']}"
                    listed = next((it for it in (name, short) if it in known), None)
                    unused.discard(listed)
                    try:
                        Scenario(server, spec, test).run()
                    except Skipped as reason:
                        table[folder]["skipped"] += 1
                        skipped[f"{folder}: {reason}"] += 1
                    except Exception as error:
                        table[folder]["failed"] += 1
                        if not listed:
                            wrong.append(f"{name}\n    {type(error).__name__}: {error}")
                    else:
                        table[folder]["passed"] += 1
                        if listed == name:
                            wrong.append(f"{name}\n    passes, but is in reasons.txt")
        if running.end(signal.SIGTERM) != 0:
            wrong.append("the server ended with an error")
    if not wanted:
        wrong.extend(f"{name}\n    is in reasons.txt, and no test is called so" for name in sorted(unused))
    for reason, count in sorted(skipped.items()):
        print(f"skipped {count:4}  {reason}")
    for text in wrong:
        print(text)
    for folder, row in table.items():
        print(f"{folder:24} {row['passed']:4} passed {row['failed']:4} failed for known reasons or below {row['skipped']:4} skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
