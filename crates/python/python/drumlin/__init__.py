"""A persistent key-value store.

>>> import drumlin, tempfile
>>> db = drumlin.open(tempfile.mkdtemp() + "/db")
>>> db[b"apple"] = b"red"
>>> db.update({b"banana": b"yellow", b"cherry": b"red"})
>>> list(db.items(b"b"))
[(b'banana', b'yellow'), (b'cherry', b'red')]
>>> with db.batch() as batch:
...     batch.put(b"date", b"brown")
...     batch.delete(b"apple")
>>> b"apple" in db
False
>>> db.close()
"""

from __future__ import annotations

import atexit
import weakref

from . import _drumlin, errors
from ._drumlin import (
    Backups,
    Batch,
    Cursor,
    Database,
    Family,
    Reader,
    Snapshot,
    Value,
    Walk,
    __version__,
    destroy,
    list_families,
    repair,
)
from .errors import Error

__all__ = [
    "Backups",
    "Batch",
    "Cursor",
    "Database",
    "Error",
    "Family",
    "Reader",
    "Snapshot",
    "Value",
    "Walk",
    "__version__",
    "destroy",
    "errors",
    "list_families",
    "open",
    "repair",
]

_open: "weakref.WeakSet[Database]" = weakref.WeakSet()


def open(path, **options) -> Database:  # noqa: A001 - as in dbm and shelve
    """Opens the database in ``path``, with all its families; its options are in ``docs/python.md``."""
    database = _drumlin.open(path, **options)
    _open.add(database)
    return database


@atexit.register
def _close_all() -> None:
    # A thread of the store must not call a merge function of an interpreter that has ended.
    for database in list(_open):
        database.close()
