"""A `SqliteServer` as its own module, so that it runs in process and as a server process alike."""

import time

from tbstudy.sandbox.sqlite import Refusal, SqliteServer

server = SqliteServer("shop", "CREATE TABLE items (id TEXT PRIMARY KEY, left_over INTEGER NOT NULL);")


@server.tool
def take(item: str, count: int = 1) -> dict:
    """Take items."""
    left = server.row("items", "id", item)["left_over"] - count
    server.update("items", "id", item, left_over=left)
    if left < 0:
        raise Refusal("not enough")
    return {"left": left}


@server.tool
def move(source: str, target: str) -> dict:
    """Move one item."""
    take(source)
    return take(target, -1)


@server.tool
def stumble(item: str) -> dict:
    """A tool with a mistake in it."""
    server.update("items", "id", item, left_over=0)
    raise ValueError("oh")


@server.tool
def drop(item: str) -> object:
    """A tool whose answer is not JSON."""
    server.db.execute("DELETE FROM items WHERE id = ?", (item,))
    return {item}


@server.tool
def put(item: str) -> dict:
    """Add an item."""
    server.insert("items", id=item, left_over=1)
    return {"put": True}


@server.tool
def stock(count: int = 1) -> dict:
    """Order pens."""
    server.insert("items", id="pen", left_over=count)
    return {"ordered": count}


@server.tool
def spin() -> dict:
    """Python that never ends, and catches what it can."""
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            pass


@server.tool
def crunch() -> dict:
    """SQL that never ends."""
    return server.rows("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")[0]


if __name__ == "__main__":
    server.main()
