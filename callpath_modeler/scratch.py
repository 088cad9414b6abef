"""Temporary files and folders whose names say which process made them.

A name ends with the machine, the process and the start of the process. So the next run of the same
user finds out which of them a killed process left, and removes these. See `atomic` for their use.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OLD = "old"
"""Name of an earlier folder, which a temporary folder keeps while a new one takes its place."""

_NAME = re.compile(
    r"\.(?P<target>.+)-(?P<machine>[0-9a-f]{8})-(?P<process>\d+)-(?P<start>\d+)-\w{8}", re.ASCII
)
_LONGEST = 60
"""Most characters of the target in the name of a temporary file; names have at most 255 bytes."""
_SECONDS_WITHOUT_CHANGE = 86_400.0
"""Seconds without a change after which the process of another machine is taken for dead."""


def prefix_of(target: str) -> str:
    """Return the beginning of the names of temporary files for a target."""
    process = os.getpid()
    short = target.encode(errors="surrogateescape")[:_LONGEST].decode(errors="ignore")
    return f".{short}-{_machine()}-{process}-{_start_of(process)}-"


@contextmanager
def new_folder(name: str) -> Iterator[Path]:
    """Yield an empty folder among the temporary files of this machine; remove it afterwards."""
    parent = Path(tempfile.gettempdir())
    remove_abandoned(parent)
    folder = Path(tempfile.mkdtemp(prefix=prefix_of(name), dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files and folders of this user whose process does not live any more.

    The names of another machine say nothing about its processes. Their files are removed when
    nothing changed in them for a day. A folder that holds the only copy of its target stays.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _NAME.fullmatch(entry.name)
            if found is not None:
                with suppress(OSError):
                    _remove_abandoned(folder, Path(entry.path), found)


def _remove_abandoned(folder: Path, path: Path, name: re.Match[str]) -> None:
    if path.lstat().st_uid != os.geteuid() or _is_in_use(path, name):
        return
    if path.is_symlink() or not path.is_dir():
        path.unlink()
    elif not (path / OLD).exists() or (folder / name["target"]).exists():
        shutil.rmtree(path, ignore_errors=True)


def _is_in_use(path: Path, name: re.Match[str]) -> bool:
    """Return whether the process that made a temporary file may still live."""
    if name["machine"] == _machine():
        process = int(name["process"])
        return _is_alive(process) and _start_of(process) in (str(name["start"]), "0")
    changed = [path, *(path.rglob("*") if path.is_dir() else ())]
    newest = max(float(each.lstat().st_mtime) for each in changed)
    return bool(time.time() - newest < _SECONDS_WITHOUT_CHANGE)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # it belongs to another user
    return True


def _start_of(process: int) -> str:
    """Return the start of a process, in ticks since the start of the machine; "0" = not known."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "0"
    # The name of the program is in parentheses, and may contain spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[19].isdecimal() else "0"


def _machine() -> str:
    """Return a hash of this machine, its last start, and the numbering of its processes."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
    with suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return hashlib.blake2b("\n".join(parts).encode(errors="replace"), digest_size=4).hexdigest()
