"""A local S3 server, a proxy in front of it that can fail, and the command."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import boto3
import pytest
from proxy import Proxy

DRUMLIN = os.environ.get("DRUMLIN", str(Path(__file__).parents[3] / "target/debug/drumlin"))
KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def start_server():
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server, port
        except OSError:
            assert server.poll() is None and time.monotonic() < until, "the S3 server does not start"
            time.sleep(0.05)


@pytest.fixture(scope="session")
def s3_port():
    server, port = start_server()
    yield port
    server.kill()
    server.wait()


@pytest.fixture(scope="session")
def proxy_of_all(s3_port):
    return Proxy(s3_port)


class Place:
    """An empty bucket, a store, and the command for them."""

    def __init__(self, directory, s3_port, proxy, bucket):
        self.directory, self.proxy, self.bucket = directory, proxy, bucket
        self.s3 = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{s3_port}", **KEYS)
        self.s3.create_bucket(Bucket=bucket)
        self.url = f"s3://{bucket}/backups"
        self.db = directory / "db"

    def environment(self, **more):
        own = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.proxy.port}",
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return {**kept, **own, **more}

    def start(self, *words, db=None, environment=None):
        return subprocess.Popen(
            [DRUMLIN, *map(str, words), "--db", str(db or self.db)],
            env=environment or self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words, given="", **where):
        it = self.start(*words, **where)
        out, err = it.communicate(given, timeout=100)
        return it.returncode, out, err

    def succeed(self, *words, **where):
        code, out, err = self.run(*words, **where)
        assert code == 0, f"{words}: {code}: {out}{err}"
        return out

    def fail(self, *words, **where):
        code, out, err = self.run(*words, **where)
        assert code not in (0, 101, -6), f"{words}: {code}: {out}{err}"
        return code, err

    def load(self, generation, rows=500):
        """Rows whose values do not compress, in tables."""
        noise = os.urandom(rows * 200).hex()
        lines = [f"{key:06}\t{generation} {noise[key * 400:][:400]}" for key in range(rows)]
        self.succeed("load", "-", given="\n".join(lines) + "\n")
        self.succeed("compact")

    def load_large(self):
        """A value that makes a table of three parts."""
        self.succeed("put", "large", "-", given=os.urandom(9 << 20).hex())
        self.succeed("compact")

    def scan(self, db=None):
        return self.succeed("scan", db=db)

    def keys(self):
        """Objects below the prefix, with their sizes."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix="backups/")
        found = [it for page in pages for it in page.get("Contents", [])]
        return {it["Key"].removeprefix("backups/"): it["Size"] for it in found}

    def requests(self, method, part):
        return [it for it in self.proxy.requests if it[0] == method and part in it[1]]

    def check_restored(self, want, *backup):
        target = self.directory / f"restored-{time.monotonic_ns()}"
        self.succeed("restore", self.url, *backup, db=target)
        assert self.scan(db=target) == want
        return target


@pytest.fixture
def place(tmp_path, s3_port, proxy_of_all):
    proxy_of_all.reset()
    bucket = f"bucket-{time.monotonic_ns()}"
    yield Place(tmp_path, s3_port, proxy_of_all, bucket)
    proxy_of_all.reset()
