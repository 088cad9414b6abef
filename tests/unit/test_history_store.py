"""Histories on disk: no record is lost or doubled, and a hostile file is one clear error."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from callpath_modeler.errors import CallpathModelerError, DataError, InputError, OutputError
from callpath_modeler.history import history_store
from callpath_modeler.history.commits import judged
from callpath_modeler.history.history_store import HistoryRecord, add, read
from callpath_modeler.history.predictions import PredictionRecord, predictions, remember
from callpath_modeler.support.input_limits import InputLimits, Work

SCALES = np.array([2.0, 4.0, 8.0])


def record(commit="c1", when=1.0, seed=1, rows=5, **others):
    values = np.random.default_rng(seed).uniform(1, 2, (rows, 3, 2))
    names = tuple(f"main/f{k}" for k in range(rows))
    fields = {"labels": {"machine": "A"}, "environment": {"compiler": "cc 12"}} | others
    return HistoryRecord(
        commit, when, "time", "s", "p", "mean", SCALES, names, values, SCALES * 10.0, **fields
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "history.db"


def commits(path):
    return [each.commit for each in read(path)]


def test_a_record_comes_back_as_it_was(path):
    values = record().values.copy()
    values[2, 1] = np.nan
    made = replace(
        record(),
        values=values,
        held={"n": 30.0},
        target=64.0,
    )
    assert add(path, made)
    (found,) = read(path)
    for name in ("values", "scales", "seconds"):
        assert np.array_equal(getattr(found, name), getattr(made, name), equal_nan=True)
    for name in ("commit", "time", "callpaths", "labels", "environment", "held", "target"):
        assert getattr(found, name) == getattr(made, name)
    assert found.digest == made.digest


def test_the_same_record_is_added_once(path):
    assert add(path, record())
    assert not add(path, replace(record(), time=9.0))
    assert add(path, record(seed=2))  # the same commit, measured once more
    assert commits(path) == ["c1", "c1"]


def test_the_same_runs_with_another_label_are_another_record(path):
    assert add(path, record())
    assert add(path, replace(record(), labels={"machine": "B"}))
    assert [each.labels["machine"] for each in read(path)] == ["A", "B"]


def test_a_record_of_an_earlier_version_is_read_and_not_added_again(path):
    add(path, record())
    changed(path, "UPDATE record SET digest = ?", record().digest_without_labels)
    assert commits(path) == ["c1"]
    assert not add(path, record())


_OPEN_FOR_A_READER = """
import resource, signal, sys
from pathlib import Path
from callpath_modeler.history import history_store as store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
print(*[each.commit for each in store.read(Path(sys.argv[1]))])
"""


@pytest.mark.parametrize("is_written_now", [False, True])
def test_a_history_is_read_where_no_byte_can_be_written(path, is_written_now):
    add(path, record())
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("SELECT count(*) FROM record").fetchone()  # the log stays while it is open
    if is_written_now:  # this record is in the log alone, and a transaction is open
        add(path, record("c2", 2.0, seed=7, rows=900))
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE record SET commit_id = 'open'")
        assert path.with_name("history.db-wal").stat().st_size
    else:
        writer.close()
    program = [sys.executable, "-c", _OPEN_FOR_A_READER, str(path)]
    copy = path.with_name("copy")
    copy.mkdir()
    for each in path.parent.glob("history.db*"):
        if not each.name.endswith("-shm"):
            (copy / each.name).write_bytes(each.read_bytes())
    program[-1] = str(copy / "history.db")
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["c1", "c2"][: 1 + is_written_now], done.stderr
    assert not (copy / "history.db-shm").exists() or not (copy / "history.db-shm").stat().st_size


@pytest.mark.parametrize("cut", [10, 40, 2_000, 20_000])
def test_a_log_that_was_cut_off_gives_the_transactions_before(path, cut):
    add(path, record())
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("SELECT count(*) FROM record").fetchone()
    add(path, record("c2", 2.0, seed=7, rows=900))
    log = path.with_name("history.db-wal")
    content = log.read_bytes()
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    copy.with_name("copy.db-wal").write_bytes(content[: len(content) - cut])
    with history_store._copied(copy) as database:
        found = database.execute("SELECT commit_id FROM record").fetchall()
    writer.close()
    assert found == [("c1",)]


def test_records_are_in_order_of_time_and_the_newest_can_be_chosen(path):
    for commit, when in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("d", 3.0)):
        add(path, record(commit, when))
    assert commits(path) == ["a", "b", "c", "d"]
    assert [each.commit for each in read(path, last=2)] == ["c", "d"]


def prediction(when, *, run="a"):
    """Return a prediction of one call path, made of one run."""
    return PredictionRecord(
        time=when, metric="time", unit="s", parameter="p", reduction="mean", scale=64.0,
        runs=(run,), callpaths=("main",), inclusive=False, level=0.95, method="mixture",
        scales=(8.0, 16.0), bands=((2.0, 1.0, 3.0),), trust=(1,), models=("2",),
        total=(2.0, 1.0, 3.0), is_run_time=False,
    )  # fmt: skip


def _add_many(path, writer, number):
    for k in range(number):
        remember(path, prediction(float(k), run=f"w{writer}.{k}"))
        remember(path, prediction(float(writer), run=f"shared.{k}"))
        add(path, record(f"w{writer}.{k}", seed=100 * writer + k))
        add(path, record(f"shared.{k}", seed=k))


def test_several_writers_lose_and_double_no_record(path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_add_many, args=(path, k, 12)) for k in range(3)]
    for each in writers:
        each.start()
    for each in writers:
        each.join(120)
        assert each.exitcode == 0
    expected = [f"w{writer}.{k}" for writer in range(3) for k in range(12)]
    expected += [f"shared.{k}" for k in range(12)]
    assert sorted(commits(path)) == sorted(expected)
    assert sorted(each.runs[0] for each in predictions(path)) == sorted(expected)


_WRITER = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import sqlite3
from test_history_store import record
from callpath_modeler.history import history_store
path, statement = Path(sys.argv[2]), sys.argv[3]
connect = sqlite3.connect
class Killed(sqlite3.Connection):
    def execute(self, sql, *rest):
        if sql.startswith(statement):
            if sys.argv[4] == "after":
                super().execute(sql, *rest)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().execute(sql, *rest)
sqlite3.connect = lambda *a, **k: connect(*a, **k, factory=Killed)
history_store.add(path, record("killed", 2.0, seed=7))
"""


