"""Profiles of Python's cProfile: lists of functions.

They are stored by `marshal`, which can make Python crash on hostile data. So this module decodes
the few kinds of objects that a profile consists of, and never runs anything.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path, PurePath

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_tables.single_run import SingleRun
from cpmodel_tables.text import COPY_IT_AGAIN, whole_content

CREATOR = "cProfile"

_PROGRAM = "python"
_IS_REFERENCED = 0x80
_DEEPEST = 10
_LARGEST = 2**53
_DIGIT = 15
"""Number of bits of a digit of a long integer."""
_LONG_TEXTS = {"a": "latin-1", "A": "latin-1", "u": "utf-8", "t": "utf-8", "s": "latin-1"}
_END = object()
_PLAIN = {"N": None, "T": True, "F": False, "0": _END}


def is_one(content: bytes) -> bool:
    """Return whether a content is a profile, by its first bytes: a dictionary of tuples."""
    return len(content) > 1 and content[0] & 0x7F == ord("{") and content[1] & 0x7F in b"()"


def read(path: Path) -> tuple[SingleRun, list[Finding]]:
    """Return the run: exclusive time and calls of each function, below the program.

    Raises
    ------
    InputError
        If the file is no profile, or damaged.
    """
    content = whole_content(path)
    try:
        profile = _Decoder(path, content).value(0)
    except (IndexError, struct.error, UnicodeDecodeError) as cause:
        raise _damaged(path) from cause
    if not isinstance(profile, dict):
        raise _damaged(path)
    run = SingleRun(path)
    for function, timing in profile.items():
        is_one = isinstance(function, tuple) and isinstance(timing, tuple)
        if not is_one or len(function) != 3 or len(timing) != 5:
            raise _damaged(path)
        _, calls, own, *_ = timing
        if not all(isinstance(each, int | float) for each in (calls, own)):
            raise _damaged(path)
        names = _PROGRAM, _name(*function)
        run.add(names, "time [s]", float(own))
        run.add(names, "visits", float(calls))
    return run, []


def _damaged(path: Path) -> InputError:
    return InputError(f"{path}: not a profile of cProfile, or damaged", hint=COPY_IT_AGAIN)


def _name(file: object, line: object, function: object) -> str:
    """Return the name of a function; functions in C have no file."""
    if file == "~":
        return str(function)
    return f"{function} ({PurePath(str(file)).name}:{line})"


class _Decoder:
    """Objects of `marshal`, versions 2 to 4: numbers, texts, tuples and dictionaries."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path, self._content, self._at = path, content, 0
        self._references: list[object] = []
        self._limits, self._objects = InputLimits.of(path, len(content)), 0

    def value(self, depth: int) -> object:
        """Return the next object.

        Raises
        ------
        InputError
            If it is of another kind, or too deep.
        """
        self._objects += 1
        self._limits.check(Work.CELLS, self._objects, "profile a part of the program")
        code = self._take(1)[0]
        kind = chr(code & ~_IS_REFERENCED)
        if depth > _DEEPEST:
            raise _damaged(self._path)
        if kind == "r":
            return self._references[self._number("<I")]
        place = len(self._references)
        if code & _IS_REFERENCED:
            self._references.append(None)
        found = self._of(kind, depth)
        if code & _IS_REFERENCED:
            self._references[place] = found
        return found

    def _of(self, kind: str, depth: int) -> object:
        decoders: dict[str, Callable[[], object]] = {
            "i": lambda: self._number("<i"),
            "l": self._long,
            "g": lambda: struct.unpack("<d", self._take(8))[0],
            "z": lambda: self._take(self._number("<B")).decode("latin-1"),
            "Z": lambda: self._take(self._number("<B")).decode("latin-1"),
            ")": lambda: self._tuple(self._number("<B"), depth),
            "(": lambda: self._tuple(self._number("<I"), depth),
            "{": lambda: self._dictionary(depth),
        }
        if kind in _PLAIN:
            return _PLAIN[kind]
        if kind in _LONG_TEXTS:
            return self._take(self._number("<I")).decode(_LONG_TEXTS[kind], "surrogatepass")
        if kind not in decoders:
            raise _damaged(self._path)
        return decoders[kind]()

    def _tuple(self, count: int, depth: int) -> tuple[object, ...]:
        # Each object has a byte at least.
        if count > len(self._content) - self._at:
            raise _damaged(self._path)
        return tuple(self.value(depth + 1) for _ in range(count))

    def _dictionary(self, depth: int) -> dict[object, object]:
        found: dict[object, object] = {}
        while (key := self.value(depth + 1)) is not _END:
            if not _is_key(key):
                raise _damaged(self._path)
            found[key] = self.value(depth + 1)
        return found

    def _long(self) -> float:
        digits = self._number("<i")
        if not 0 <= digits <= _LARGEST.bit_length() // _DIGIT + 1:
            raise _damaged(self._path)
        parts = struct.unpack(f"<{digits}H", self._take(2 * digits))
        return float(sum(part << (_DIGIT * k) for k, part in enumerate(parts)))

    def _number(self, form: str) -> int:
        return int(struct.unpack(form, self._take(struct.calcsize(form)))[0])

    def _take(self, count: int) -> bytes:
        taken = self._content[self._at : self._at + count]
        if len(taken) < count:
            raise IndexError
        self._at += count
        return taken


def _is_key(key: object) -> bool:
    """Return whether an object can be a key, as that of a function."""
    return isinstance(key, tuple) and all(isinstance(each, str | int | float) for each in key)
