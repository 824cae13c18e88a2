"""Goal: `drumlin backup` and `drumlin restore` do with a bucket what they do with a directory, whatever the network and the
store do, and say what is wrong by name. Method: the command against a server of S3's protocol, by way of a proxy that
fails requests: errors, resets, cut and missing answers, silence."""

import json
import shutil
import signal
import subprocess
import time

import pytest


def ids(place):
    listed = place.succeed("backup", "list", place.url, "--json")
    return [json.loads(line)["id"] for line in listed.splitlines()]


def test_made_listed_checked_restored_and_removed(place):
    states = []
    for generation in range(3):
        place.load(generation)
        states.append(place.scan())
        said = place.succeed("backup", "create", place.url, "--note", f"n{generation}")
        assert said.startswith(f"backup {generation + 1} in {place.url}"), said
    place.proxy.reset()
    said = place.succeed("backup", "create", place.url)
    assert not place.requests("PUT", "shared_checksum"), "an unchanged store sends no table"
    assert len(place.proxy.requests) < 90, place.proxy.requests
    assert ids(place) == [1, 2, 3, 4]
    place.succeed("backup", "verify", place.url, "--checksums")
    for number, state in enumerate(states):
        place.check_restored(state, number + 1)
    place.succeed("backup", "purge", place.url, "--keep", 2)
    place.succeed("backup", "delete", place.url, 4)
    assert ids(place) == [3]
    place.check_restored(states[2])
    left = place.keys()
    assert all(name.startswith(("meta/3", "private/3/", "shared_checksum/")) for name in left), left
    assert "LOCK" not in left


def test_a_table_of_many_parts(place):
    place.load_large()
    want = place.scan()
    place.succeed("backup", "create", place.url)
    assert max(place.keys().values()) > 16 << 20
    assert place.requests("PUT", "partNumber=3")
    assert max(size for _, _, size in place.proxy.requests) <= 8 << 20
    place.succeed("backup", "verify", place.url, "--checksums")
    # Parts that fail on the way are sent again, and a part of an answer is not taken for all of it.
    place.proxy.reset()
    for action in ["reset", "cut", 503]:
        place.proxy.fail(action, method="GET", part="/shared_checksum/", times=2)
    place.check_restored(want)


def test_what_fails_for_a_while_is_tried_again(place):
    place.load(0)
    want = place.scan()
    for action in [500, 503, "reset", "unanswered", "cut"]:
        place.proxy.reset()
        place.proxy.fail(action, part="/backups/", skip=3, times=3)
        place.proxy.fail(action, method="PUT", part="shared_checksum", times=2)
        place.proxy.fail(action, method="PUT", part="meta/", times=2)
        place.succeed("backup", "create", place.url)
    place.proxy.reset()
    place.succeed("backup", "verify", place.url, "--checksums")
    assert ids(place) == [1, 2, 3, 4, 5]
    place.check_restored(want)


@pytest.mark.parametrize("action", [500, "reset", "silent"])
def test_what_fails_for_good_is_told_by_name(place, action):
    place.load(0)
    old = place.scan()
    place.succeed("backup", "create", place.url)
    place.load(1)
    place.proxy.fail(action, method="PUT", part="shared_checksum")
    environment = place.environment(AWS_TIMEOUT="1s")
    begun = time.monotonic()
    _, said = place.fail("backup", "create", place.url, "--retry", 1, environment=environment)
    assert time.monotonic() - begun < 20
    assert f"{place.url}/shared_checksum/" in said, said
    if action == "silent":
        assert "did not answer in time" in said, said
    place.proxy.reset()
    place.succeed("backup", "verify", place.url, "--checksums")
    assert ids(place) == [1]
    place.check_restored(old)
    place.succeed("backup", "create", place.url)
    place.check_restored(place.scan())
    # And of a restore: the database is none until the next one.
    place.proxy.fail(action, method="GET", part="/shared_checksum/")
    target = place.directory / "target"
    _, said = place.fail("restore", place.url, "--retry", 1, db=target, environment=environment)
    assert f"{place.url}/shared_checksum/" in said, said
    place.proxy.reset()
    place.succeed("restore", place.url, db=target)
    assert place.scan(db=target) == place.scan()


def test_every_request_of_a_backup_is_refused_once(place):
    place.load(0)
    old = place.scan()
    place.succeed("backup", "create", place.url)
    place.load(1)
    new = place.scan()
    place.proxy.reset()
    place.succeed("backup", "create", place.url)
    count = len(place.proxy.requests)
    # Some here; every one of them in tests/objects.
    for index in range(0, count, 8):
        place.proxy.reset()
        place.proxy.fail(403, skip=index, times=1)
        code, _, said = place.run("backup", "create", place.url)
        assert code == 0 or place.bucket in said, said
    place.proxy.reset()
    # What failed could not let its lock go, if it was that.
    place.succeed("backup", "verify", place.url, "--checksums")
    place.check_restored(old, 1)
    place.check_restored(new)


