"""Histories of commits on disk: one SQLite file that several jobs may write at the same time.

The file has three tables with the same columns: records of commits, and predictions with what was
measured later, which `predictions` describes. A record is a row: the commit, the time
that orders the history, and a payload. The payload is compressed MessagePack with the values of
each call path, scale and repetition. A record is written in one transaction of a write-ahead log.
So a job that is killed, or a full disk, leaves the earlier records and no part of the new one. The
digest of a record is unique, which keeps one that is added twice from counting twice.

A history may come from anywhere. It is read with limits of size and time, its schema must be ours
word for word, and no content of it is ever run. SQLite's write-ahead log needs a file system of one
machine: jobs on several machines need a copy each, or one job that adds all records.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import quote

import msgspec
import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import DataError, InputError, OutputError
from callpath_modeler.printable import printable, shortened
from callpath_modeler.profile.omissions import Omission
from callpath_modeler.support.atomic import database_content, why_not_writable
from callpath_modeler.support.input_limits import InputLimits, Work

Entry = TypeVar("Entry")

MOST_CALL_PATHS = 4_096
"""Largest number of call paths in a record."""

FACTORS = ("parallel efficiency", "load balance", "communication efficiency")
"""Factors of efficiency of a record."""

FORMULA = "formula"
"""Key of the environment of a record for the definition of its metric."""

MOST_RECORDS = 10_000
"""Largest number of records that are read."""

_APPLICATION = 0x63706D68
"""Number that marks the SQLite files of this package."""
_SCHEMA = 2
_TABLES = {
    name: f"""CREATE TABLE {name} (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    commit_id TEXT NOT NULL,
    time REAL NOT NULL,
    checksum INTEGER NOT NULL,
    payload BLOB NOT NULL
)"""
    for name in ("record", "prediction", "outcome")
}
_OURS = {("table", name, sql) for name, sql in _TABLES.items()} | {
    ("index", f"sqlite_autoindex_{name}_1", None) for name in _TABLES
}
_LARGEST_PAYLOAD = 32 * 2**20
_LARGEST_TEXT = 4_096
MOST_ENTRIES = 4_096
"""Largest number of entries of a list of a record; MessagePack states it before the entries."""
LARGEST_VALUE = 1e200
"""Largest value of a record."""
_PATIENCE = 60.0
"""Seconds to wait for another writer."""
_MOST_STEPS = 20_000
"""Largest number of progress reports of SQLite, each after 10,000 instructions, for one file."""
_PRIMARY_CODE = 0xFF
"""Bits of the code of an error of SQLite that tell its kind."""
_OF_DISKS = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
)
_ANOTHER = "name another file, or restore this one from a copy"


@dataclass(frozen=True, slots=True, eq=False)
class HistoryRecord:
    """The measurements of one commit.

    Attributes
    ----------
    commit : name of the commit
    time : seconds since 1970, which order the history
    metric, unit, parameter : what was measured, in which unit, over which parameter
    reduction : statistic over processes
    scales : [K] values of the parameter, ascending
    callpaths : [n] names of call paths, as one text each
    values : [n, K, R] exclusive values, SI base units; NaN = missing
    seconds : [K] run time times processes of one run; NaN = not known
    labels : what the user says about the runs
    environment : what the profiles say about machine and build
    held : values of other parameters
    target : a further scale to judge; None = there is none
    efficiency : [factors, K] factors of parallel efficiency of the program, 0 to 1, in the order of
        `FACTORS`; NaN = not known; empty = the profiles do not allow them
    omissions : parts of the measured program that are left out
    """

    commit: str
    time: float
    metric: str
    unit: str
    parameter: str
    reduction: str
    scales: FloatArray
    callpaths: tuple[str, ...]
    values: FloatArray
    seconds: FloatArray
    labels: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, float] = field(default_factory=dict)
    target: float | None = None
    efficiency: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    omissions: tuple[Omission, ...] = ()

    @property
    def series(self) -> tuple[str, str, str, str, tuple[tuple[str, float], ...]]:
        """Properties that all records of a history share."""
        held = tuple(sorted(self.held.items()))
        metric = metric_with_formula(self.metric, self.environment)
        return metric, self.unit, self.parameter, self.reduction, held

    @property
    def digest(self) -> bytes:
        """Hash of the commit, its labels and its measured values."""
        return self._hash(tuple(sorted(self.labels.items())))

    @property
    def digest_without_labels(self) -> bytes:
        """The digest that versions before 0.2 stored, which leaves labels out."""
        return self._hash(())

    def _hash(self, labels: tuple[tuple[str, str], ...]) -> bytes:
        said: tuple[object, ...] = (
            self.commit, self.series, self.callpaths, self.values.shape, *labels
        )  # fmt: skip
        found = hashlib.blake2b(repr(said).encode(), digest_size=20)
        found.update(np.ascontiguousarray(self.scales, "<f8").tobytes())
        found.update(np.ascontiguousarray(self.values, "<f8").tobytes())
        return found.digest()


def metric_with_formula(metric: str, environment: Mapping[str, str]) -> str:
    """Return the metric of a record, and its definition if a user defined it."""
    return f"{metric}: {environment[FORMULA]}" if FORMULA in environment else metric


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A row of a table of a history.

    Attributes
    ----------
    digest : hash of what makes two rows the same
    earlier : the same hash as earlier versions made it; None = they made the same one
    commit : name of the commit; "" = not known
    time : seconds since 1970, which order the rows
    content : MessagePack
    """

    digest: bytes
    commit: str
    time: float
    content: bytes
    earlier: bytes | None = None

    def check(self, *digests: bytes) -> None:
        """Raise `ValueError` if the digest of the content is none of these."""
        if self.digest not in digests:
            raise ValueError("it differs from its digest")


