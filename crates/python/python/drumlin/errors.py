"""What can go wrong: a class for each kind of error of the store, all of them an ``Error``."""

from __future__ import annotations


class Error(Exception):
    """An error of the store. ``file`` and ``offset`` say where, if it is about a place."""

    file: str | None = None
    offset: int | None = None


class NotFound(Error):
    """What was asked for does not exist: a family, a file, a database."""


class Corruption(Error):
    """Bytes on disk differ from those that were written."""


class NotSupported(Error):
    """The bytes are sound, but use a feature that this build cannot read."""


class InvalidArgument(Error, ValueError):
    """The arguments make no sense."""


class TooLarge(Error, ValueError):
    """A key, a value or a batch is larger than its limit; nothing was written."""


class IoError(Error, OSError):
    """The operating system refused something."""


class NoSpace(IoError):
    """The disk is full. Reads go on; writes do once there is space."""


class Poisoned(Error):
    """An earlier failure has ended writing; reads go on, and opening again recovers."""


class Locked(Error):
    """Another process, or this one, has the database open."""


class ReadOnly(Error):
    """The database, or its file system, is read-only."""


class Busy(Error):
    """Something else is under way that excludes it."""


class TimedOut(Error, TimeoutError):
    """It took too long."""


class Deadlock(Error):
    """Transactions wait for each other; this one gives way."""


class Aborted(Error):
    """It was given up, for example because it was cancelled."""


class Incomplete(Error):
    """The result is not whole."""


class Closed(Error):
    """The database is closed."""


_CLASSES = {
    "NotFound": NotFound,
    "Corruption": Corruption,
    "NotSupported": NotSupported,
    "InvalidArgument": InvalidArgument,
    "TooLarge": TooLarge,
    "Io": IoError,
    "NoSpace": NoSpace,
    "Poisoned": Poisoned,
    "Locked": Locked,
    "ReadOnly": ReadOnly,
    "Busy": Busy,
    "TimedOut": TimedOut,
    "Deadlock": Deadlock,
    "Aborted": Aborted,
    "Incomplete": Incomplete,
    "Shutdown": Closed,
}


def of_engine(kind: str, message: str, file: str | None, offset: int | None) -> Error:
    """The exception for an error of the engine. The extension module calls it."""
    error = _CLASSES.get(kind, Error)(message)
    error.file = file
    error.offset = offset
    return error
