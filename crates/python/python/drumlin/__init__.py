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
import time
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from . import _drumlin, errors
from ._drumlin import (
    Backups,
    Batch,
    ChangeBatch,
    Changes,
    Cursor,
    Database,
    Family,
    Reader,
    Snapshot,
    Transaction,
    TransactionWalk,
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
    "ChangeBatch",
    "Changes",
    "Cursor",
    "Database",
    "Error",
    "Family",
    "Reader",
    "Snapshot",
    "Transaction",
    "TransactionWalk",
    "Value",
    "Walk",
    "__version__",
    "destroy",
    "errors",
    "list_families",
    "open",
    "repair",
    "transact",
]

_T = TypeVar("_T")

_open: "weakref.WeakSet[Database]" = weakref.WeakSet()


def open(path, **options) -> Database:  # noqa: A001 - as in dbm and shelve
    """Opens the database in ``path``, with all its families; its options are in ``docs/python.md``."""
    database = _drumlin.open(path, **options)
    _open.add(database)
    return database


def transact(database: Database, work: Callable[[Transaction], _T], *, attempts: int = 16, **options: Any) -> _T:
    """Does ``work`` in a transaction, commits it and returns what it returned; all over again, with growing pauses, where it
    met another transaction (``Busy``, ``Deadlock``, ``TimedOut``). The options are those of ``Database.transaction``."""
    if attempts < 1:
        raise ValueError("there is at least one attempt")
    pause = 0.0005
    while True:
        attempts -= 1
        try:
            with database.transaction(**options) as transaction:
                return work(transaction)
        except (errors.Busy, errors.Deadlock, errors.TimedOut):
            if attempts == 0:
                raise
        time.sleep(pause)
        pause *= 2


@atexit.register
def _close_all() -> None:
    # A thread of the store must not call a merge function of an interpreter that has ended.
    for database in list(_open):
        database.close()