_FEW = msgspec.Meta(max_length=MOST_ENTRIES)


class _Payload(msgspec.Struct, forbid_unknown_fields=True):
    metric: str
    unit: str
    parameter: str
    reduction: str
    scales: Annotated[list[float], _FEW]
    callpaths: Annotated[list[str], msgspec.Meta(max_length=MOST_CALL_PATHS)]
    shape: tuple[int, int, int]
    values: bytes
    seconds: Annotated[list[float], _FEW]
    labels: Annotated[dict[str, str], _FEW]
    environment: Annotated[dict[str, str], _FEW]
    held: Annotated[dict[str, float], _FEW]
    target: float | None
    efficiency: Annotated[list[Annotated[list[float], _FEW]], _FEW]
    omissions: Annotated[list[Omission], _FEW] = []


def add(path: Path, record: HistoryRecord) -> bool:
    """Add a record to a history, which is created if it does not exist.

    Returns
    -------
    bool
        False if the history has this record already.

    Raises
    ------
    InputError
        If the file is no history.
    OutputError
        If it cannot be written; then it is as it was before.
    """
    _checked(record)
    entry = HistoryRow(
        *(record.digest, record.commit, record.time, _content(record)),
        earlier=record.digest_without_labels,
    )
    return add_entry(path, "record", entry)


def add_entry(path: Path, table: str, entry: HistoryRow) -> bool:
    """Add a row to a table of a history, as `add` does."""
    if len(entry.content) > _LARGEST_PAYLOAD:
        raise DataError(
            f"a record of {len(entry.content):,} bytes is too large for a history",
            hint="record fewer repetitions or scales: --where",
        )
    payload = zlib.compress(entry.content)
    row = (entry.digest, entry.commit, entry.time, zlib.crc32(payload), payload)
    try:
        with _opened(path, writes=True) as database:
            database.execute("BEGIN IMMEDIATE")
            _check(path, database)
            known = database.execute(
                f"SELECT 1 FROM {table} WHERE digest IN (?, ?)",  # noqa: S608 - one of three names
                (entry.digest, entry.earlier or entry.digest),
            ).fetchone()
            if known is None:
                database.execute(
                    f"INSERT INTO {table} (digest, commit_id, time, checksum, payload)"  # noqa: S608
                    " VALUES (?, ?, ?, ?, ?)",
                    row,
                )
            database.execute("COMMIT")
            return known is None
    except (sqlite3.Error, OSError) as cause:
        raise _not_written(path, cause) from cause


