"""A full disk, too little memory, and Ctrl-C at the start are told as what they are."""

from __future__ import annotations

import errno
import gzip
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import working
from callpath_modeler.cli import EXIT_INTERRUPT, EXIT_MEMORY
from callpath_modeler.errors import InputError, is_lack_of_memory, reason_of

TABLE = "callpath,p,time\n" + "".join(f"main,{p},{p**0.5}\nmain/f,{p},2\n" for p in (4, 8, 16, 32))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "measured.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def small_disk():
    """A file system of 300 kB.

    It is not in a folder of pytest, which could not delete it after a run that was killed.
    """
    folder = Path(tempfile.mkdtemp(prefix="small-disk-"))
    words = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        folder.rmdir()
        pytest.skip("only root can mount a file system")
    yield folder
    # A file of a command that has not been collected yet keeps the disk busy.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S607
    folder.rmdir()


def fill(folder):
    with suppress(OSError), (folder / "fill").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))


def test_a_full_disk_is_called_full_by_all_that_write_and_needs_no_space_to_read(
    run, table, small_disk
):
    history, store, shard = (small_disk / name for name in ("h.db", "s.cpm", "1.cpm"))
    assert run("watch", "add", history, table, "--commit", "a", "--target", "64").status == 0
    assert run("fit", table, "-o", store).status == 0
    assert run("fit", table, "--shard", "1/1", "-o", shard).status == 0
    readers = (("watch", "status", history), ("score", history), ("info", store),
               ("rank", store, "--target", "64"), ("info", store, "--verify"))  # fmt: skip
    before = [run(*words).out for words in readers]
    fill(small_disk)
    after = [run(*words) for words in readers]
    assert [each.status for each in after] == [0] * len(readers), [each.err for each in after]
    assert [each.out for each in after] == before
    for words in (
        ("watch", "add", history, table, "--commit", "b"),
        ("rank", table, "--target", "64", "--remember", history),
        ("rank", table, "--target", "64", "-f", "csv", "-o", small_disk / "a.csv"),
        ("report", table, "-o", small_disk / "a.html"),
        ("fit", table, "-o", small_disk / "b.cpm"),
        ("fit", table, "-o", store, "--force"),
        ("fit", table, "--shard", "1/1", "-o", small_disk / "2.cpm"),
        ("merge", shard, "-o", small_disk / "c.cpm"),
        ("baseline", table, "-o", small_disk / "a.toml"),
    ):
        run(*words).fails(6, "the disk is full")
    left = {each.name for each in small_disk.iterdir()} - {"h.db-wal", "h.db-shm"}
    assert left == {"1.cpm", "fill", "h.db", "s.cpm"}


def test_a_disk_that_fills_up_during_a_write_is_called_full(run, table, small_disk, monkeypatch):
    monkeypatch.setattr("callpath_modeler.cli.preflight._check_folder", lambda _: None)
    fill(small_disk)
    for words in (
        ("fit", table, "-o", small_disk / "b.cpm"),
        ("report", table, "-o", small_disk / "a.html"),
        ("watch", "add", small_disk / "new.db", table, "--commit", "b"),
    ):
        run(*words).fails(6, "the disk is full")
    names = {each.name for each in small_disk.iterdir() if each.stat().st_size}
    assert names == {"fill"}


def test_no_room_to_unpack_a_profile_is_no_damaged_profile(
    run, samples, tmp_path, small_disk, monkeypatch
):
    for each in sorted((samples / "stencil").rglob("*.cubex")):
        packed = tmp_path / "runs" / f"{each.parent.name}.cubex"
        packed.parent.mkdir(exist_ok=True)
        packed.write_bytes(gzip.compress(each.read_bytes()))
    assert run("info", tmp_path / "runs").status == 0
    (small_disk / "part").write_bytes(bytes(294_000))
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    done = run("info", tmp_path / "runs")
    done.fails(6, f"cannot be unpacked to {small_disk}: the disk is full", "TMPDIR=")


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk quota of this user is used up"),
        (errno.EROFS, "Read-only file system"),
    ],
)
def test_reasons_of_the_system_have_words_of_users(number, said):
    assert reason_of(OSError(number, os.strerror(number))) == said


