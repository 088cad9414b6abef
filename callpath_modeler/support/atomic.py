"""Files that are written completely or not at all, fingerprints, and unchanged databases.

A temporary name ends with the machine, the process and the start of the process. So the next run of
the same user finds out which of them a killed process left, and removes these.

SQLite needs space beside a database with a write-ahead log, even for a reader. A full or read-only
disk has none. This module reads both files, and applies the log as SQLite does. See 'WAL-mode file
format' in the documentation of SQLite.

Stores, shards and workers carry it. Two builds with the same sources give the same results, even if
only one of them has a commit. So the digest decides whether two builds are the same.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import shutil
import socket
import struct
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

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


def process_identity(process: int) -> str:
    """Return a text that identifies a living process of this machine, as `is_living` reads it."""
    return f"{_machine()}-{process}-{_start_of(process)}"


def is_living(identity: str) -> bool:
    """Return whether the process, or another process of its group, still lives on this machine."""
    machine, _, rest = identity.strip().partition("-")
    number, _, start = rest.partition("-")
    if machine != _machine() or not (number.isascii() and number.isdecimal() and len(number) < 10):
        return False
    process = int(number)
    if _is_alive(process) and _start_of(process) not in (start, "0"):
        return False  # another process has its number
    try:
        os.killpg(process, 0)
    except OSError:
        return False
    return _has_running_member(process)


def _has_running_member(group: int) -> bool:
    """Return whether a process of a group runs; ended ones may wait for their parent."""
    states = []
    with suppress(OSError):
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with suppress(OSError):
                    text = (entry / "stat").read_text("utf-8", "replace")
                    fields = text.rpartition(")")[2].split()
                    if len(fields) > 2 and fields[2] == str(group):
                        states.append(fields[0])
    return not states or any(state not in {"Z", "X"} for state in states)


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


MOST = 1 << 29
"""Largest number of bytes to hash; traces are larger, and hashing must not take minutes."""


class Fingerprint(Struct, frozen=True):
    """Size and hash of a file or a directory when it was read.

    Attributes
    ----------
    path : path as the user gave it
    size : size in bytes; of a directory, of all files in it; None = it does not exist
    sha256 : SHA-256 of a file in hexadecimal digits; of a directory, the SHA-256 of the lines
        ``DIGEST  NAME`` of its files, sorted by name, as `sha256sum` writes them; "" = not made
    """

    path: str
    size: int | None
    sha256: str


def fingerprints(paths: Iterable[str], most: int = MOST) -> tuple[Fingerprint, ...]:
    """Return sizes and hashes of files and directories, in the given order.

    Parameters
    ----------
    paths : paths of files and directories
    most : largest number of bytes to hash; further files have a size only
    """
    found = []
    for path in paths:
        one = _fingerprint(path, most)
        most -= (one.size or 0) if one.sha256 else 0
        found.append(one)
    return tuple(found)


def _fingerprint(path: str, most: int) -> Fingerprint:
    place = Path(path)
    try:
        files = sorted(_files(place)) if place.is_dir() else [("", place)]
        size = sum(file.stat().st_size for _, file in files)
        if size > most:
            return Fingerprint(path, size, "")
        digests = [(_digest(file), name) for name, file in files]
    except OSError:
        return Fingerprint(path, None, "")
    if not place.is_dir():
        return Fingerprint(path, size, digests[0][0])
    listing = "".join(f"{digest}  {name}\n" for digest, name in digests)
    whole = hashlib.sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()
    return Fingerprint(path, size, whole)


def _files(directory: Path) -> Iterator[tuple[str, Path]]:
    for path in directory.rglob("*"):
        if path.is_file():
            yield path.relative_to(directory).as_posix(), path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = 0x377F0682
"""Magic number of a log; with its last bit set, checksums are of numbers in big-endian order."""
_ATTEMPTS, _PAUSE = 20, 0.1
_LARGEST = 2**31
"""Largest size of both files, in bytes; a history is smaller."""
_VERSIONS = slice(18, 20)
_NO_LOG = b"\x01\x01"
"""Versions of the file format, of a database without a log."""
_PAGE_SIZE = slice(16, 18)


def database_content(path: Path) -> bytes:
    """Return the bytes of a database with its committed transactions, as one file without a log.

    Raises
    ------
    OSError
        If the files cannot be read, are too large, or other processes write all the time.
    """
    log = path.with_name(f"{path.name}-wal")
    for _ in range(_ATTEMPTS):
        before = _state(path), _state(log)
        if sum(each[1] for each in before if each) > _LARGEST:
            raise OSError(f"it is larger than {_LARGEST // 2**20} MB")
        try:
            frames = log.read_bytes()
        except FileNotFoundError:
            frames = b""
        content = bytearray(path.read_bytes())
        # A change within one tick of the clock of the file system shows in no state.
        time.sleep(_PAUSE / 10)
        if (_state(path), _state(log)) == before and _is_same(log, frames):
            return _applied(content, frames)
        time.sleep(_PAUSE)
    raise OSError("other processes write all the time")


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return file, size and time of the last change; None = the file does not exist."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _is_same(log: Path, frames: bytes) -> bool:
    try:
        return log.read_bytes() == frames
    except FileNotFoundError:
        return not frames


def _applied(content: bytearray, log: bytes) -> bytes:
    """Return a database with the committed pages of its log."""
    pages, count, size = _committed(log, len(content))
    if content and size != _page_size(content):
        pages, count = {}, 0
    for number, page in pages.items():
        end = number * size
        if end > len(content):
            content.extend(bytes(end - len(content)))
        content[end - size : end] = page
    if count:
        del content[count * size :]
    if len(content) > _VERSIONS.stop:
        content[_VERSIONS] = _NO_LOG
    return bytes(content)


def _page_size(content: bytes | bytearray) -> int:
    stored = int.from_bytes(content[_PAGE_SIZE], "big")
    return 65_536 if stored == 1 else stored


def _committed(log: bytes, length: int) -> tuple[dict[int, bytes], int, int]:
    """Return the pages of committed transactions, the number of all pages, and their size.

    Parameters
    ----------
    log : content of the log
    length : size of the database without the log, in bytes
    """
    if len(log) < _HEADER.size:
        return {}, 0, 0
    magic, _, size, _, *salt, first, second = _HEADER.unpack_from(log)
    is_valid = magic & ~1 == _MAGIC and 512 <= size <= 65_536 and not size & (size - 1)
    order = ">" if magic & 1 else "<"
    known = _checksum(order, log[: _HEADER.size - 8], (0, 0))
    if not is_valid or known != (first, second):
        return {}, 0, 0
    pages: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    count = 0
    # A database grows by pages that are all in the log.
    most = (len(log) + length) // size
    for begin in range(_HEADER.size, len(log) - _FRAME.size - size + 1, _FRAME.size + size):
        number, committed, *own_salt, first, second = _FRAME.unpack_from(log, begin)
        page = log[begin + _FRAME.size : begin + _FRAME.size + size]
        known = _checksum(order, log[begin : begin + 8] + page, known)
        if own_salt != salt or known != (first, second) or not (0 < number <= most >= committed):
            break
        pending[number] = page
        if committed:
            pages |= pending
            pending, count = {}, committed
    return pages, count, size


def _checksum(order: str, content: bytes, start: tuple[int, int]) -> tuple[int, int]:
    """Return the checksum of a log, continued from `start`."""
    one, two = start
    numbers = struct.unpack(f"{order}{len(content) // 4}I", content)
    for even, odd in zip(numbers[::2], numbers[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return one, two


DISTRIBUTION = "callpath-modeler"
_SOURCES = frozenset({".py", ".c", ".h"})
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_DIGITS = 8
_MOST_IN_A_FILE = 4_096


@cache
def build_identity() -> str:
    """Return the version, the commit if it is known, and the digest of the sources.

    The sources are read once in a process, and only in commands that need the identity.
    """
    version = "unknown"
    with suppress(PackageNotFoundError):
        version = distribution(DISTRIBUTION).version
    commit = _commit(Path(__file__).parents[2])
    of_commit = f" (commit {commit[:_DIGITS]})" if commit else ""
    return f"{version}{of_commit}, sources {_digest_of_sources()}"


def same_build(one: str, other: str) -> bool:
    """Return whether two identities are of the same sources."""
    return one.rpartition(" ")[2] == other.rpartition(" ")[2]


def _digest_of_sources() -> str:
    """Return a digest of the sources of this package and of its plugins."""
    found = hashlib.blake2b(digest_size=_DIGITS // 2)
    for package, folder in sorted(_own_packages().items()):
        for path in sorted(folder.rglob("*")):
            if path.suffix in _SOURCES:
                found.update(f"{package}/{path.relative_to(folder).as_posix()}\0".encode())
                found.update(hashlib.blake2b(path.read_bytes()).digest())
    return found.hexdigest()


def _own_packages() -> dict[str, Path]:
    """Return the folders of this package and its plugins, by name."""
    names = {__name__.partition(".")[0]}
    with suppress(PackageNotFoundError):
        points = distribution(DISTRIBUTION).entry_points
        names |= {point.module.partition(".")[0] for point in points}
    specs = {name: find_spec(name) for name in names}
    return {name: Path(spec.origin).parent for name, spec in specs.items() if spec and spec.origin}


def _commit(root: Path) -> str:
    """Return the commit of a checkout of git, or "" elsewhere."""
    with suppress(OSError, UnicodeDecodeError):
        home = root / ".git"
        if home.is_file():  # a further worktree
            home = root / _text(home).removeprefix("gitdir:").strip()
        head = _text(home / "HEAD")
        if not head.startswith("ref:"):
            return head if _COMMIT.fullmatch(head) else ""
        name = head.removeprefix("ref:").strip()
        if ".." in name:
            return ""
        shared = home / _text(home / "commondir") if (home / "commondir").exists() else home
        for folder in (home, shared):
            if (folder / name).is_file():
                found = _text(folder / name)
                return found if _COMMIT.fullmatch(found) else ""
        return _packed(shared / "packed-refs", name)
    return ""


def _packed(path: Path, name: str) -> str:
    for line in path.read_text(encoding="utf-8").splitlines():
        commit, _, named = line.partition(" ")
        if named == name and _COMMIT.fullmatch(commit):
            return commit
    return ""


def _text(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(_MOST_IN_A_FILE).strip()
