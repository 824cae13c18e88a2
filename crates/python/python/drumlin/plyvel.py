"""plyvel's names over this store: ``import drumlin.plyvel as plyvel``.

LevelDB directories are opened and stay LevelDB's. What is different: comparators of one's own are refused; options of sizes
become shares of one memory budget (``lru_cache_size`` and ``write_buffer_size``) or are taken and not used (``block_size``,
``block_restart_interval``, ``max_file_size``, ``bloom_filter_bits``, ``paranoid_checks``); a database that is closed while
another thread uses it is refused, and nothing crashes.
"""

from __future__ import annotations

import os

import drumlin
from drumlin import errors

__version__ = drumlin.__version__
__leveldb_version__ = "1.23"

Error = errors.Error
IOError = errors.IoError  # noqa: A001 - plyvel's name
CorruptionError = errors.Corruption


class IteratorInvalidError(Error):
    """A raw iterator that stands at no entry was asked for one."""


def _check_bytes(name, value):
    if not isinstance(value, bytes):
        raise TypeError(f"{name} must be bytes, not {type(value).__name__}")
    return value


def _some_bytes(name, value):
    return None if value is None else _check_bytes(name, value)


def _size(name, value):
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
    return value


def _options(compression, sizes, comparator, comparator_name):
    if compression is not None and not isinstance(compression, str):
        raise TypeError("compression must be None or 'snappy'")
    if compression not in (None, "snappy"):
        raise ValueError("compression must be None or 'snappy'")
    if (comparator is None) != (comparator_name is None):
        raise ValueError("comparator and comparator_name go together")
    if comparator is not None:
        _check_bytes("comparator_name", comparator_name)
        if not callable(comparator):
            raise TypeError("comparator must be callable")
        raise errors.NotSupported("comparators of one's own are not supported")
    sizes = {name: _size(name, value) or 0 for name, value in sizes.items()}
    options = {"compression": compression or "none"}
    if sizes["lru_cache_size"] or sizes["write_buffer_size"]:
        needed = sizes["lru_cache_size"] + 4 * sizes["write_buffer_size"]
        options["memory_budget"] = max(needed, 64 << 20)
    if sizes["max_open_files"]:
        options["max_open_files"] = sizes["max_open_files"]
    return options


class _Reads:
    """What databases, prefixed databases and snapshots have in common."""

    _prefix = b""

    def _open_reader(self) -> drumlin.Reader:
        raise NotImplementedError

    def get(self, key, default=None, *, verify_checksums=False, fill_cache=True):
        key = self._prefix + _check_bytes("key", key)
        return self._open_reader().get(key, default)

    def iterator(
        self,
        *,
        reverse=False,
        start=None,
        stop=None,
        include_start=True,
        include_stop=False,
        prefix=None,
        include_key=True,
        include_value=True,
        verify_checksums=False,
        fill_cache=True,
    ):
        if prefix is not None:
            if start is not None or stop is not None:
                raise TypeError("prefix goes together with neither start nor stop")
            bounds = _of_prefix(self._prefix + _check_bytes("prefix", prefix))
        else:
            low, high = _of_prefix(self._prefix)
            if _some_bytes("start", start) is not None:
                low = self._prefix + start + (b"" if include_start else b"\0")
            if _some_bytes("stop", stop) is not None:
                high = self._prefix + stop + (b"\0" if include_stop else b"")
            bounds = low, high
        return Iterator(self, bounds, reverse, include_key, include_value)

    def __iter__(self):
        return self.iterator()

    def raw_iterator(self, *, verify_checksums=False, fill_cache=True):
        return RawIterator(self)

    def __contains__(self, key):
        raise TypeError("__contains__ is not supported ('in' and 'not in' operators)")


def _of_prefix(prefix):
    """The first key with a prefix, and the first key behind all with it."""
    kept = prefix.rstrip(b"\xff")
    behind = kept[:-1] + bytes([kept[-1] + 1]) if kept else None
    return prefix or None, behind


