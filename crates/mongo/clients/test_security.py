"""Users, roles and compressed messages, through the driver."""

import os
import signal
import subprocess

import pymongo
import pytest
from pymongo.errors import OperationFailure

from conftest import Running


@pytest.fixture
def guarded(tmp_path):
    running = Running(str(tmp_path / "data"), "--auth")
    yield running
    assert running.end(signal.SIGTERM) == 0


def code(call):
    with pytest.raises(OperationFailure) as error:
        call()
    return error.value.code


def test_users_and_roles(guarded):
    anybody = guarded.client
    assert code(lambda: anybody.test.c.insert_one({})) == 13
    assert code(lambda: anybody.admin.command("usersInfo", 1)) == 13
    anybody.admin.command("createUser", "chief", pwd="sesam \u2168", roles=["root"])
    # The first user is the last one that anybody makes.
    assert code(lambda: anybody.admin.command("createUser", "other", pwd="x", roles=["root"])) == 13

    def client(name, password, source="admin", mechanism="SCRAM-SHA-256"):
        return pymongo.MongoClient("127.0.0.1", guarded.port, username=name, password=password, authSource=source, authMechanism=mechanism)

    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-1", "DEFAULT"):
        with client("chief", "sesam \u2168", mechanism=mechanism) as chief:
            chief.test.c.insert_one({"by": mechanism})
    with client("chief", "sesam IX") as chief:  # SASLprep has the two be one.
        chief.test.command("createUser", "reader", pwd="r", roles=["read"])
        chief.test.command("createUser", "writer", pwd="w", roles=[{"role": "readWrite", "db": "test"}], mechanisms=["SCRAM-SHA-256"])
        assert code(lambda: chief.test.command("createUser", "reader", pwd="r", roles=[])) == 51003
        assert code(lambda: chief.test.command("createUser", "x", pwd="r", roles=["nonsense"])) == 31
        users = chief.test.command("usersInfo", 1)["users"]
        assert [(u["user"], u["mechanisms"]) for u in users] == [("reader", ["SCRAM-SHA-1", "SCRAM-SHA-256"]), ("writer", ["SCRAM-SHA-256"])]
        assert "storedKey" not in str(users)
        # Not even root reads what the server keeps of passwords.
        for read in (lambda: list(chief.admin["system.users"].find()), lambda: list(chief.admin.c.aggregate([{"$unionWith": "system.users"}]))):
            assert code(read) == 13
        assert code(lambda: chief.drop_database("admin")) == 20
    with client("reader", "r", "test") as reader:
        assert reader.test.c.count_documents({}) == 3
        assert code(lambda: reader.test.c.insert_one({})) == 13
        assert code(lambda: reader.other.c.find_one()) == 13
        assert reader.test.command("connectionStatus")["authInfo"]["authenticatedUsers"] == [{"user": "reader", "db": "test"}]
    with client("writer", "w", "test") as writer:
        writer.test.c.insert_one({})
        assert code(lambda: writer.admin.command("serverStatus")) == 13
        assert code(lambda: writer.test.command("dropUser", "reader")) == 13
    with client("chief", "sesam \u2168") as chief:
        chief.test.command("createUser", "owner", pwd="o", roles=["dbOwner"])
    with client("owner", "o", "test") as owner:
        owner.test.command("createUser", "guest", pwd="g", roles=["read"])
        # Nobody gives what is not its own to give, by a new user or by one that is there.
        for roles in ([{"role": "root", "db": "admin"}], ["read", {"role": "read", "db": "other"}]):
            assert code(lambda: owner.test.command("createUser", "more", pwd="m", roles=roles)) == 13
            assert code(lambda: owner.test.command("updateUser", "owner", roles=roles)) == 13
        owner.test.command("dropUser", "guest")
    for wrong in (client("reader", "wrong", "test"), client("nobody", "r", "test"), client("writer", "w", "test", "SCRAM-SHA-1")):
        with wrong:
            assert code(lambda: wrong.test.c.find_one()) == 18
    with client("chief", "sesam \u2168") as chief, client("reader", "r", "test") as reader:
        assert reader.test.c.find_one()
        chief.test.command("updateUser", "reader", pwd="new")
        assert code(lambda: reader.test.c.find_one()) in (13, 18)
        chief.test.command("dropUser", "writer")
        assert code(lambda: chief.test.command("dropUser", "writer")) == 11
    assert guarded.end(signal.SIGKILL) != 0
    guarded.start()
    with client("reader", "new", "test") as reader:
        assert reader.test.c.count_documents({}) == 4


def test_nobody_else_makes_the_first_user(tmp_path):
    command = [os.environ["DRUMLIN"], "mongo", "--dir", str(tmp_path / "data"), "--port", "0", "--bind", "0.0.0.0", "--auth"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0 and "first" in ended.stderr


# The driver warns where it lacks a codec, and goes on without.
@pytest.mark.filterwarnings("error:Wire protocol compression")
@pytest.mark.parametrize("compressor", ["zlib", "snappy", "zstd"])
def test_messages_may_be_compressed(server, compressor):
    with pymongo.MongoClient("127.0.0.1", server.port, compressors=compressor) as client:
        assert client.admin.command("hello", compression=["lz4", compressor])["compression"] == [compressor]
        documents = [{"_id": n, "text": "compress me " * 2000} for n in range(50)]
        client.compressed.c.insert_many(documents)
        assert list(client.compressed.c.find()) == documents
        client.drop_database("compressed")
