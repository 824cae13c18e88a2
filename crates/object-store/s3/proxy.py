"""A server between the command and S3 that counts requests and makes some of them fail, as networks and stores do."""

import hashlib
import hmac
import http.client
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Rule:
    """What becomes of requests of `method` whose path has `part` in it: the `times` first, after `skip` others."""

    def __init__(self, action, method="", part="", skip=0, times=1_000_000):
        self.action, self.method, self.part = action, method, part
        self.skip, self.times = skip, times

    def strikes(self, method, path):
        if self.method not in ("", method) or self.part not in path or self.times == 0:
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.times -= 1
        return True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_any(self):
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with proxy.lock:
            proxy.requests.append((self.command, self.path, len(body)))
            rule = next((rule for rule in proxy.rules if rule.strikes(self.command, self.path)), None)
        action = rule.action if rule else "pass"
        if not self.is_signed(proxy.secret):
            action = 403
        if action == "reset":
            # No end of the connection, but a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        if action == "silent":
            time.sleep(proxy.silence)
            self.close_connection = True
            return
        if isinstance(action, int):
            return self.answer(action, {"Content-Type": "application/xml"}, proxy.error_body(action))
        below = http.client.HTTPConnection("127.0.0.1", proxy.port_below)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        below.request(self.command, self.path, body, headers)
        reply = below.getresponse()
        found, reply_headers = reply.read(), dict(reply.getheaders())
        below.close()
        if action == "unanswered":
            self.close_connection = True
            return
        self.answer(reply.status, reply_headers, found, cut=action == "cut")

    def is_signed(self, secret):
        """Whether the signature, version 4, is that of who has the secret."""
        told = dict(part.strip().split("=", 1) for part in self.headers["Authorization"].split(" ", 1)[1].split(","))
        path, _, query = self.path.partition("?")
        names = told["SignedHeaders"].split(";")
        lines = [f"{name}:{self.headers[name].strip()}" for name in names]
        query = "&".join(sorted(part if "=" in part else part + "=" for part in query.split("&") if part))
        request = [self.command, path, query, *lines, "", told["SignedHeaders"], self.headers["x-amz-content-sha256"]]
        digest = hashlib.sha256("\n".join(request).encode()).hexdigest()
        scope = told["Credential"].split("/", 1)[1]
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope, digest])
        key = ("AWS4" + secret).encode()
        for word in scope.split("/"):
            key = hmac.digest(key, word.encode(), "sha256")
        return hmac.compare_digest(hmac.digest(key, text.encode(), "sha256").hex(), told["Signature"])

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

    def answer(self, status, headers, body, cut=False):
        self.send_response_only(status)
        told = headers.get("Content-Length", len(body)) if self.command == "HEAD" else len(body)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("Content-Length", told)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut


class Proxy:
    """See the module."""

    silence = 30
    secret = "test"

    def __init__(self, port_below):
        self.port_below = port_below
        self.lock = threading.Lock()
        self.reset()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.proxy = self
        # Commands that were killed, among others.
        self.server.handle_error = lambda *_: None
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reset(self):
        with self.lock:
            self.rules, self.requests = [], []

    def fail(self, action, **where):
        with self.lock:
            self.rules.append(Rule(action, **where))

    @staticmethod
    def error_body(status):
        code = {503: "SlowDown", 403: "AccessDenied"}.get(status, "InternalError")
        return f"<Error><Code>{code}</Code><Message>the test says no</Message></Error>".encode()