@pytest.mark.parametrize(
    "statement", ["PRAGMA app", "CREATE", "PRAGMA journal", "INSERT", "COMMIT"]
)
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_killed_writer_leaves_a_whole_history(path, statement, moment, is_new):
    if not is_new:
        add(path, record())
        if statement in {"CREATE", "PRAGMA app"}:
            pytest.skip("an existing history is not created")
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", _WRITER, here, str(path), statement, moment], check=False
    )
    assert done.returncode == -signal.SIGKILL
    known = [] if is_new else ["c1"]
    assert add(path, record("next", 3.0, seed=8))
    left = commits(path)
    assert left in ([*known, "next"], [*known, "killed", "next"])
    added = add(path, record("killed", 2.0, seed=7))
    assert added == ("killed" not in left)
    assert commits(path) == [*known, "killed", "next"]


_LIMITED = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_history_store import record
from callpath_modeler.history import history_store
from callpath_modeler.errors import OutputError
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
try:
    history_store.add(Path(sys.argv[2]), record("full", 2.0, seed=7, rows=4000))
except OutputError as error:
    print(error.message, error.hint, sep="|")
    sys.exit(6)
"""


@pytest.mark.parametrize("room", [0, 512, 4096, 20_000, 60_000])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_full_disk_is_one_error_and_leaves_the_earlier_records(path, room, is_new):
    if not is_new:
        add(path, record())
        room += path.stat().st_size
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, here, str(path), str(room)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 6, done.stderr
    assert "cannot be written" in done.stdout
    assert "make room" in done.stdout
    assert add(path, record("full", 2.0, seed=7, rows=4000))
    assert commits(path) == [*([] if is_new else ["c1"]), "full"]


def changed(path, sql, *values):
    with sqlite3.connect(path) as database:
        database.execute(sql, values)
    database.close()


@pytest.mark.parametrize(
    "content", [b"", b"no database at all", b"SQLite format 3\x00" + b"\xff" * 5000, b"\x00" * 4096]
)
def test_a_file_of_another_kind_is_an_error_and_stays(path, content):
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.hint
    if content:
        with pytest.raises(CallpathModelerError):
            add(path, record())
        assert path.read_bytes() == content


def test_a_database_of_another_program_is_an_error_and_stays(path):
    changed(path, "CREATE TABLE record (id INTEGER)")
    before = path.read_bytes()
    for action in (read, lambda path: add(path, record())):
        with pytest.raises(InputError, match="another program"):
            action(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "extra",
    [
        "CREATE TRIGGER t AFTER INSERT ON record BEGIN DELETE FROM record; END",
        "CREATE VIEW v AS SELECT load_extension('x')",
        "CREATE TABLE other (x)",
        "CREATE INDEX i ON record (time)",
    ],
)
def test_a_history_with_other_tables_views_or_triggers_is_refused(path, extra):
    add(path, record())
    changed(path, extra)
    for action in (read, lambda path: add(path, record("c2"))):
        with pytest.raises(InputError, match="other tables"):
            action(path)


def repacked(path, **changes):
    """Replace fields of the payload of the only record, with a correct checksum."""
    with sqlite3.connect(path) as database:
        (payload,) = database.execute("SELECT payload FROM record").fetchone()
        fields = msgspec.msgpack.decode(zlib.decompress(payload)) | changes
        packed = zlib.compress(msgspec.msgpack.encode(fields))
        database.execute(
            "UPDATE record SET payload = ?, checksum = ?", (packed, zlib.crc32(packed))
        )
    database.close()


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [5, 3, 3]},
        {"shape": [-5, -3, 2]},
        {"shape": [2**40, 2**40, 2]},
        {"values": b""},
        {"values": np.full((5, 3, 2), np.inf).tobytes()},
        {"scales": [2.0, 4.0]},
        {"scales": [4.0, 2.0, 8.0]},
        {"scales": [0.0, 2.0, 8.0]},
        {"scales": [1.0, 2.0, float("nan")]},
        {"callpaths": ["a"] * 5},
        {"callpaths": ["a", "b", "c", "d", "e\x1b[31m"]},
        {"metric": "x" * 10_000},
        {"labels": {"k": "a\nb"}},
        {"target": 0.0},
        {"target": float("nan")},
        {"unknown": 1},
        {"metric": 3},
        {"metric": "visits"},
    ],
)
def test_a_hostile_record_is_an_error(path, changes):
    add(path, record())
    repacked(path, **changes)
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.message.isprintable()


def test_a_changed_byte_and_a_wrong_type_are_errors(path):
    add(path, record())
    for sql, value in (
        ("UPDATE record SET checksum = ?", 1),
        ("UPDATE record SET payload = ?", "text"),
        ("UPDATE record SET time = ?", "noon"),
        ("UPDATE record SET commit_id = ?", b"\xff\xfe"),
    ):
        copy = path.with_name("copy.db")
        copy.unlink(missing_ok=True)
        add(copy, record())
        changed(copy, sql, value)
        with pytest.raises(InputError):
            read(copy)


def test_a_bomb_is_not_unpacked(path):
    add(path, record())
    bomb = zlib.compress(b"\x00" * (history_store._LARGEST_PAYLOAD + 10))
    changed(path, "UPDATE record SET payload = ?, checksum = ?", bomb, zlib.crc32(bomb))
    with pytest.raises(InputError, match="too large"):
        read(path)


def test_too_many_records_and_too_many_bytes_have_a_hint(path, monkeypatch):
    for k in range(4):
        add(path, record(f"c{k}", seed=k))
    few = InputLimits(path, 0, 1000 / Work.UNPACKED.floor)
    with monkeypatch.context() as patched:
        patched.setattr(InputLimits, "of", lambda _: few)
        with pytest.raises(InputError, match="unpacked bytes are too many") as caught:
            read(path)
    assert "--last" in caught.value.hint
    monkeypatch.setattr(history_store, "MOST_RECORDS", 3)
    with pytest.raises(DataError, match="more than 3 records") as caught:
        read(path)
    assert "--last" in caught.value.hint
    assert len(read(path, last=2)) == 2


@pytest.mark.parametrize("field", ["scales", "callpaths", "seconds", "efficiency", "labels"])
def test_a_list_that_is_too_long_is_refused_by_its_length(path, field):
    add(path, record())
    payload = msgspec.msgpack.decode(history_store._content(record("c2")))
    del payload[field]
    content = msgspec.msgpack.encode({**payload, field: None})[:-1]
    # The list announces a million entries, and not one of them follows.
    content += (b"\xdf" if field == "labels" else b"\xdd") + (1 << 20).to_bytes(4, "big")
    packed = zlib.compress(content)
    changed(path, "UPDATE record SET payload = ?, checksum = ?", packed, zlib.crc32(packed))
    with pytest.raises(InputError, match="of length <= 4096"):
        read(path)


def test_call_paths_that_each_record_has_alone_are_too_many_to_judge(path):
    records = [
        replace(record(f"c{k}", k, rows=50), callpaths=tuple(f"{k}.{row}" for row in range(50)))
        for k in range(200)
    ]
    limits = InputLimits(path, 100_000)
    with pytest.raises(InputError, match="bytes of memory are too many") as caught:
        judged(records, limits=limits)
    assert "--last" in caught.value.hint
    assert len(judged(records[:20], limits=limits).records) == 20


def test_directories_pipes_and_missing_files_are_errors(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe"):
        for action in (read, lambda path: add(path, record())):
            with pytest.raises(InputError, match="a history is a file"):
                action(tmp_path / name)
    with pytest.raises(InputError, match="no such history"):
        read(tmp_path / "none")
    with pytest.raises(OutputError):
        add(tmp_path / "none" / "history.db", record())


def test_names_with_signs_of_addresses_are_plain_names(tmp_path):
    path = tmp_path / "a?mode=memory#%41.db"
    add(path, record())
    assert path.exists()
    assert commits(path) == ["c1"]


def test_a_history_can_be_read_where_nothing_can_be_written(path):
    add(path, record())
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        assert commits(path) == ["c1"]
    finally:
        path.parent.chmod(0o755)
