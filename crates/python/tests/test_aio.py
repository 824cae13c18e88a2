"""The store under asyncio."""

import asyncio

import pytest

import drumlin
from drumlin import aio


def test_everything_is_awaited(path):
    async def main():
        async with aio.open(path, memory_budget=64 << 20) as db:
            await asyncio.gather(*(db.put(b"%03d" % i, b"v%d" % i) for i in range(600)))
            assert await db.get(b"007") == b"v7" and await db.get(b"x", b"none") == b"none"
            assert await db.contains(b"007") and not await db.contains(b"x")
            assert await db.get_many([b"001", b"x"]) == [b"v1", None]
            assert [key async for key in db.keys()] == [b"%03d" % i for i in range(600)]
            assert [key async for key in db.keys(b"598", reverse=True)] == [b"599", b"598"]
            assert [pair async for pair in db.items(prefix=b"59")][0] == (b"590", b"v590")
            snapshot = db.snapshot()
            users = await db.family("users", create=True)
            batch = db.batch()
            batch.put(b"000", b"new")
            await db.write(batch)
            await users.update({b"u": b"1"})
            await db.flush()
            assert await snapshot.get(b"000") == b"v0" and await db.get(b"000") == b"new"
            assert await users.first() == await users.last() == (b"u", b"1")
            await db.delete_range(b"0", b"9")
            assert [key async for key in db.keys()] == []
            with pytest.raises(drumlin.errors.Locked):
                await aio.open(path)
        with pytest.raises(drumlin.errors.Closed):
            db._inner.put(b"k", b"v")

    asyncio.run(main())
