"""HTTP answers of bounded size: a server that never stops talking must not fill our memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2


class TooLarge(Exception):
    """An answer is larger than anything the server could mean."""


async def read(response: httpx2.Response, limit: int) -> bytes:
    """The decoded body of a streamed response.

    Raises:
        TooLarge: it has more than `limit` bytes, also if they were fewer on the way.
    """
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > limit:
            raise TooLarge(f"it sent more than {limit >> 20} MB")
    return bytes(body)
