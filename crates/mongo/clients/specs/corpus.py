"""Runs the BSON corpus of MongoDB's drivers, as pymongo's source archive has it, against our server.

    corpus.py DIRECTORY_OF_THE_CORPUS

A valid case: the document is inserted, once in the body of the message and once beside it, comes back with the same bytes, also when
it is taken apart and put together by a pipeline, and is found by its value with and without an index. Degenerate bytes come back as
they were. What does not decode is refused, at both places, and the server goes on. The cases of
Extended JSON are not for a server, which parses none.
"""

import collections
import json
import pathlib
import signal
import struct
import sys
import tempfile

import bson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from conftest import Running
from wire import Wire

BAD_VALUE, INVALID_BSON = 2, 22
UNDEFINED = 6
# The driver is not to refuse dates that its own type does not have.
DATES = CodecOptions(document_class=RawBSONDocument, datetime_conversion=DatetimeConversion.DATETIME_MS)


def document(*fields):
    """BSON of fields that are bytes already: type, name and value."""
    inside = b"".join(fields)
    return struct.pack("<I", len(inside) + 5) + inside + b"\0"


def field(kind, name, value):
    return bytes([kind]) + name.encode() + b"\0" + value


def text(name, value):
    value = value.encode()
    return field(2, name, struct.pack("<I", len(value) + 1) + value + b"\0")


def number(name, value):
    return field(16, name, struct.pack("<i", value))


def fields_of(raw):
    return raw[4:-1]


class Corpus:
    def __init__(self, port):
        self.wire, self.made = Wire(port), 0

    def command(self, *fields, sequence=None):
        return self.wire.ask(document(*fields, text("$db", "corpus")), sequence)

    def done(self, *fields, sequence=None):
        reply = self.command(*fields, sequence=sequence)
        assert reply is not None, "the connection was closed"
        plain = RawBSONDocument(reply, DATES)
        assert plain["ok"] == 1 and "writeErrors" not in plain, bson.decode(reply)
        return plain

    def batch(self, *fields):
        return [bytes(it.raw) for it in self.done(*fields)["cursor"]["firstBatch"]]

    def empty(self):
        self.done(text("drop", "c"))

    def named(self, raw):
        """The document with an `_id`, as a server wants it."""
        if "_id" in RawBSONDocument(raw, DATES):
            return raw
        self.made += 1
        return document(number("_id", self.made), fields_of(raw))

    def kept(self, raw):
        """Inserted in the body and beside it, and found again."""
        for is_beside in (False, True):
            self.empty()
            with_id = self.named(raw)
            if is_beside:
                self.done(text("insert", "c"), sequence=("documents", with_id))
            else:
                self.done(text("insert", "c"), field(4, "documents", document(field(3, "0", with_id))))
            assert self.batch(text("find", "c")) == [with_id], "other bytes came back"
        return with_id

    def valid(self, raw, key):
        with_id = self.kept(raw)
        parts = bson.encode({"$replaceWith": {"$arrayToObject": {"$objectToArray": "$$ROOT"}}})
        pipeline = field(4, "pipeline", document(field(3, "0", parts)))
        rebuilt = self.batch(text("aggregate", "c"), pipeline, field(3, "cursor", document()))
        assert rebuilt == [with_id], "other bytes came out of a pipeline"
        first = raw[5:].split(b"\0")[0].decode()
        if key != first:
            return
        kind, value = raw[4], raw[4 + 1 + len(key.encode()) + 1 : -1]
        query = field(3, "filter", document(field(3, key, document(field(kind, "$eq", value)))))
        if kind == UNDEFINED:
            reply = bson.decode(self.command(text("find", "c"), query))
            assert reply["ok"] == 0 and reply["code"] == BAD_VALUE, "a comparison with undefined is refused by MongoDB"
            return
        assert self.batch(text("find", "c"), query) == [with_id], "it is not found by its value"
        index = bson.encode({"key": {key: 1}, "name": "i"})
        self.done(text("createIndexes", "c"), field(4, "indexes", document(field(3, "0", index))))
        assert self.batch(text("find", "c"), query, text("hint", "i")) == [with_id], "an index does not find it"

    def undecodable(self, raw):
        self.empty()
        replies = [
            self.command(text("insert", "c"), sequence=("documents", raw)),
            self.command(text("insert", "c"), field(4, "documents", document(field(3, "0", raw)))),
        ]
        for reply in replies:
            if reply is not None:
                reply = bson.decode(reply)
                assert reply["ok"] == 0 and reply["code"] == INVALID_BSON, reply
        assert self.batch(text("find", "c")) == [], "it was taken"


def main(root):
    table, wrong = collections.Counter(), []

    def run(kind, name, check):
        try:
            check()
        except Exception as error:
            table[kind, "failed"] += 1
            wrong.append(f"{name}: {type(error).__name__}: {error}")
        else:
            table[kind, "passed"] += 1

    with tempfile.TemporaryDirectory() as directory:
        running = Running(directory)
        corpus = Corpus(running.port)
        for file in sorted(pathlib.Path(root).glob("*.json")):
            spec = json.loads(file.read_text())
            for case in spec.get("valid", []):
                name = f"{file.name}: {case['description']}"
                raw = bytes.fromhex(case["canonical_bson"])

                def both():
                    corpus.valid(raw, spec.get("test_key"))
                    if "degenerate_bson" in case:
                        corpus.kept(bytes.fromhex(case["degenerate_bson"]))

                run("valid", name, both)
            for case in spec.get("decodeErrors", []):
                raw = bytes.fromhex(case["bson"])
                run("decodeErrors", f"{file.name}: {case['description']}", lambda: corpus.undecodable(raw))
            table["parseErrors", "of Extended JSON"] += len(spec.get("parseErrors", []))
        if running.end(signal.SIGTERM) != 0:
            wrong.append("the server ended with an error")
    for text in wrong:
        print(text)
    for (kind, outcome), count in sorted(table.items()):
        print(f"{kind:14} {count:4} {outcome}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