def test_no_bucket_and_no_rights(place):
    place.load(0)
    for words in [("backup", "create"), ("backup", "list"), ("backup", "verify"), ("restore",)]:
        _, said = place.fail(*words, "s3://nobodys-bucket/x", db=place.db if words[0] == "backup" else place.directory / "t")
        assert "there is no such bucket" in said and "nobodys-bucket" in said, said
    for url in ["s3://", "s3:///x", "s4://b/x", "file://x", f"s3://{place.bucket}/../x"]:
        code, said = place.fail("backup", "list", url)
        assert code == 2 and said, said
    environment = place.environment(AWS_ENDPOINT_URL="http://127.0.0.1:1")
    _, said = place.fail("backup", "list", place.url, "--retry", 0, environment=environment)
    assert place.url in said, said


def test_wrong_credentials(place):
    place.load(0)
    place.succeed("backup", "create", place.url)
    environment = place.environment(AWS_SECRET_ACCESS_KEY="wrong")
    for words in [("list",), ("create",), ("verify",), ("purge", "--keep", 1)]:
        code, said = place.fail("backup", words[0], place.url, *words[1:], environment=environment)
        assert code == 4 and place.url in said and "refuses these credentials" in said, said
    assert ids(place) == [1]


def test_two_at_a_time_and_one_that_was_killed(place):
    place.load(0)
    place.succeed("backup", "create", place.url)
    place.load(1)
    want = place.scan()
    # The first waits for an answer, with the lock.
    place.proxy.reset()
    place.proxy.fail("silent", method="PUT", part="shared_checksum")
    first = place.start("backup", "create", place.url)
    while not place.requests("PUT", "shared_checksum"):
        assert first.poll() is None, first.communicate()
        time.sleep(0.05)
    code, said = place.fail("backup", "create", place.url)
    assert code == 4 and f"process {first.pid} on" in said, said
    # Its process dies. Its lock ends a minute after it was renewed, which is not waited for here.
    first.send_signal(signal.SIGKILL)
    first.communicate()
    place.proxy.reset()
    _, said = place.fail("backup", "create", place.url)
    assert "ends 60 s after that" in said, said
    assert ids(place) == [1]
    place.s3.delete_object(Bucket=place.bucket, Key="backups/LOCK")
    place.succeed("backup", "create", place.url)
    place.succeed("backup", "verify", place.url, "--checksums")
    place.check_restored(want)


def test_a_killed_upload_is_gone_on_with(place):
    place.load(0)
    place.succeed("backup", "create", place.url)
    place.load_large()
    # Parts of the table are there, and the process dies.
    place.proxy.reset()
    place.proxy.fail("silent", method="PUT", part="partNumber=2")
    first = place.start("backup", "create", place.url)
    while not place.requests("PUT", "partNumber=2"):
        assert first.poll() is None, first.communicate()
        time.sleep(0.05)
    first.kill()
    first.communicate()
    place.proxy.reset()
    assert max(place.keys().values()) < 8 << 20
    assert ids(place) == [1]
    place.s3.delete_object(Bucket=place.bucket, Key="backups/LOCK")
    place.succeed("backup", "create", place.url)
    place.check_restored(place.scan())


def test_removed_and_foreign_objects(place):
    place.load(0)
    place.succeed("backup", "create", place.url)
    table = next(name for name in place.keys() if name.startswith("shared_checksum/"))
    place.s3.delete_object(Bucket=place.bucket, Key=f"backups/{table}")
    code, said = place.fail("restore", place.url, db=place.directory / "t")
    assert code == 3 and f"{place.url}/{table}" in said, said
    assert not (place.directory / "t").exists()
    code, out, _ = place.run("backup", "verify", place.url)
    assert code == 3 and table in out, out
    place.succeed("backup", "create", place.url)
    place.succeed("backup", "verify", place.url, "--checksums")
    # Another store's, in the same place.
    place.succeed("put", "key", "value", db=place.directory / "other")
    code, said = place.fail("backup", "create", place.url, db=place.directory / "other")
    assert code == 2 and "another store" in said, said
    assert ids(place) == [1, 2]


def test_rates_hold(place):
    place.load(0, rows=4000)
    begun = time.monotonic()
    place.succeed("backup", "create", place.url, "--rate", "1MB")
    size = sum(place.keys().values())
    assert time.monotonic() - begun > size / 1e6 * 0.7, size


@pytest.mark.skipif(not shutil.which("ldb"), reason="rocksdb-tools")
def test_a_directory_of_rocksdbs_uploaded_and_a_bucket_downloaded(place):
    place.load(0)
    want, theirs = place.scan(), place.directory / "theirs"
    ldb = ["ldb", f"--db={place.db}"]
    subprocess.run([*ldb, "backup", f"--backup_dir={theirs}"], check=True, capture_output=True)
    for file in theirs.rglob("*"):
        if file.is_file():
            place.s3.upload_file(str(file), place.bucket, f"backups/{file.relative_to(theirs)}")
    place.succeed("backup", "verify", place.url, "--checksums")
    place.check_restored(want)
    place.load(1)
    said = place.succeed("backup", "create", place.url)
    assert said.startswith("backup 2"), said
    down = place.directory / "down"
    for name in place.keys():
        (down / name).parent.mkdir(parents=True, exist_ok=True)
        place.s3.download_file(place.bucket, f"backups/{name}", str(down / name))
    target = place.directory / "by-ldb"
    subprocess.run(["ldb", f"--db={target}", "restore", f"--backup_dir={down}"], check=True, capture_output=True)
    assert place.scan(db=target) == place.scan()