class DB(_Reads):
    """A database. See plyvel's documentation."""

    def __init__(
        self,
        name,
        *,
        create_if_missing=False,
        error_if_exists=False,
        paranoid_checks=None,
        write_buffer_size=None,
        max_open_files=None,
        lru_cache_size=None,
        block_size=None,
        block_restart_interval=None,
        max_file_size=None,
        compression="snappy",
        bloom_filter_bits=0,
        comparator=None,
        comparator_name=None,
    ):
        if not isinstance(name, (str, bytes, os.PathLike)):
            raise TypeError(f"a database's name is a path, not {type(name).__name__}")
        sizes = {
            "write_buffer_size": write_buffer_size,
            "max_open_files": max_open_files,
            "lru_cache_size": lru_cache_size,
            "block_size": block_size,
            "block_restart_interval": block_restart_interval,
            "max_file_size": max_file_size,
            "bloom_filter_bits": bloom_filter_bits,
        }
        options = _options(compression, sizes, comparator, comparator_name)
        self._name = name
        self._database = drumlin.open(
            os.fsdecode(name),
            create_if_missing=create_if_missing,
            error_if_exists=error_if_exists,
            format="leveldb",
            **options,
        )

    @property
    def name(self):
        return self._name

    @property
    def closed(self):
        return self._database.closed

    def close(self):
        self._database.close()

    def _open(self) -> drumlin.Database:
        if self._database.closed:
            raise RuntimeError("Database is closed")
        return self._database

    _open_reader = _open

    def put(self, key, value, *, sync=False):
        self._open().put(_check_bytes("key", key), value, sync=sync)

    def delete(self, key, *, sync=False):
        self._open().delete(_check_bytes("key", key), sync=sync)

    def write_batch(self, *, transaction=False, sync=False):
        return WriteBatch(self, b"", transaction, sync)

    def snapshot(self):
        return Snapshot(self, b"")

    def prefixed_db(self, prefix):
        return PrefixedDB(db=self, prefix=prefix)

    def get_property(self, name):
        name = _check_bytes("name", name)
        # The store knows them by RocksDB's names, which are LevelDB's with another first word.
        own = b"rocksdb." + name.removeprefix(b"leveldb.")
        return self._open().property(own) if name.startswith(b"leveldb.") else None

    def compact_range(self, *, start=None, stop=None):
        self._open().compact(_some_bytes("start", start), _some_bytes("stop", stop))

    def approximate_size(self, start, stop):
        return self.approximate_sizes((start, stop))[0]

    def approximate_sizes(self, *ranges):
        database = self._open()
        return [
            database.approximate_size(_check_bytes("start", start), _check_bytes("stop", stop))
            for start, stop in ranges
        ]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"<drumlin.plyvel.DB with name {self._name!r}>"


class PrefixedDB(_Reads):
    """A database whose keys all begin with a prefix, which its users do not see."""

    def __init__(self, *, db, prefix):
        self.db = db
        self.prefix = self._prefix = _check_bytes("prefix", prefix)

    def _open_reader(self):
        return self.db._open()

    def put(self, key, value, *, sync=False):
        self.db.put(self._prefix + _check_bytes("key", key), value, sync=sync)

    def delete(self, key, *, sync=False):
        self.db.delete(self._prefix + _check_bytes("key", key), sync=sync)

    def write_batch(self, *, transaction=False, sync=False):
        return WriteBatch(self.db, self._prefix, transaction, sync)

    def snapshot(self):
        return Snapshot(self.db, self._prefix)

    def prefixed_db(self, prefix):
        return PrefixedDB(db=self.db, prefix=self._prefix + _check_bytes("prefix", prefix))

    def __repr__(self):
        return f"<drumlin.plyvel.PrefixedDB with prefix {self._prefix!r}>"


class Snapshot(_Reads):
    """A moment of a database."""

    def __init__(self, db, prefix):
        self._db = db
        self._prefix = prefix
        self._moment: drumlin.Snapshot | None = db._open().snapshot()

    def _open_reader(self):
        if self._moment is None or self._db.closed:
            raise RuntimeError("Database or snapshot is closed")
        return self._moment

    def close(self):
        self._moment = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


class WriteBatch:
    """Writes that are done together. Without ``transaction`` they are done also when a ``with`` block fails."""

    def __init__(self, db, prefix, transaction, sync):
        self._db = db
        self._prefix = prefix
        self._transaction = transaction
        self._batch = db._open().batch(sync=bool(sync))

    def _open(self):
        self._db._open()
        return self._batch

    def put(self, key, value):
        self._open().put(self._prefix + _check_bytes("key", key), value)

    def delete(self, key):
        self._open().delete(self._prefix + _check_bytes("key", key))

    def clear(self):
        self._open().clear()

    def write(self):
        """Does the writes, and keeps them: a second call does them again, as plyvel's does."""
        self._open().write(keep=True)

    def approximate_size(self):
        return self._open().size_bytes

    def append(self, source):
        if not isinstance(source, WriteBatch):
            raise TypeError("only another batch can be appended")
        self._open().append(source._batch)

    def __enter__(self):
        self._open()
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None or not self._transaction:
            self.write()
        self.clear()


