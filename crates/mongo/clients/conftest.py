"""A server for each run, from the program that DRUMLIN names, over a directory that is gone afterwards."""

import json
import os
import re
import signal
import subprocess
import tempfile

import pymongo
import pytest


class Running:
    """A server over a directory. It can be killed and started again."""

    def __init__(self, directory, *flags):
        self.directory, self.flags = directory, flags
        self.start()

    def start(self):
        command = [os.environ["DRUMLIN"], "--json", "mongo", "--dir", self.directory, "--port", "0", *self.flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.facts = json.loads(self.process.stdout.readline())
        self.port = int(self.facts["address"].rsplit(":", 1)[1])
        self.client = pymongo.MongoClient("127.0.0.1", self.port, serverSelectionTimeoutMS=10_000)

    def end(self, how):
        self.client.close()
        self.process.send_signal(how)
        return self.process.wait(timeout=60)


@pytest.fixture(scope="session")
def server():
    with tempfile.TemporaryDirectory() as directory:
        running = Running(directory)
        yield running
        assert running.end(signal.SIGTERM) == 0


@pytest.fixture
def db(server, request):
    """A database of the test's own."""
    name = re.sub("[^a-z0-9]+", "-", request.node.name)[:60]
    yield server.client[name]
    server.client.drop_database(name)
