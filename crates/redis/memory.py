#!/usr/bin/env python3
"""Loads that would take memory without bound, and what the server takes of it.

    memory.py [--program target/release/drumlin] [--dir DIR] [--maxmemory-mib 256] [LOAD ...]

Starts a server of its own for each load, on a port of the loopback, and prints a line a load: the most memory that the process
had (VmHWM), what its budget and 64 MiB are, and whether it kept within; an idle connection may take 16 KiB. Loads: idle slow pipeline large keys lua tracking silent.
Exits with 1 if a load went beyond, or the server did not answer afterwards.
"""

import argparse, os, resource, shutil, socket, subprocess, sys, time

MIB = 1 << 20


def command(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Server:
    def __init__(self, program, directory, mib, *settings):
        shutil.rmtree(directory, ignore_errors=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        arguments = [program, "redis", "--dir", directory, "--port", str(self.port)]
        for setting in (f"maxmemory={mib}mb", "maxclients=200000") + settings:
            arguments += ["--set", setting]
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        for _ in range(600):
            try:
                self.link().close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("the server does not start")

    def link(self):
        return socket.create_connection(("127.0.0.1", self.port))

    def say(self, *words):
        """The first line of a reply."""
        with self.link() as link:
            link.sendall(command(*words))
            return link.makefile("rb").readline()

    def info(self, name):
        with self.link() as link:
            link.sendall(command("INFO", "everything") + command("QUIT"))
            text = link.makefile("rb").read().decode()
        return int(next(line.split(":")[1] for line in text.splitlines() if line.startswith(name + ":")))

    def kib(self, name):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(name + ":"))

    def end(self):
        self.process.terminate()
        self.process.wait()


def fill(server, keys, size):
    value = b"v" * size
    with server.link() as link:
        for first in range(0, keys, 1000):
            last = min(first + 1000, keys)
            link.sendall(b"".join(command("SET", "key:%d" % at, value) for at in range(first, last)))
            drain(link, 5 * (last - first))


def take(link, most):
    """Bytes of replies, up to `most`."""
    got = link.recv(most)
    if not got:
        raise SystemExit("the server has closed the connection")
    return got


def drain(link, bytes_left):
    while bytes_left > 0:
        bytes_left -= len(take(link, min(bytes_left, MIB)))


def idle(server):
    """Ten thousand connections, or as many as this process may have."""
    server.say("PING")
    before = server.kib("VmRSS")
    links = []
    for _ in range(min(10_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100)):
        link = server.link()
        link.sendall(command("PING"))
        assert link.recv(7) == b"+PONG\r\n"
        links.append(link)
    each = (server.kib("VmRSS") - before) / len(links)
    if each > 16:
        raise SystemExit(f"{each:.1f} KiB for an idle connection")
    return f"{len(links)} connections, {each:.1f} KiB each"


def slow(server):
    """Readers that ask for a megabyte ten times, and take nothing."""
    server.say("SET", "large", b"x" * MIB)
    links = []
    for _ in range(min(10_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100)):
        link = server.link()
        link.sendall(command("GET", "large") * 10)
        links.append(link)
    time.sleep(2)
    return f"{len(links)} readers, {server.info('evicted_clients')} cut off"


def pipeline(server):
    with server.link() as link:
        link.setblocking(False)
        left, sent, asked = 7 * 1_000_000, 0, command("PING") * 1_000_000
        while left:
            try:
                sent += link.send(asked[sent:sent + MIB])
            except BlockingIOError:
                pass
            try:
                left -= len(take(link, MIB))
            except BlockingIOError:
                pass
    return "1,000,000 commands"


def large(server):
    """A value of a fourth of the budget, written and read."""
    size = server.info("budget_limit") // 4
    with server.link() as link:
        link.sendall(command("SET", "large", b"x" * size))
        drain(link, 5)
        link.sendall(command("GET", "large"))
        drain(link, size)
    return f"{size // MIB} MiB"


def keys(server):
    fill(server, 1_000_000, 16)
    with server.link() as link:
        link.sendall(command("KEYS", "*"))
        # The names, and what RESP has around them.
        drain(link, 10 + sum(len("$%d\r\nkey:%d\r\n" % (len("key:%d" % at), at)) for at in range(1_000_000)))
    return "KEYS * over 1,000,000"


def lua(server):
    reply = server.say("EVAL", "local t = {} for i = 1, 1e9 do t[i] = tostring(i) .. 'x' end", "0")
    return reply.decode().strip()[:60]


def tracking(server):
    server.say("CONFIG", "SET", "tracking-table-max-keys", "0")
    with server.link() as link:
        link.sendall(command("CLIENT", "TRACKING", "ON"))
        drain(link, 5)
        for first in range(0, 1_000_000, 10_000):
            link.sendall(b"".join(command("GET", "key:%d" % at) for at in range(first, first + 10_000)))
            drain(link, 50_000)
        return f"{server.info('tracking_total_keys')} keys, charged {server.info('budget_tracking') // MIB} MiB"


def silent(server):
    with server.link() as subscriber, server.link() as publisher:
        subscriber.sendall(command("SUBSCRIBE", "news"))
        time.sleep(0.2)
        for _ in range(200):
            publisher.sendall(command("PUBLISH", "news", b"y" * MIB))
            last = publisher.makefile("rb").readline()
    return f"200 messages of 1 MiB, the last had {last.decode().strip()[1:]} receivers"


LOADS = dict(idle=idle, slow=slow, pipeline=pipeline, large=large, keys=keys, lua=lua, tracking=tracking, silent=silent)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/drumlin")
    parser.add_argument("--dir", default="target/redis-memory")
    parser.add_argument("--maxmemory-mib", type=int, default=256)
    parser.add_argument("loads", nargs="*", metavar="LOAD")
    wanted = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most, failed = wanted.maxmemory_mib + 64, False
    for name in wanted.loads or LOADS:
        server = Server(wanted.program, wanted.dir, wanted.maxmemory_mib)
        try:
            told = LOADS[name](server)
            peak = server.kib("VmHWM") / 1024
            answers = server.say("PING") == b"+PONG\r\n"
        finally:
            server.end()
        verdict = "within" if peak <= most and answers else "BEYOND" if answers else "NO ANSWER"
        failed |= verdict != "within"
        print(f"{name:9} {peak:7.1f} MiB of {most}  {verdict:9} {told}", flush=True)
    shutil.rmtree(wanted.dir, ignore_errors=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
