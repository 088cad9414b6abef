"""Files and directories that are written completely or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from callpath_modeler.errors import OutputError

_CANNOT_EXCHANGE = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_HERE = -100
"""AT_FDCWD of Linux: paths are relative to the working directory."""
_RENAME_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux, and RENAME_SWAP of macOS."""


def write_file(path: Path, content: bytes | Iterable[bytes], *, overwrite: bool) -> None:
    """Write a file.

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
        _refuse(path, in_the_way=path.is_dir(), overwrite=overwrite)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        scratch = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(pieces)
            scratch.chmod(0o666 & ~_umask())
            scratch.replace(path)
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
    ``.NAME-...`` next to it. File systems that cannot exchange two names, such as NFS and Lustre,
    need two renames: a kill between them leaves the old directory as ``.NAME-.../old``.

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
    _refuse(path, in_the_way=in_the_way, overwrite=overwrite)
    scratch = None
    try:
        scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        new = scratch / "new"
        new.mkdir()
        yield new
        if path.exists():
            _replace_directory(path, new)
        else:
            new.rename(path)
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
        old = new.with_name("old")
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


def _refuse(path: Path, *, in_the_way: bool, overwrite: bool) -> None:
    if in_the_way:
        raise OutputError(f"{path}: something else is in the way", hint="choose another name")
    if path.exists() and not overwrite:
        raise OutputError(f"{path}: exists", hint="--force replaces it")


def _failed(path: Path, cause: OSError) -> OutputError:
    return OutputError(
        f"{path}: cannot be written: {cause.strerror or cause}", hint="choose another place with -o"
    )


def _umask() -> int:
    # The umask can only be read by setting it.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
