"""Limits for what a file may make cpmodel compute and allocate, by the size of the file.

A count of rows times a count of columns, or the rounds of a loop, costs more than the bytes that
state it. So each reader compares such a product with a limit before it makes anything of it. Every
limit has a floor, which files of all sizes may reach, and then grows with the file. Together they
keep each file within 2 s of processor time per begun 100 KiB, and within 512 MB of memory or, for
files larger than 8 MiB, 40 bytes for each byte.
"""

from __future__ import annotations

import math
import os
from enum import Enum
from pathlib import Path

from msgspec import Struct

from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.printable import shortened

VARIABLE = "CPMODEL_COST_FACTOR"
"""Environment variable for a factor of all limits."""

_LARGEST_FACTOR = 1e6


class Work(Enum):
    """Kinds of work: what is counted, the floor of its limit, and its growth per byte."""

    CELLS = "values in a table of call paths, runs or processes, and metrics", 4_000_000, 1.0
    RUNS = "runs", 8_000, 0.1
    TITLES = "columns", 3_000, 0.03
    METRICS = "metrics", 3_000, 0.03
    COLUMNS = "pairs of a run and a metric", 60_000, 1.0
    TABLE = "cells of rows and columns", 400_000, 3.0
    NAMES = "names in call paths", 1_000_000, 3.0
    TEXT_LINES = "lines of text", 800_000, 10.0
    ELEMENTS = "elements of XML", 250_000, 3.0
    OPERATIONS = "operations in loops", 120_000, 1.2
    MESSAGES = "messages of collective operations", 8_000_000, 80.0
    LINES = "visits of lines by ranks", 300_000, 4.0
    EVALUATIONS = "evaluations of expectations", 300, 0.003
    UNPACKED = "unpacked bytes", 48 << 20, 12.0
    MEMORY = "bytes of memory", 256 << 20, 32.0

    def __init__(self, words: str, floor: int, growth: float) -> None:
        self.words, self.floor, self.growth = words, floor, growth


class InputLimits(Struct, frozen=True):
    """The limits for one file.

    Attributes
    ----------
    path : the file, for messages
    size : its size in bytes
    factor : factor of all limits; infinity = no limits, for data that are no file
    """

    path: Path
    size: int
    factor: float = 1.0

    @classmethod
    def of(cls, path: Path, size: int | None = None) -> InputLimits:
        """Return the limits for a file; `size` replaces the size on disk.

        Raises
        ------
        UsageError
            If the environment variable is not a factor.
        """
        if size is None:
            try:
                size = path.stat().st_size
            except OSError:
                size = 0
        return cls(path, size, _factor())

    def most(self, work: Work) -> float:
        """Return the limit for a kind of work."""
        return self.factor * max(work.floor, work.growth * self.size)

    def check(self, work: Work, count: float, hint: str) -> None:
        """Raise an error if there is more work than the file may cause.

        Parameters
        ----------
        count : the work
        hint : what the author of the file can do

        Raises
        ------
        InputError
            If `count` exceeds the limit.
        """
        if count > self.most(work):
            raise InputError(
                f"{self.path}: {count:,.0f} {work.words} are too many for its {self.size:,} bytes; "
                f"{self.most(work):,.0f} are possible",
                hint=f"{hint}; if you trust the file, set {VARIABLE} to "
                f"{math.ceil(self.factor * count / self.most(work))}",
            )


UNLIMITED = InputLimits(Path(), 0, math.inf)
"""No limits, for data of the caller that come from no file."""


def _factor() -> float:
    given = os.environ.get(VARIABLE)
    if not given:
        return 1.0
    if not (given.isascii() and given.isdecimal() and 1 <= float(given) <= _LARGEST_FACTOR):
        raise UsageError(
            f"{VARIABLE}: not a factor from 1 to {_LARGEST_FACTOR:,.0f}: {shortened(given)!r}",
            hint="e.g. 10",
        )
    return float(given)
