"""The clients of migrate.sh: one that fills, one that writes at a rate, one that compares. RESP by hand: it needs no package."""

import os
import random
import socket
import sys
import time
import zlib


def encode(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def fill(keys):
    """Of ten keys seven are strings; the others are small hashes, lists, sets, sorted sets; a few are streams."""
    out, value = sys.stdout.buffer, b"v" * 60
    for i in range(keys):
        kind = i % 1000
        if kind == 999:
            out.write(encode("XADD", f"stream:{i}", f"{i + 1}-1", "field", i))
        elif i % 10 == 7:
            out.write(encode("HSET", f"hash:{i}", "name", i, "mail", f"{i}@example.org", "n", i % 7))
        elif i % 10 == 8:
            out.write(encode("RPUSH", f"list:{i}", i, i + 1, "x" * (i % 50)))
        elif i % 100 == 9:
            out.write(encode("SADD", f"set:{i}", i, i + 1, "member"))
        elif i % 10 == 9:
            out.write(encode("ZADD", f"zset:{i}", i, "a", i / 7, "b"))
        elif i % 10 == 6:
            out.write(encode("SET", f"key:{i}", b"%d:%s" % (i, value), "EX", 100000 + i))
        else:
            out.write(encode("SET", f"key:{i}", b"%d:%s" % (i, value)))


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb", 1 << 20)

    def send(self, data):
        self.socket.sendall(data)

    def reply(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind in b"+:":
            return rest
        if kind == b"-":
            return Exception(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        raise Exception(f"the server is gone: {line!r}")

    def ask(self, *words):
        self.send(encode(*words))
        return self.reply()


def change(rng, keys):
    """A write: most change what is there, some add, some delete."""
    i = rng.randrange(keys)
    kind = rng.randrange(20)
    if kind < 9:
        return encode("SET", f"key:{i - i % 10}", b"%d:%d" % (i, rng.randrange(1 << 60)))
    if kind < 11:
        return encode("HINCRBY", f"hash:{i - i % 10 + 7}", "n", 3)
    if kind < 13:
        return encode("RPUSH", f"list:{i - i % 10 + 8}", i)
    if kind < 15:
        return encode("ZADD", f"zset:{i - i % 100 + 19}", rng.random(), i % 40)
    if kind < 16:
        return encode("DEL", f"key:{i - i % 10 + 1}")
    if kind < 17:
        return encode("SET", f"new:{i}", i, "PX", 500 + i % 1000)
    if kind < 18:
        return encode("LPOP", f"list:{i - i % 10 + 8}")
    if kind < 19:
        return encode("SPOP", f"set:{i - i % 100 + 9}")
    return encode("INCRBYFLOAT", f"number:{i % 1000}", "0.1")


def write(port, rate, keys, flag):
    """Writes in batches of a hundredth of a second until the file is gone."""
    client, rng, began, sent, worst = Client(port), random.Random(1), time.monotonic(), 0, 0.0
    batch = max(1, rate // 100)
    while os.path.exists(flag):
        start = time.monotonic()
        client.send(b"".join(change(rng, keys) for _ in range(batch)))
        for _ in range(batch):
            reply = client.reply()
            if isinstance(reply, Exception):
                raise reply
        sent += batch
        worst = max(worst, time.monotonic() - start)
        time.sleep(max(0, began + sent / rate - time.monotonic()))
    took = time.monotonic() - began
    print(f"writes: {sent} in {took:.0f} s, {sent / took:.0f}/s; the slowest batch of {batch} took {worst * 1000:.0f} ms")


def restored(source, target, keys):
    """The digests of what the DUMPs of source are in target, with the same expiries."""
    source.send(b"".join(encode("DUMP", key) + encode("PEXPIRETIME", key) for key in keys))
    answers = [(key, source.reply(), int(source.reply())) for key in keys]
    target.send(b"".join(encode("RESTORE", key, max(ms, 0), dump, "REPLACE", "ABSTTL") for key, dump, ms in answers))
    for key in keys:
        answer = target.reply()
        assert answer == b"OK", (key, answer)
    return target.ask("DEBUG", "DIGEST-VALUE", *keys)


def compare(one, two, third):
    """The keys of one, with the digests and expiries of both, and no others in the second; of each hundredth, what the DUMP of the
    second is in a third."""
    began, both, other = time.monotonic(), (Client(one), Client(two)), Client(third)
    left, right = both
    cursor, count, different, dumped = b"0", 0, 0, 0
    while True:
        cursor, keys = left.ask("SCAN", cursor, "COUNT", 2000)
        if keys:
            times = b"".join(b"*2\r\n$11\r\nPEXPIRETIME\r\n$%d\r\n%s\r\n" % (len(key), key) for key in keys)
            for client in both:
                client.send(encode("DEBUG", "DIGEST-VALUE", *keys) + times)
            # A line that tells their number, one for each digest, one for each time.
            numbers = [client.file.readline() for client in both]
            assert numbers == [b"*%d\r\n" % len(keys)] * 2, numbers
            told = [[client.file.readline() for _ in range(2 * len(keys))] for client in both]
            if told[0] != told[1]:
                halves = [zip(lines[: len(keys)], lines[len(keys) :]) for lines in told]
                wrong = [key for key, one, two in zip(keys, *halves) if one != two]
                different += len(wrong)
                print("different:", wrong[:5])
            count += len(keys)
            sample = [key for key in keys if zlib.crc32(key) % 100 == 0]
            if sample:
                digests = zip(sample, restored(right, other, sample), left.ask("DEBUG", "DIGEST-VALUE", *sample))
                wrong = [key for key, ours, theirs in digests if ours != theirs]
                different += len(wrong)
                dumped += len(sample)
                if wrong:
                    print("different by DUMP:", wrong[:5])
        if cursor == b"0":
            break
    sizes = [client.ask("DBSIZE") for client in both]
    took = time.monotonic() - began
    print(f"compared: {count} keys, {dumped} by DUMP too, {different} different, in {took:.0f} s; sizes {sizes[0].decode()} and {sizes[1].decode()}")
    sys.exit(different > 0 or sizes[0] != sizes[1])


name, numbers = sys.argv[1], sys.argv[2:]
if name == "fill":
    fill(int(numbers[0]))
elif name == "write":
    write(int(numbers[0]), int(numbers[1]), int(numbers[2]), numbers[3])
else:
    compare(*map(int, numbers[:3]))