class _Closing:
    """What iterators have in common."""

    def __init__(self, reads):
        self._reads = reads
        self._is_closed = False
        reads._open_reader()

    def _reader(self):
        if self._is_closed:
            raise RuntimeError("Database or iterator is closed")
        return self._reads._open_reader()

    def close(self):
        self._is_closed = True

    def __contains__(self, key):
        raise TypeError("__contains__ is not supported ('in' and 'not in' operators)")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


class Iterator(_Closing):
    """A place between two entries of a range, or at one of its ends.

    As long as it only goes on in its own direction, entries come from a walk, which is fast. The first other move makes a
    cursor, which stands at the entry behind the place; where there is none behind it, the cursor stands nowhere.
    """

    def __init__(self, reads, bounds, reverse, include_key, include_value):
        super().__init__(reads)
        reader = self._reader()
        self._bounds = bounds
        self._cut = len(reads._prefix)
        self._reverse = reverse
        self._include = include_key, include_value
        # Both see the moment at which the iterator was made.
        self._moment = reader if isinstance(reader, drumlin.Snapshot) else reader.snapshot()
        self._cursor = None
        self._last_key = None
        self._walk = self._moment.items(*bounds, reverse=reverse) if _holds(bounds) else iter(())

    def __iter__(self):
        return self

    def _give(self, key, value):
        match self._include:
            case (True, True):
                return key[self._cut :], value
            case (True, False):
                return key[self._cut :]
            case (False, True):
                return value
        return None

    def __next__(self):
        self._reader()
        if self._walk is None:
            return self._back() if self._reverse else self._forth()
        for key, value in self._walk:
            self._last_key = key
            return self._give(key, value)
        raise StopIteration

    next = __next__

    def prev(self):
        self._reader()
        self._take_cursor()
        return self._forth() if self._reverse else self._back()

    def _take_cursor(self):
        """Goes on with a cursor where the walk has come to."""
        if self._walk is None:
            return
        is_at_end = next(self._walk, None) is None
        self._walk = None
        self._cursor = self._moment.cursor(*self._bounds) if _holds(self._bounds) else _Nothing()
        if self._last_key is None:
            # Nothing was given yet.
            self._place(at_start=not self._reverse)
        elif self._reverse:
            self._cursor.seek(self._last_key)
        elif not is_at_end:
            self._cursor.seek(self._last_key)
            self._cursor.next()

    def _place(self, at_start):
        if at_start:
            self._cursor.first()
        elif self._cursor.last():
            self._cursor.next()

    def _forth(self):
        cursor = self._cursor
        if not cursor.valid:
            raise StopIteration
        found = self._give(cursor.key, cursor.value)
        cursor.next()
        return found

    def _back(self):
        cursor = self._cursor
        moved = cursor.prev() if cursor.valid else cursor.last()
        if not moved:
            cursor.first()
            raise StopIteration
        return self._give(cursor.key, cursor.value)

    def _to(self, at_start):
        self._reader()
        self._take_cursor()
        self._place(at_start)

    def seek_to_start(self):
        self._to(at_start=True)

    def seek_to_stop(self):
        self._to(at_start=False)

    def seek(self, target):
        self._reader()
        target = self._reads._prefix + _check_bytes("target", target)
        self._take_cursor()
        self._cursor.seek(target)


def _holds(bounds):
    """Whether there can be a key between two bounds."""
    start, stop = bounds
    return stop is None or (start or b"") < stop


class _Nothing:
    """A cursor over nothing."""

    valid = False

    def first(self):
        return False

    last = first

    def seek(self, key):
        return False


class RawIterator(_Closing):
    """LevelDB's own iterator."""

    def __init__(self, reads):
        super().__init__(reads)
        self._cursor = self._reader().cursor()

    def _open(self):
        self._reader()
        return self._cursor

    def _at_entry(self):
        cursor = self._open()
        if not cursor.valid:
            raise IteratorInvalidError("the iterator stands at no entry")
        return cursor

    def valid(self):
        return self._open().valid

    def seek_to_first(self):
        self._open().first()

    def seek_to_last(self):
        self._open().last()

    def seek(self, target):
        self._open().seek(_check_bytes("target", target))

    def next(self):
        self._at_entry().next()

    def prev(self):
        self._at_entry().prev()

    def key(self):
        return self._at_entry().key

    def value(self):
        return self._at_entry().value

    def item(self):
        cursor = self._at_entry()
        return cursor.key, cursor.value


def repair_db(name, **options):
    """Makes a database that cannot be opened one that can, from the files that are there."""
    drumlin.repair(os.fsdecode(name), format="leveldb")


def destroy_db(name):
    """Removes a database."""
    drumlin.destroy(os.fsdecode(name))
