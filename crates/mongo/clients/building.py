"""How long an index takes to build, alone and beside a writer, and what the longest of that writer's updates takes meanwhile.

DRUMLIN=target/release/drumlin python building.py [DOCUMENTS] [ROUNDS]
"""

import sys
import tempfile
import threading
import time

import pymongo
from conftest import Running

AT_ONCE = 5000


def document(at):
    return {"_id": at, "a": at * 7919 % 100_003, "b": str(at % 977), "text": "x" * 100}


class Writer(threading.Thread):
    """Updates documents until it is ended."""

    def __init__(self, port, documents):
        super().__init__()
        self.port, self.documents = port, documents
        self.times, self.is_over = [], False

    def run(self):
        collection = pymongo.MongoClient("127.0.0.1", self.port).db.c
        while not self.is_over:
            begun = time.monotonic()
            collection.update_one({"_id": len(self.times) * 37 % self.documents}, {"$set": {"a": len(self.times)}})
            self.times.append(time.monotonic() - begun)


def built(collection):
    begun = time.monotonic()
    collection.create_index("a")
    seconds = time.monotonic() - begun
    collection.drop_index("a_1")
    return seconds


def main(documents, rounds):
    with tempfile.TemporaryDirectory() as directory:
        server = Running(directory)
        collection = server.client.db.c
        for first in range(0, documents, AT_ONCE):
            collection.insert_many([document(at) for at in range(first, min(first + AT_ONCE, documents))])
        for _ in range(rounds):
            alone = built(collection)
            writer = Writer(server.port, documents)
            writer.start()
            time.sleep(0.3)
            before = len(writer.times)
            beside = built(collection)
            writer.is_over = True
            writer.join()
            longest = max(writer.times[before:])
            updates = len(writer.times) - before
            print(f"{documents} documents: {alone:.2f} s alone, {beside:.2f} s beside {updates} updates, the longest of {longest * 1000:.0f} ms")
        server.end(15)


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *(200_000, 3)[len(given) :])
