"""Random commands, sent to our server and to others: where two of these agree against us, one of us is wrong.

    run.py PORT PORT [PORT ...]

The servers at the ports are the peers. OPERATIONS (100,000) and SEED (1) from the environment. Replies are compared by the types and order of
their fields; of errors the code. After each write all documents are compared. Ours has random indexes that the others do not have.
Where the peers do not agree with each other, nothing is said. What is known to differ is in `differences.py`, with the reason; an entry
that a run of 100,000 from seed 1 beside three peers does not need is an error.
"""

import collections
import datetime
import itertools
import json
import os
import pathlib
import signal
import sys
import tempfile
import time

import bson
from bson import Int64
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "clients"))
from conftest import Running
from differences import KNOWN, operators
from grammar import Grammar
from wire import Wire

DOCUMENTS = 12
COMMANDS = 40
# Runs beside each other may have the same peers.
DATABASE = f"differential-{os.getpid()}"
OPTIONS = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
ALL = {"find": "t", "sort": {"_id": 1}, "batchSize": 1000}
# A peer that closed the connection, or says nothing for half a minute.
NONE = "nothing"
# Tenths of a second for which a peer may be away.
TRIES = 100
Difference = collections.namedtuple("Difference", "command documents ours theirs")


def text(value):
    """A value with its type: `5` is an int32, `5L` an int64, `5.0` a double."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {text(it)}" for name, it in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    if isinstance(value, Int64):
        return f"{int(value)}L"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (datetime.datetime, DatetimeMS)):
        return f"date({int(value if isinstance(value, DatetimeMS) else DatetimeMS(value))})"
    return repr(value)


class Side:
    """A server, and what it answers, as text."""

    def __init__(self, port):
        self.wire = Wire(int(port))

    def ask(self, command):
        try:
            reply = self.wire.ask(bson.encode({**command, "$db": DATABASE}))
        except (ConnectionError, TimeoutError):
            reply = None
            self.connect()
        return bson.decode(reply, OPTIONS) if reply else None

    def connect(self):
        """Peers end at times: whoever started them may start them again."""
        for _ in range(TRIES):
            try:
                return self.wire.connect()
            except ConnectionError:
                time.sleep(0.1)
        raise ConnectionError(f"nobody is at port {self.wire.port} any more")

    def answer(self, command):
        """The error's code, or what the reply has; where an order is not asked for, it is not told."""
        reply = self.ask(command)
        if reply is None:
            return NONE
        if reply["ok"] != 1:
            return f"error {reply.get('code')}"
        if reply.get("writeErrors"):
            return f"error {reply['writeErrors'][0]['code']}"
        name = next(iter(command))
        if name in ("find", "aggregate"):
            batch = [text(it) for it in reply["cursor"]["firstBatch"]]
            stages = command.get("pipeline", [{}])
            has_order = {"$group", "$sortByCount"}.isdisjoint(stages[-1])
            return "[" + ", ".join(batch if has_order else sorted(batch)) + "]"
        if name == "distinct":
            return ", ".join(sorted(text(it) for it in reply["values"]))
        if name == "findAndModify":
            return text(reply.get("value"))
        return text({key: int(reply[key]) if key != "upserted" else reply[key] for key in ("n", "nModified", "upserted") if key in reply})

    def content(self):
        return self.answer(ALL)

    def documents(self):
        return self.ask(ALL)["cursor"]["firstBatch"]

    def fill(self, documents):
        self.ask({"drop": "t"})
        if documents:
            self.ask({"insert": "t", "documents": documents})


def against(answers):
    """What two of the peers say alike and we do not; nothing otherwise."""
    ours, *peers = answers
    common, count = collections.Counter(peers).most_common(1)[0]
    is_answer = not common.startswith(NONE)
    return common if count > 1 and is_answer and common != ours and ours not in peers else None


class Run:
    def __init__(self, sides, seed):
        self.sides, self.grammar = sides, Grammar(seed)
        # The index that our side has, if there is one.
        self.index = None
        self.met = collections.Counter()
        self.unknown = collections.defaultdict(list)
        self.operations = self.agreed = 0

    def fill(self, documents):
        for side in self.sides:
            side.fill(documents)

    def begin(self, documents):
        self.fill(documents)
        if self.index:
            self.sides[0].answer(self.index)

    def asked(self, command, is_write):
        """What all say, and after a write what they have."""
        answers = [side.answer(command) for side in self.sides]
        # An index decides how far an update of several documents comes that fails.
        if not is_write or self.index and answers[0].startswith("error"):
            return answers
        return [f"{answer} LEAVES {side.content()}" for answer, side in zip(answers, self.sides)]

    def fewest(self, command, documents, is_write, answers):
        """The documents that are needed for a difference, and the answers then: one, or two, or all."""
        for count in (1, 2):
            for some in itertools.combinations(documents, count):
                self.fill(list(some))
                again = self.asked(command, is_write)
                if against(again) is not None:
                    return list(some), again
        return documents, answers

    def tell(self, command, documents, answers):
        it = Difference(command, documents, answers[0], against(answers))
        for reason, is_so in KNOWN:
            if is_so(it):
                self.met[reason] += 1
                return
        ends = ["error" if answer.startswith("error") else "answer" for answer in (it.ours, it.theirs)]
        signature = f"{next(iter(command))} {' '.join(sorted(operators(command)))}: {ends[0]} for {ends[1]}"
        self.unknown[signature].append(f"{text(command)}\n        OF {text(documents)}\n        OURS {it.ours}\n        THEIRS {it.theirs}")

    def go(self, count):
        while self.operations < count:
            documents = [self.grammar.document(number) for number in range(DOCUMENTS)]
            self.index = self.grammar.index() if self.grammar.one_in(2) else None
            self.begin(documents)
            for _ in range(COMMANDS):
                is_write = self.grammar.one_in(3)
                command = self.grammar.write(self.index is not None) if is_write else self.grammar.read()
                documents = self.operate(command, documents, is_write)

    def operate(self, command, documents, is_write):
        """Runs a command; the documents that are there afterwards."""
        self.operations += 1
        answers = self.asked(command, is_write)
        self.agreed += answers[0] in answers[1:]
        if against(answers) is not None:
            self.tell(command, *self.fewest(command, documents, is_write, answers))
            self.begin(documents)
        elif is_write and (len(set(answers)) > 1 or answers[0].startswith("error")):
            self.begin(documents)
        elif is_write:
            return self.sides[0].documents()
        return documents


def main(ports):
    count, seed = int(os.environ.get("OPERATIONS", "100000")), int(os.environ.get("SEED", "1"))
    with tempfile.TemporaryDirectory() as directory:
        running = Running(directory)
        try:
            run = Run([Side(port) for port in (running.port, *ports)], seed)
            run.go(count)
            run.fill([])
        finally:
            ended = running.end(signal.SIGTERM)
    wrong = sum(map(len, run.unknown.values()))
    for signature, told in sorted(run.unknown.items(), key=lambda it: -len(it[1])):
        print(f"{len(told):5} {signature}\n      {min(told, key=len)}")
    for reason, _ in KNOWN:
        print(f"known {run.met[reason]:6}  {reason}")
        if not run.met[reason] and (count, seed, len(ports)) == (100_000, 1, 3):
            print("              is in differences.py, and nothing differs so")
            wrong += 1
    print(f"{run.operations} operations from seed {seed}, {run.agreed} answered as by a peer, {sum(run.met.values())} known differences, {wrong} others")
    return 1 if wrong or ended else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
