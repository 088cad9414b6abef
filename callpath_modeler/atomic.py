"""Files and directories that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from callpath_modeler.errors import OutputError


def write_file(path: Path, content: bytes, *, overwrite: bool) -> None:
    """Write a file.

    Raises
    ------
    OutputError
        If it exists and may not be replaced, or cannot be written.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(content)  # /dev/stdout, a named pipe
            return
        _refuse(path, in_the_way=path.is_dir(), overwrite=overwrite)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        scratch = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
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
    """Give an empty directory to fill; it becomes `path` when the block ends well.

    Parameters
    ----------
    in_the_way : what is at `path` may not be replaced whatever `overwrite` says

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
            path.rename(scratch / "old")
        new.rename(path)
    except OSError as cause:
        raise _failed(path, cause) from cause
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


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
    # The only way to ask for the umask is to set it.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
