"""Length-prefixed messages of plain values between the check runner and its child."""

from __future__ import annotations

import json
import marshal
import socket
import struct
from typing import Any

_HEAD = struct.Struct("<I")


def pack(value: Any) -> bytes:
    """A message as bytes. Both ends run the same interpreter, which is what marshal needs."""
    try:
        body = marshal.dumps(value)
    except ValueError:
        # Something that is not a plain value, say a date in effects: as JSON has it.
        body = marshal.dumps(json.loads(json.dumps(value, default=str)))
    return _HEAD.pack(len(body)) + body


class Reader:
    """Cuts a stream of bytes into messages."""

    def __init__(self) -> None:
        self.buffer = bytearray()

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
        if len(self.buffer) < _HEAD.size + size:
            return None
        body = bytes(self.buffer[_HEAD.size:_HEAD.size + size])
        del self.buffer[:_HEAD.size + size]
        try:
            return marshal.loads(body)
        except (ValueError, EOFError, TypeError) as error:
            raise ValueError(f"unreadable message: {error}") from error


def receive(connection: socket.socket, reader: Reader) -> Any:
    """The next message of a blocking connection, or None at its end."""
    while (message := reader.next()) is None:
        data = connection.recv(1 << 16)
        if not data:
            return None
        reader.feed(data)
    return message