def read(path: Path, last: int | None = None) -> tuple[HistoryRecord, ...]:
    """Return the records of a history in their order: by time, then as they were added.

    Parameters
    ----------
    last : number of the newest records; None = all

    Raises
    ------
    InputError
        If the file is no history, is damaged, or is larger than any history should be.
    """
    return read_entries(path, "record", _record_of, last)


def read_entries(
    path: Path, table: str, made: Callable[[HistoryRow], Entry], last: int | None = None
) -> tuple[Entry, ...]:
    """Return the rows of a table of a history in their order, as `read` does.

    Parameters
    ----------
    made : the entry of a row; a `ValueError` or `msgspec.DecodeError` says that it is damaged
    """
    try:
        try:
            with _opened(path, writes=False) as database:
                return _entries(path, database, table, made, last)
        except sqlite3.OperationalError as cause:
            if not _lacks_a_disk(cause):
                raise
        # SQLite writes a file beside a history even to read it, and this disk takes none.
        with _copied(path) as database:
            return _entries(path, database, table, made, last)
    except (sqlite3.Error, OSError, UnicodeDecodeError) as cause:
        raise _broken(path, str(cause)) from cause


@contextmanager
def _opened(path: Path, *, writes: bool) -> Iterator[sqlite3.Connection]:
    """Yield a connection to a file that is or becomes a history; nothing else is opened."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: a history is a file, and this is none", hint=_ANOTHER)
    if not writes and not path.exists():
        raise InputError(
            f"{path}: there is no such history", hint=f"cpmodel watch add {path} RUNS --commit ID"
        )
    mode = "rwc" if writes else "ro"
    name = f"file:{quote(str(path.absolute()))}?mode={mode}"
    database = sqlite3.connect(name, uri=True, timeout=_PATIENCE, isolation_level=None)
    try:
        _distrust(database)
        if writes:
            _create(path, database)
        _limit_time(database)
        yield database
    finally:
        database.close()


@contextmanager
def _copied(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection to a copy of a history in memory."""
    content = database_content(path)
    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        database.deserialize(content)
        _distrust(database)
        _limit_time(database)
        yield database
    finally:
        database.close()


def _distrust(database: sqlite3.Connection) -> None:
    """Limit what a database can do that may come from anywhere."""
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_PAYLOAD + 2**20)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")


def _limit_time(database: sqlite3.Connection) -> None:
    steps = iter(range(_MOST_STEPS))
    database.set_progress_handler(lambda: next(steps, None) is None, 10_000)


def _lacks_a_disk(cause: sqlite3.Error) -> bool:
    """Return whether the disk is full, is read-only, or failed."""
    return getattr(cause, "sqlite_errorcode", 0) & _PRIMARY_CODE in _OF_DISKS


