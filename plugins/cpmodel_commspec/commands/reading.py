"""The trace or the specification that a command reads, and options about its operations."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import OUTPUT, RUNS, F, option, option_group, output_option
from callpath_modeler.cli.options import A_FILE, FORCE, output_file
from callpath_modeler.cli.table_options import FORMATS, TABLE, OutputRequest
from callpath_modeler.errors import DataError, InputError, UsageError

if TYPE_CHECKING:
    from callpath_modeler.diagnostics import Finding
    from cpmodel_commspec.operations import Traced
    from cpmodel_commspec.specification import Specification


TRACE = click.argument("trace", type=A_FILE, metavar="TRACE")
SOURCE = click.argument("source", type=A_FILE, metavar="TRACE|SPEC.json")
ANY_SOURCE = option(
    "--any-source PATTERN",
    "Call paths whose receives take messages from any source.",
    "any_source",
    multiple=True,
    group=RUNS,
)
ANONYMOUS = option(
    "--anonymous",
    "Write numbers for the names of functions, communicators and the program.",
    "is_anonymous",
    group=OUTPUT,
)


def is_specification(path: Path) -> bool:
    """Tell whether a file is a specification rather than the anchor of a trace."""
    if path.suffix == ".json" and not path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip().startswith(b"{")
    except OSError:
        return False


def read_trace(console: Console, trace: Path) -> tuple[Traced, list[Finding]]:
    """Return the operations of a trace, and what is to be known about it.

    Raises
    ------
    DataError
        If there are none.
    """
    from callpath_modeler.diagnostics import Notices
    from cpmodel_commspec.recording.recorder import record
    from cpmodel_otf2.reader import opened

    path = _anchor(trace)
    with opened(path) as source:
        traced = record(source, console.progress("read"))
        notices = Notices(str(path))
        for what, count in traced.left_out.items():
            notices.note("CPM138", f"{count} {what}", count, what)
        findings = [*source.findings(), *notices.findings()]
    if not any(len(one.shapes) for one in traced.ranks):
        raise DataError(
            f"{path}: no rank communicates", hint="trace a run of several processes with MPI events"
        )
    return traced, findings


def _anchor(trace: Path) -> Path:
    """Return the anchor that a path means: the file itself, or the only one in a directory."""
    if not trace.is_dir():
        return trace
    found = sorted(trace.glob("*.otf2"))
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{trace}: holds {len(found)} traces", hint=f"give one: {found[0]}")
    raise InputError(f"{trace}: holds no .otf2", hint="give the directory that traces.otf2 is in")


_FACTOR = re.compile(r"\+?(\d{1,12}(\.\d{0,12})?|\.\d{1,12})([eE][+-]?\d{1,2})?", re.ASCII)
_LARGEST = 1e9
_SMALLEST = 1e-9


# A subscript would need a newer click.
class Factor(click.ParamType):  # type: ignore[type-arg]
    """A decimal number, exactly: 0, or from 1e-9 to 1e9."""

    name = "factor"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """Return the number."""
        if isinstance(value, Fraction):
            return value
        text = str(value)
        found = Fraction(text) if _FACTOR.fullmatch(text) else Fraction(-1)
        if found != 0 and not _SMALLEST <= found <= _LARGEST:
            what = f"{text[:40]!r} is not a number between 0 and 1e9, such as 0.5 or 4"
            self.fail(what, param, ctx)
        return found


FACTOR = Factor()

Change: TypeAlias = "Callable[[Specification], tuple[Specification, list[str]]]"
"""From a specification to that with the changes that options ask for, and these options."""

_CHANGES = (
    option(
        "--scale-compute F",
        "Multiply the computation, e.g. by 0.5 for processors of twice the speed.",
        type=FACTOR,
    ),
    option("--scale-bytes F", "Multiply the sizes of messages.", type=FACTOR),
    option(
        "--lower NAME=IMPLEMENTATION",
        "Replace a collective by messages, e.g. alltoall=p2p.",
        "lower",
        multiple=True,
    ),
)


def change_options(command: F) -> F:
    """Add the options that change a specification; they arrive as a `Change`, ``change``."""
    return option_group(command, _CHANGES, "change", _change)


def _change(
    *, scale_compute: Fraction | None, scale_bytes: Fraction | None, lower: tuple[str, ...]
) -> Change:
    from cpmodel_commspec import what_if

    chosen = what_if.lowered_names(lower)

    def changed(told: Specification) -> tuple[Specification, list[str]]:
        changes = [f"--lower {name}={instead}" for name, instead in chosen.items()]
        if scale_bytes is not None:
            told = what_if.with_bytes(told, scale_bytes)
            changes.insert(0, f"--scale-bytes {float(scale_bytes):g}")
        if scale_compute is not None:
            told = what_if.with_computation(told, float(scale_compute))
            changes.insert(0, f"--scale-compute {float(scale_compute):g}")
        return what_if.lowered(told, chosen) if chosen else told, changes

    return changed


_TEXT = "text"
_OUTPUT = (
    output_option(
        "-f, --format",
        "Default: by the suffix of -o, else text.",
        "format_",
        type=click.Choice([_TEXT, *(name for name in FORMATS if name != TABLE)]),
    ),
    output_file("Write to a file."),
    FORCE,
)


def trace_output_options(command: F) -> F:
    """Add the options for the output; they arrive as an `OutputRequest`, ``output``."""
    return option_group(command, _OUTPUT, "output", _made)


def _made(*, format_: str | None, output: Path | None, force: bool) -> OutputRequest:
    return OutputRequest(TABLE if format_ == _TEXT else format_, output, force)
