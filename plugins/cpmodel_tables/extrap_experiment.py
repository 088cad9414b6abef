"""Extra-P experiments: ZIP archives of JSON and, in newer ones, of arrays of repetitions."""

from __future__ import annotations

import io
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError

import numpy as np

from callpath_modeler.errors import InputError
from callpath_modeler.support.input_limits import budget_of, memory_of_json
from cpmodel_tables.extrap_json import read_experiment
from cpmodel_tables.series import Series
from cpmodel_tables.text import COPY_IT_AGAIN

_DOCUMENT = "experiment.json"
_MAGIC = 16
_INDEX = b"Extra-P INDEX\0\0\0"
_VALUES = b"Extra-P VALUES\0\0"
_HEADER = 1024
_PIECE = 1 << 16

_DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError,
            RuntimeError, TokenError, SyntaxError)  # fmt: skip


def is_experiment(path: Path) -> bool:
    """Return whether a file begins like a ZIP archive."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def read(path: Path) -> tuple[Series, int]:
    """Return the measurements of an experiment, and how many values are means of repetitions.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive, warnings.catch_warnings():
            # numpy warns about array headers that it has to repair.
            warnings.simplefilter("ignore", UserWarning)
            members = _Members(archive, path)
            text = members.read(_DOCUMENT).decode()
            members.budget.check_memory(memory_of_json(text))
            return read_experiment(path, text, _Arrays(members).read)
    except KeyError as cause:
        raise InputError(
            f"{path}: not an Extra-P experiment: {cause.args[0]}", hint=COPY_IT_AGAIN
        ) from cause
    except _DAMAGED as cause:
        what = getattr(cause, "strerror", None) or cause
        raise InputError(f"{path}: damaged: {what}", hint=COPY_IT_AGAIN) from cause


class _Members:
    """Members of an archive, with a common limit of unpacked bytes."""

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive = archive
        self.budget = budget_of(path, in_memory=True)
        self._size = 0

    def read(self, name: str) -> bytes:
        """Return the content of a member; the size in its header is not trusted."""
        pieces = []
        with self._archive.open(name) as member:
            while piece := member.read(_PIECE):
                self._size += len(piece)
                self.budget.check(self._size)
                pieces.append(piece)
        return b"".join(pieces)


class _Arrays:
    """Repetitions in an experiment: consecutive arrays with an index."""

    def __init__(self, members: _Members) -> None:
        self.members = members
        self.chunks: dict[int, tuple[np.ndarray, bytes]] = {}

    def read(self, chunk: int, number: int) -> Sequence[float] | None:
        """Return the repetitions with index `number` in `chunk`; None if they are not a list."""
        if chunk not in self.chunks:
            index = self.members.read(f"values/{chunk}.indx")
            content = self.members.read(f"values/{chunk}.vals")
            if index[:_MAGIC] != _INDEX or content[:_MAGIC] != _VALUES:
                raise ValueError(f"values/{chunk} has an unknown format")
            starts = np.frombuffer(index[_MAGIC + 8 :][: (len(index) - _MAGIC - 8) // 8 * 8], "<u8")
            self.chunks[chunk] = starts, content
        starts, content = self.chunks[chunk]
        if not 0 <= number < len(starts):
            raise ValueError(f"values/{chunk} has no array {number}")
        values = _array(content, int(starts[number]))
        return values.tolist() if values.ndim == 1 and len(values) else None


def _array(content: bytes, start: int) -> np.ndarray:
    """Return the NumPy array that begins at `start`. Its header is checked against the content."""
    file = io.BytesIO(content[start : start + _HEADER])
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"an array has the unknown format {version}")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    count = int(np.prod([int(extent) for extent in shape], dtype=object))
    begin = start + file.tell()
    if dtype.kind not in "fiu" or count < 0 or count * dtype.itemsize > len(content) - begin:
        raise ValueError(f"an array has shape {shape} and type {dtype}")
    return np.frombuffer(content, dtype, count, begin).reshape(shape).astype(np.float64)
