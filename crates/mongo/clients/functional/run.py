"""Runs documentdb's functional tests against our server, and says what passed by folder.

    run.py DIRECTORY [FOLDER ...]

DIRECTORY is a clone of https://github.com/documentdb/functional-tests; FOLDERS are below its tests of `core`. How many cases of each
test fail, and why, is in `expected.txt`: more and fewer are shown, and end the run with an error. With PEER=mongodb://… another
server is counted, and nothing is expected of it. JOBS is how many tests run at a time.
"""

import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from conftest import Running

FOLDERS = ("query_and_write", "operator/query", "operator/update", "operator/projection", "cursors", "data-types")
CORE = "compatibility/tests/core/"


def expected():
    """How many cases of a test fail: a line has the number, the test, and the reason."""
    lines = pathlib.Path(__file__).with_name("expected.txt").read_text().splitlines()
    rows = (line.split(" -- ")[0].split() for line in lines if line and not line.startswith("#"))
    return {test: int(count) for count, test in rows}


def results(root, address, folders):
    """The outcomes of all cases, by the names of the tests."""
    with tempfile.TemporaryDirectory() as directory:
        report = os.path.join(directory, "report.json")
        command = [sys.executable, "-m", "pytest", *(CORE + folder for folder in folders), "-q", "-p", "no:cacheprovider", "--tb=no"]
        command += ["-n", os.environ.get("JOBS", "2"), "--connection-string", address, "--engine-name", "mongodb"]
        command += ["--json-report", "--json-report-file", report, "--json-report-omit", "collectors", "log", "streams", "keywords"]
        subprocess.run(command, cwd=os.path.join(root, "documentdb_tests"), stdout=subprocess.DEVNULL)
        tests = json.loads(pathlib.Path(report).read_text())["tests"]
    return [(test["nodeid"].removeprefix(CORE), test["outcome"]) for test in tests]


def main(root, wanted):
    folders = wanted or FOLDERS
    peer = os.environ.get("PEER")
    if peer:
        found = results(root, peer, folders)
    else:
        with tempfile.TemporaryDirectory() as directory:
            running = Running(directory)
            found = results(root, f"mongodb://127.0.0.1:{running.port}", folders)
            ended = running.end(signal.SIGTERM)
    table, failed = collections.defaultdict(collections.Counter), collections.defaultdict(list)
    for name, outcome in found:
        table[next(folder for folder in folders if name.startswith(folder + "/"))][outcome] += 1
        if outcome != "passed":
            test, _, case = name.partition("[")
            failed[test].append(case.rstrip("]").removeprefix("mongodb-"))
    wrong = []
    if not peer:
        known = {test: count for test, count in expected().items() if any(test.startswith(folder + "/") for folder in folders)}
        for test in sorted(known | failed):
            if known.get(test, 0) != len(failed[test]):
                wrong.append(f"{test}\n    {len(failed[test])} fail and {known.get(test, 0)} are expected to: {' '.join(sorted(failed[test]))}")
        if ended != 0:
            wrong.append("the server ended with an error")
    for text in wrong:
        print(text)
    for folder in folders:
        row = table[folder]
        count = sum(row.values())
        print(f"{folder:24} {row['passed']:5} of {count:5} passed, {100 * row['passed'] / max(count, 1):5.1f} %")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
