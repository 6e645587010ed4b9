"""Length-prefixed messages of plain values between the check runner and its child."""

from __future__ import annotations

import json
import marshal
import socket
import struct
from typing import Any

_HEAD = struct.Struct("<I")
#: Bound early: a check may change the module.
_dumps, _loads = json.dumps, json.loads
#: No message of a check is larger.
MAX_MESSAGE = 64 << 20


def pack(value: Any) -> bytes:
    """A message as bytes. Both ends run the same interpreter, which is what marshal needs."""
    try:
        body = marshal.dumps(value)
    except ValueError:
        # Something that is not a plain value, say a date in effects: as JSON has it.
        body = marshal.dumps(_loads(_dumps(value, default=str)))
    return _HEAD.pack(len(body)) + body


def pack_json(value: Any) -> bytes:
    """A message to a reader that does not trust us."""
    body = _dumps(value).encode()
    return _HEAD.pack(len(body)) + body


class Reader:
    """Cuts a stream of bytes into messages; with `trusted=False` they are JSON and of bounded size."""

    def __init__(self, trusted: bool = True) -> None:
        self.buffer = bytearray()
        self.trusted = trusted

    def feed(self, data: bytes) -> None:
        self.buffer += data

    def next(self) -> Any:
        """The next whole message, or None. (No message is None.)

        Raises:
            ValueError: the stream is garbage.
        """
        if len(self.buffer) < _HEAD.size:
            return None
        size, = _HEAD.unpack_from(self.buffer)
        if not self.trusted and size > MAX_MESSAGE:
            raise ValueError(f"a message of {size} bytes")
        if len(self.buffer) < _HEAD.size + size:
            return None
        body = bytes(self.buffer[_HEAD.size:_HEAD.size + size])
        del self.buffer[:_HEAD.size + size]
        try:
            return marshal.loads(body) if self.trusted else _loads(body)
        except (ValueError, EOFError, TypeError, RecursionError) as error:
            raise ValueError(f"unreadable message: {error}") from error


def receive(connection: socket.socket, reader: Reader) -> Any:
    """The next message of a blocking connection, or None at its end."""
    while (message := reader.next()) is None:
        data = connection.recv(1 << 16)
        if not data:
            return None
        reader.feed(data)
    return message
