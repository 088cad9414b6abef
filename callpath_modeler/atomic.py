"""Files and directories that are written completely or not at all, and their temporary names.

A temporary name ends with the machine, the process and the start of the process. So the next run of
the same user finds out which of them a killed process left, and removes these.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from callpath_modeler.errors import OutputError, reason_of

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


_CANNOT_EXCHANGE = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_CANNOT_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_PROBE = 65_536
"""Bytes that are written to find out whether a disk is full."""
_HERE = -100
"""AT_FDCWD of Linux: paths are relative to the working directory."""
_RENAME_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux, and RENAME_SWAP of macOS."""


def write_file(path: Path, content: bytes | Iterable[bytes], *, overwrite: bool) -> None:
    """Write a file, which is on the disk when this function returns.

    Parameters
    ----------
    path : name of the file
    content : its bytes, or pieces of them; an error while they are made leaves no file
    overwrite : replace a file

    Raises
    ------
    OutputError
        If it exists and may not be replaced, or cannot be written.
    """
    pieces = [content] if isinstance(content, bytes) else content
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as file:  # /dev/stdout, a named pipe
                file.writelines(pieces)
            return
        refuse_present(path, in_the_way=path.is_dir(), overwrite=overwrite)
        remove_abandoned(path.parent)
        handle, name = tempfile.mkstemp(prefix=prefix_of(path.name), dir=path.parent)
        scratch = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(pieces)
                file.flush()
                _sync(file.fileno())
            scratch.chmod(0o666 & ~_umask())
            scratch.replace(path)
            _sync_path(path.parent)
        finally:
            scratch.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as cause:
        raise _failed(path, cause) from cause


@contextmanager
def new_directory(path: Path, *, in_the_way: bool, overwrite: bool) -> Iterator[Path]:
    """Yield an empty directory, which becomes `path` when the block ends without an error.

    A process that is killed leaves the old or the new directory, and perhaps a directory
    ``.NAME-...`` next to it, which the next run of the same user removes. File systems that cannot
    exchange two names, such as NFS and Lustre, need two renames: a kill between them leaves the old
    directory as ``.NAME-.../old``.

    Parameters
    ----------
    path : name of the directory
    in_the_way : never replace the present content of `path`
    overwrite : replace a directory

    Raises
    ------
    OutputError
        If `path` exists and may not be replaced, or cannot be written.
    """
    refuse_present(path, in_the_way=in_the_way, overwrite=overwrite)
    scratch = None
    try:
        remove_abandoned(path.parent)
        scratch = Path(tempfile.mkdtemp(prefix=prefix_of(path.name), dir=path.parent))
        new = scratch / "new"
        new.mkdir()
        yield new
        for each in (*new.rglob("*"), new):
            _sync_path(each)
        if path.exists():
            _replace_directory(path, new)
        else:
            new.rename(path)
        _sync_path(path.parent)
    except OSError as cause:
        raise _failed(path, cause) from cause
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def _replace_directory(path: Path, new: Path) -> None:
    """Exchange `new` and the directory at `path`."""
    try:
        _exchange(path, new)
    except OSError as cause:
        if cause.errno not in _CANNOT_EXCHANGE:
            raise
        old = new.with_name(OLD)
        path.rename(old)
        try:
            new.rename(path)
        except OSError:
            old.rename(path)
            raise


def _exchange(one: Path, other: Path) -> None:
    """Exchange two names in one step of the file system.

    Raises
    ------
    OSError
        If that fails; with an error of `_CANNOT_EXCHANGE` if the system never can.
    """
    system = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if hasattr(system, "renameat2"):
        failed = system.renameat2(_HERE, names[0], _HERE, names[1], _RENAME_EXCHANGE)
    elif hasattr(system, "renamex_np"):
        failed = system.renamex_np(*names, _RENAME_EXCHANGE)
    else:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def refuse_present(path: Path, *, in_the_way: bool, overwrite: bool) -> None:
    """Raise `OutputError` if the name of a result is taken.

    Parameters
    ----------
    path : name of a file or folder
    in_the_way : never replace its present content
    overwrite : replace a file, or a folder
    """
    if in_the_way:
        raise OutputError(f"{path}: something else is in the way", hint="choose another name")
    if path.exists() and not overwrite:
        raise OutputError(f"{path}: exists", hint="--force replaces it")


def why_not_writable(folder: Path) -> str:
    """Return why nothing can be written to a folder; "" = it can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE))
            probe.flush()
            _sync(probe.fileno())
    except OSError as cause:
        return reason_of(cause)
    return ""


def _failed(path: Path, cause: OSError) -> OutputError:
    return OutputError(
        f"{path}: cannot be written: {reason_of(cause)}", hint="choose another place with -o"
    )


def _sync_path(path: Path) -> None:
    """Wait until the content of a file, or the names in a directory, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        _sync(handle)
    finally:
        os.close(handle)


def _sync(handle: int) -> None:
    """Wait until a file is on the disk, where the file system can tell."""
    try:
        os.fsync(handle)
    except OSError as cause:
        if cause.errno not in _CANNOT_SYNC:
            raise


def _umask() -> int:
    # The umask can only be read by setting it.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
