"""The store for ``asyncio``: the same calls, awaited.

Whatever may wait for the disk, for other writers or for the whole store runs on threads, so the event loop goes on. A value
that is in memory would be there at once: where every microsecond counts, call ``drumlin.Database.get`` itself.

>>> import asyncio, tempfile
>>> from drumlin import aio
>>> async def main():
...     async with aio.open(tempfile.mkdtemp() + "/db") as db:
...         await db.put(b"apple", b"red")
...         return await db.get(b"apple"), [pair async for pair in db.items()]
>>> asyncio.run(main())
(b'red', [(b'apple', b'red')])
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import drumlin

__all__ = ["AsyncDatabase", "AsyncFamily", "AsyncReader", "AsyncSnapshot", "open"]

# Entries that a walk takes from the store with one visit to a thread.
_ENTRIES = 256


class AsyncReader:
    """A family to read from. See ``drumlin.Reader``."""

    def __init__(self, inner, threads: ThreadPoolExecutor) -> None:
        self._inner = inner
        self._threads = threads

    def _run(self, call, *args, **kwargs):
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._threads, lambda: call(*args, **kwargs))

    async def get(self, key, default=None):
        return await self._run(self._inner.get, key, default)

    async def get_many(self, keys) -> list:
        return await self._run(self._inner.get_many, keys)

    async def contains(self, key) -> bool:
        return await self._run(self._inner.__contains__, key)

    async def first(self):
        return await self._run(self._inner.first)

    async def last(self):
        return await self._run(self._inner.last)

    async def _walk(self, make, args, kwargs):
        walk = await self._run(make, *args, **kwargs)
        while entries := await self._run(lambda: list(islice(walk, _ENTRIES))):
            for entry in entries:
                yield entry

    def items(self, start=None, stop=None, *, prefix=None, reverse=False):
        kwargs = {"prefix": prefix, "reverse": reverse}
        return self._walk(self._inner.items, (start, stop), kwargs)

    def keys(self, start=None, stop=None, *, prefix=None, reverse=False):
        kwargs = {"prefix": prefix, "reverse": reverse}
        return self._walk(self._inner.keys, (start, stop), kwargs)

    def values(self, start=None, stop=None, *, prefix=None, reverse=False):
        kwargs = {"prefix": prefix, "reverse": reverse}
        return self._walk(self._inner.values, (start, stop), kwargs)


class AsyncFamily(AsyncReader):
    """A family to read from and to write to. See ``drumlin.Family``."""

    async def put(self, key, value, *, sync=None) -> None:
        await self._run(self._inner.put, key, value, sync=sync)

    async def delete(self, key, *, sync=None) -> None:
        await self._run(self._inner.delete, key, sync=sync)

    async def delete_range(self, start, stop, *, sync=None) -> None:
        await self._run(self._inner.delete_range, start, stop, sync=sync)

    async def merge(self, key, operand, *, sync=None) -> None:
        await self._run(self._inner.merge, key, operand, sync=sync)

    async def update(self, pairs, *, sync=None) -> None:
        await self._run(self._inner.update, pairs, sync=sync)

    async def flush(self) -> None:
        await self._run(self._inner.flush)

    async def compact(self, start=None, stop=None) -> None:
        await self._run(self._inner.compact, start, stop)


class AsyncSnapshot(AsyncReader):
    """A moment of the database. See ``drumlin.Snapshot``."""

    def family(self, name: str) -> AsyncReader:
        return AsyncReader(self._inner.family(name), self._threads)


class AsyncDatabase(AsyncFamily):
    """An open database. See ``drumlin.Database``."""

    async def family(self, name: str, *, create=False, **options) -> AsyncFamily:
        family = await self._run(self._inner.family, name, create=create, **options)
        return AsyncFamily(family, self._threads)

    def families(self) -> list[str]:
        return self._inner.families()

    def batch(self) -> drumlin.Batch:
        """A batch, which is filled at once and written by ``write``."""
        return self._inner.batch()

    async def write(self, batch: drumlin.Batch) -> int:
        return await self._run(batch.write)

    def snapshot(self) -> AsyncSnapshot:
        return AsyncSnapshot(self._inner.snapshot(), self._threads)

    async def sync(self) -> int:
        return await self._run(self._inner.sync)

    async def checkpoint(self, path) -> None:
        await self._run(self._inner.checkpoint, path)

    async def close(self) -> None:
        await self._run(self._inner.close)
        self._threads.shutdown(wait=False)


class _Opening:
    """What ``open`` gives: to be awaited, or entered."""

    def __init__(self, path, threads: int, options) -> None:
        self._path, self._options = path, options
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="drumlin")
        self._database: AsyncDatabase | None = None

    async def _open(self) -> AsyncDatabase:
        loop = asyncio.get_running_loop()
        call = lambda: drumlin.open(self._path, **self._options)  # noqa: E731
        try:
            inner = await loop.run_in_executor(self._threads, call)
        except BaseException:
            self._threads.shutdown(wait=False)
            raise
        self._database = AsyncDatabase(inner, self._threads)
        return self._database

    def __await__(self):
        return self._open().__await__()

    async def __aenter__(self) -> AsyncDatabase:
        return await self._open()

    async def __aexit__(self, *exception) -> None:
        if self._database is not None:
            await self._database.close()


def open(path, *, threads: int = 8, **options) -> _Opening:  # noqa: A001 - as `drumlin.open`
    """Opens the database in ``path``, whose calls run on up to ``threads`` threads: await it, or use ``async with``."""
    return _Opening(path, threads, options)