def _create(path: Path, database: sqlite3.Connection) -> None:
    """Make an empty file a history; two jobs may do that at the same time."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            database.execute("BEGIN IMMEDIATE")
            if database.execute("PRAGMA schema_version").fetchone() == (0,):
                database.execute(f"PRAGMA application_id = {_APPLICATION}")
                database.execute(f"PRAGMA user_version = {_SCHEMA}")
                for sql in _TABLES.values():
                    database.execute(sql)
            _check(path, database)
            database.execute("COMMIT")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
        except sqlite3.OperationalError as cause:
            # SQLite does not wait for others while it changes the kind of journal.
            if "locked" not in str(cause) or time.monotonic() > end:
                raise
            if database.in_transaction:
                database.execute("ROLLBACK")
            time.sleep(0.05)
        else:
            return


def _check(path: Path, database: sqlite3.Connection) -> None:
    """Raise `InputError` if a database is no history, or one of another version."""
    numbers = [
        database.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    ]
    if numbers[0] != _APPLICATION:
        raise InputError(f"{path}: this is a database of another program", hint=_ANOTHER)
    if numbers[1] != _SCHEMA:
        raise InputError(
            f"{path}: this history has schema {numbers[1]}, but this version reads {_SCHEMA}",
            hint="read it with the version of cpmodel that wrote it",
        )
    found = set(database.execute("SELECT type, name, sql FROM sqlite_master LIMIT 9").fetchall())
    if found != _OURS:
        # A trigger or a view would be run.
        raise _broken(path, "it has other tables than a history")


def _entries(
    path: Path,
    database: sqlite3.Connection,
    table: str,
    made: Callable[[HistoryRow], Entry],
    last: int | None,
) -> tuple[Entry, ...]:
    _check(path, database)
    (number,) = database.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT ?)",  # noqa: S608 - one of three names
        (MOST_RECORDS + 1,),
    ).fetchone()
    if last is None and number > MOST_RECORDS:
        raise DataError(
            f"{path}: it has more than {MOST_RECORDS:,} records",
            hint=f"judge the newest ones: --last {MOST_RECORDS}",
        )
    rows = database.execute(
        f"SELECT commit_id, time, checksum, payload, digest FROM {table}"  # noqa: S608
        " ORDER BY time DESC, id DESC LIMIT ?",
        (min(last or MOST_RECORDS, MOST_RECORDS),),
    )
    found: list[Entry] = []
    limits, unpacked, memory = InputLimits.of(path), 0, 0
    fewer = f"judge the newest records: --last {max(1, min(100, number // 2))}"
    for commit, when, checksum, payload, digest in rows:
        content = _unpacked(path, payload, checksum)
        unpacked += len(content)
        limits.check(Work.UNPACKED, unpacked, fewer)
        if not isinstance(commit, str) or not isinstance(when, float) or not math.isfinite(when):
            raise _broken(path, "a record has no commit or no time")
        try:
            found.append(made(HistoryRow(digest, commit, when, content)))
            memory += memory_of(found[-1])
        except (msgspec.DecodeError, ValueError, OverflowError, RecursionError) as cause:
            raise _broken(path, f"record of {shortened(printable(commit))}: {cause}") from cause
        limits.check(Work.MEMORY, memory, fewer)
    return tuple(reversed(found))


def _record_of(row: HistoryRow) -> HistoryRecord:
    record = _record(row.commit, row.time, msgspec.msgpack.decode(row.content, type=_Payload))
    row.check(record.digest, record.digest_without_labels)
    return record


def _content(record: HistoryRecord) -> bytes:
    """Return the content of a record."""
    rows, scales, repetitions = record.values.shape
    payload = _Payload(
        record.metric,
        record.unit,
        record.parameter,
        record.reduction,
        record.scales.tolist(),
        list(record.callpaths),
        (rows, scales, repetitions),
        np.ascontiguousarray(record.values, "<f8").tobytes(),
        record.seconds.tolist(),
        dict(record.labels),
        dict(record.environment),
        dict(record.held),
        record.target,
        record.efficiency.tolist(),
        list(record.omissions),
    )
    return msgspec.msgpack.encode(payload)


def memory_of(record: object) -> int:
    """Return an estimate of the memory of a record, in bytes."""
    memory = 0
    for each in fields(record):  # type: ignore[arg-type]
        value = getattr(record, each.name)
        if isinstance(value, np.ndarray):
            memory += value.nbytes
        elif isinstance(value, tuple | dict):
            memory += 64 * len(value) + sum(_own_memory(entry) for entry in value)
    return memory


def _own_memory(entry: object) -> int:
    return len(entry) if isinstance(entry, str) else 80 if isinstance(entry, tuple) else 0


def _unpacked(path: Path, payload: object, checksum: object) -> bytes:
    """Return the content of a payload."""
    if not isinstance(payload, bytes) or zlib.crc32(payload) != checksum:
        raise _broken(path, "a record differs from its checksum")
    reader = zlib.decompressobj()
    try:
        content = reader.decompress(payload, _LARGEST_PAYLOAD)
    except zlib.error as cause:
        raise _broken(path, str(cause)) from cause
    if not reader.eof:
        raise _broken(path, "a record is too large or cut off")
    return content


def _record(commit: str, when: float, payload: _Payload) -> HistoryRecord:
    """Return a record of a payload; raise `ValueError` if it is not valid."""
    rows, scales, repetitions = payload.shape
    if min(payload.shape) < 1 or len(payload.values) != 8 * rows * scales * repetitions:
        raise ValueError(f"values: {len(payload.values)} bytes of shape {payload.shape}")
    record = HistoryRecord(
        commit,
        when,
        payload.metric,
        payload.unit,
        payload.parameter,
        payload.reduction,
        np.array(payload.scales, float),
        tuple(payload.callpaths),
        np.frombuffer(payload.values, "<f8").reshape(payload.shape),
        np.array(payload.seconds, float),
        payload.labels,
        payload.environment,
        payload.held,
        payload.target,
        np.array(payload.efficiency, float) if payload.efficiency else np.empty((0, 0)),
        tuple(payload.omissions),
    )
    _checked(record)
    return record


def _checked(record: HistoryRecord) -> None:
    """Raise `ValueError` if the parts of a record do not fit together."""
    rows, scales, _ = record.values.shape
    texts = [record.commit, record.metric, record.unit, record.parameter, record.reduction]
    pairs = (*record.labels.items(), *record.environment.items())
    texts += [each.metric + each.condition for each in record.omissions]
    texts += [*record.callpaths, *record.held, *(text for pair in pairs for text in pair)]
    check_texts(texts)
    if not record.commit or not math.isfinite(record.time):
        raise ValueError("no commit or no time")
    if rows > MOST_CALL_PATHS or rows != len(record.callpaths) or rows != len({*record.callpaths}):
        raise ValueError(f"{rows} rows of values for {len(record.callpaths)} call paths")
    if scales != len(record.scales) or scales != len(record.seconds):
        raise ValueError(f"{scales} columns of values for {len(record.scales)} scales")
    is_scale = np.isfinite(record.scales) & (record.scales > 0)
    if not is_scale.all() or (np.diff(record.scales) <= 0).any():
        raise ValueError("scales are not positive and ascending")
    factors = record.efficiency
    if factors.shape not in {(0, 0), (len(FACTORS), scales)}:
        raise ValueError(f"factors of efficiency of shape {factors.shape}")
    if (np.nan_to_num(factors) < 0).any() or (np.nan_to_num(factors) > 1.001).any():
        raise ValueError("a factor of efficiency is not between 0 and 1")
    if record.target is not None and not 0 < record.target < math.inf:
        raise ValueError(f"a target of {record.target}")
    for each in (record.values, record.seconds, [*record.held.values()]):
        known = np.asarray(each)[~np.isnan(each)]
        if known.size and np.abs(known).max() > LARGEST_VALUE:
            raise ValueError("a value is larger than any measured one")


def check_texts(texts: Iterable[str]) -> None:
    """Raise `ValueError` if a text of a record is too long or has control characters."""
    if not all(text.isprintable() and len(text) <= _LARGEST_TEXT for text in texts):
        raise ValueError("a name is too long or has control characters")


def _broken(path: Path, what: str) -> InputError:
    return InputError(f"{path}: no history, or a damaged one: {printable(what)}", hint=_ANOTHER)


def _not_written(path: Path, cause: Exception) -> InputError | OutputError:
    text = printable(str(cause))
    if "not a database" in text or "malformed" in text:
        return _broken(path, text)
    if "locked" in text:
        return OutputError(
            f"{path}: another job wrote for more than {_PATIENCE:.0f} s; nothing was added",
            hint="add the record again",
        )
    if isinstance(cause, sqlite3.Error) and _lacks_a_disk(cause):
        is_full = cause.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_FULL
        text = "the disk is full" if is_full else why_not_writable(path.parent) or text
    return OutputError(
        f"{path}: cannot be written: {text}; the history is as it was before",
        hint="make room on the disk or choose another place, then add the record again",
    )
