"""Errors of reader plugins, with the plugin and the line of the fault."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from callpath_modeler.errors import CallpathModelerError, PluginError
from callpath_modeler.readers.base import API_VERSION, ProfileReader, Reader, SeriesReader

_REQUIRED = ("api_version", "name", "description", "suffixes", "match")


def loaded(make: Callable[[], Any], who: str, remedy: str) -> Reader:
    """Return a new reader after checking the contract.

    Parameters
    ----------
    make : function that creates the reader
    who : name of the reader, for messages
    remedy : hint of the error

    Raises
    ------
    PluginError
        If the reader cannot be created, or if it violates the contract.
    """
    try:
        reader: Reader = make()
    except MemoryError:
        raise
    # An import may also end the process with SystemExit.
    except (Exception, SystemExit) as cause:
        raise PluginError(f"{who} does not load: {error_line(cause)}", hint=remedy) from cause
    missing = [name for name in _REQUIRED if not hasattr(reader, name)]
    if not isinstance(reader, ProfileReader | SeriesReader) and not missing:
        missing = ["open"]
    if missing:
        raise PluginError(f"{who} lacks {', '.join(missing)}", hint=remedy)
    if reader.api_version != API_VERSION:
        raise PluginError(
            f"{who} is for plugin API {reader.api_version}, this is {API_VERSION}", hint=remedy
        )
    if not isinstance(reader.suffixes, tuple):
        raise PluginError(f"{who}: suffixes is not a tuple of file name endings", hint=remedy)
    return reader


@contextmanager
def naming_the_reader(reader: Reader, path: Path) -> Iterator[None]:
    """Convert unexpected exceptions of a reader to errors that name the reader.

    Raises
    ------
    PluginError
        For every exception that the contract of readers does not allow.
    """
    try:
        yield
    except (CallpathModelerError, MemoryError, PermissionError):
        raise
    except Exception as cause:
        raise PluginError(
            f"{path}: reader {reader.name!r} failed: {error_line(cause)}",
            hint=f"report this to its authors ({type(reader).__module__}); "
            "--reader NAME reads with another one",
        ) from cause


def error_line(error: BaseException) -> str:
    """Return an exception as one line, with its position in the plugin."""
    words = " ".join([f"{type(error).__name__}:", *str(error).split()]).removesuffix(":")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_machinery(f.filename)]
    # The text of a syntax error contains its position.
    if not frames or isinstance(error, SyntaxError):
        return words
    return f"{words} ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


def _is_machinery(filename: str) -> bool:
    is_ours = Path(filename).parent == Path(__file__).parent
    return is_ours or filename.startswith("<frozen") or "importlib" in filename