def _error_of_numpy():
    with pytest.raises(MemoryError) as caught:
        np.empty(1 << 58)
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        _error_of_numpy(),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        ImportError("x.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ],
)
def test_too_little_memory_has_a_status_of_its_own(run, table, monkeypatch, error):
    assert is_lack_of_memory(error)

    def fails(*_args, **_kwargs):
        raise error

    monkeypatch.setattr("callpath_modeler.studies.study.load_parts", fails)
    done = run("info", table)
    assert EXIT_MEMORY not in {0, 1, 2, 3, 4, 5, 6, 7}
    done.fails(EXIT_MEMORY, "too little memory")


def test_an_input_error_for_lack_of_memory_is_no_damaged_input(run, table, monkeypatch):
    def fails(*_args, **_kwargs):
        cause = OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        raise InputError("x: damaged", hint="another") from cause

    monkeypatch.setattr("callpath_modeler.studies.study.load_parts", fails)
    run("info", table).fails(EXIT_MEMORY, "too little memory")


@pytest.mark.parametrize("megabytes", [90, 110, 130, 150, 180, 220, 300])
def test_a_check_with_too_little_memory_is_no_broken_expectation(table, tmp_path, megabytes):
    limits = tmp_path / "limits.toml"
    limits.write_text('schema = 1\n[[expect]]\ngrowth = "<= O(p^3)"\n')
    program = (
        "import resource, runpy, sys\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({megabytes << 20},) * 2)\n"
        "from callpath_modeler.cli import main\n"
        "sys.argv = ['cpmodel', 'check', *sys.argv[1:]]\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(table), str(limits)],
        capture_output=True,
        text=True,
        timeout=working.HUNG,
        check=False,
    )
    # A library that ends the process for lack of memory does so by a signal.
    assert done.returncode in {0, EXIT_MEMORY} or done.returncode < 0, done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode == EXIT_MEMORY:
        assert "too little memory" in done.stderr


_STARTED = """
import os, sys
from callpath_modeler.cli import main
os.write(1, b"x")
sys.argv = ["cpmodel", "rank", sys.argv[1], "--target", "64"]
main()
"""


@pytest.mark.parametrize("milliseconds", range(0, 300, 20))
def test_an_interruption_at_any_moment_of_the_start_prints_nothing(table, milliseconds):
    started = subprocess.Popen(
        [sys.executable, "-c", _STARTED, str(table)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with started:
        assert started.stdout.read(1) == b"x"
        time.sleep(0.005 + milliseconds / 1000)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=working.HUNG)
    # While Python ends, it gives the signal back to the system, which ends the process by it.
    assert started.returncode in {0, EXIT_INTERRUPT, -signal.SIGINT}
    assert b"Traceback" not in said
    assert b"KeyboardInterrupt" not in said


_IMPORTS = """
import signal, sys
from callpath_modeler.cli import interrupt
signal.signal(signal.SIGINT, interrupt)
sys.path.insert(0, sys.argv[1])
try:
    import compiled_badly
except ImportError:
    sys.exit(5)
"""


def test_an_interruption_of_an_import_is_no_broken_module(tmp_path):
    # As compiled modules do, this one turns each error into one of its own.
    (tmp_path / "compiled_badly.py").write_text(
        "import os, signal\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "except BaseException as error:\n"
        "    raise ImportError('cannot be initialised') from error\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTS, str(tmp_path)],
        capture_output=True,
        timeout=working.HUNG,
        check=False,
    )
    assert (done.returncode, done.stderr) == (EXIT_INTERRUPT, b"")
