"""Messages to a server, as bytes."""

import socket
import struct

OP_MSG = 2013


class Wire:
    """A connection that sends bytes as they are."""

    def __init__(self, port):
        self.port, self.request = port, 0
        self.connect()

    def connect(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def taken(self, count):
        out = b""
        while len(out) < count:
            more = self.socket.recv(count - len(out))
            if not more:
                raise ConnectionError("closed")
            out += more
        return out

    def ask(self, body, sequence=None):
        """The reply as bytes; nothing where the connection was closed."""
        message = struct.pack("<I", 0) + b"\0" + body
        if sequence is not None:
            name, documents = sequence
            section = name.encode() + b"\0" + documents
            message += b"\1" + struct.pack("<I", len(section) + 4) + section
        self.request += 1
        self.socket.sendall(struct.pack("<4I", len(message) + 16, self.request, 0, OP_MSG) + message)
        try:
            (length,) = struct.unpack("<I", self.taken(4))
            return self.taken(length - 4)[17:]
        except ConnectionError:
            self.connect()
            return None
