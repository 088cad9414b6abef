"""Output of Valgrind's callgrind, and of other tools that write its format: lists of functions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_tables.single_run import SingleRun
from cpmodel_tables.text import COPY_IT_AGAIN, opened_lines

CREATOR = "callgrind"

_SIGN = re.compile(
    r"# callgrind format|(?:version: \d|creator: ).*\n(?:[\w ]+:.*\n|\s*\n|#.*\n){0,40}events: "
)
_NAME = re.compile(r"\((\d+)\)(?: (.*))?|(.*)")
_COSTS = re.compile(r"[0-9+*-]")
_VISITS = "visits"


def is_one(text: str) -> bool:
    """Return whether a text is output of callgrind, by its first block."""
    return bool(_SIGN.match(text))


def read(path: Path) -> tuple[SingleRun, list[Finding]]:
    """Return the run: exclusive costs and calls of each function, below the program.

    The format states callers and callees of each function, but no call paths.

    Raises
    ------
    InputError
        If a line is not as the format says.
    """
    reading, limits = _Reading(SingleRun(path)), InputLimits.of(path)
    with opened_lines(path) as text:
        for number, whole in enumerate(text, 1):
            line = whole.strip()
            if line and not line.startswith("#"):
                reading.take(line, number)
            limits.check(Work.NAMES, 2 * len(reading.run.values), "split the file")
    return reading.run, []


@dataclass(slots=True)
class _Reading:
    """The state between two lines.

    Attributes
    ----------
    run : the values so far
    program : name of the program
    function, called : the function whose lines follow, and the one that it calls
    names : names by number
    events : names of the costs
    positions : number of positions before the costs in a line
    is_of_call : the next line has the costs of a call, not of `function`
    """

    run: SingleRun
    program: str = "program"
    function: str = ""
    called: str = ""
    names: dict[str, str] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    positions: int = 1
    is_of_call: bool = False

    def take(self, line: str, number: int) -> None:
        """Take a line."""
        if _COSTS.match(line):
            if not self.is_of_call:
                costs = line.split()[self.positions :]
                _add(self.run, number, (self.program, self.function), self.events, costs)
            self.is_of_call = False
        elif line.startswith("fn="):
            self.function, self.is_of_call = _name(self.names, line[3:]), False
        elif line.startswith("cfn="):
            self.called = _name(self.names, line[4:])
        elif line.startswith("calls="):
            self.is_of_call = True
            _add(self.run, number, (self.program, self.called), [_VISITS], line[6:].split()[:1])
        elif line.startswith(("jump=", "jcnd=")):
            self.is_of_call = True
        else:
            self._take_header(*line.partition(":")[::2])

    def _take_header(self, key: str, value: str) -> None:
        words = value.split()
        if key == "cmd" and words:
            self.program = PurePosixPath(words[0]).name
        elif key == "events":
            self.events = words
        elif key == "positions":
            self.positions = len(words)


def _name(names: dict[str, str], written: str) -> str:
    """Return the name of a function; a number in brackets stands for a name told before."""
    match = _NAME.fullmatch(written)
    number, name, plain = match.groups() if match else ("", "", written)
    if not number:
        return plain or "(unnamed)"
    if name:
        names[number] = name
    return names.get(number, f"({number})")


def _add(
    run: SingleRun, number: int, names: tuple[str, str], events: list[str], costs: list[str]
) -> None:
    """Add the costs in a line; costs at the end that are 0 may be missing."""
    for event, cost in zip(events, costs, strict=False):
        if not (cost.isascii() and cost.isdecimal() and len(cost) < 20):
            raise InputError(
                f"{run.path}: line {number}: {cost[:40]!r} is no number", hint=COPY_IT_AGAIN
            )
        run.add(names, event, float(cost))
