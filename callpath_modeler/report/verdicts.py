"""Verdicts of an expectation file for each call path, for rankings and graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callpath_modeler.printable import shell_word
from callpath_modeler.report.layout import TextColumn
from callpath_modeler.report.table_formats import Cell

if TYPE_CHECKING:
    from callpath_modeler.analysis.expectations.check import Check
    from callpath_modeler.analysis.expectations.verdicts import Outcome, Status
    from callpath_modeler.report.invocation import Invocation


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The worst status of the expectations that select a call path.

    Attributes
    ----------
    known : the status and the first expectation that has it, by row; None = the whole program
    """

    known: Mapping[int | None, tuple[Status, Outcome]]

    def columns(self, rows: Sequence[int]) -> dict[str, list[Cell]]:
        """Return the columns of verdicts for `rows`.

        Returns
        -------
        dict
            ``verdict``: the worst status of the expectations that select a call path, None = none
            does; ``expectation``: the name of that expectation.
        """
        found = [self.known.get(row) for row in rows]
        return {
            "verdict": [None if each is None else str(each[0]) for each in found],
            "expectation": [None if each is None else each[1].name for each in found],
        }

    def text_column(self, rows: Sequence[int], blank: int, *, has_total: bool) -> TextColumn:
        """Return the column for people: a word where an expectation selects a call path.

        Parameters
        ----------
        rows : rows of the table
        blank : number of lines without a verdict that follow
        has_total : whether a line of the whole program comes last
        """
        from callpath_modeler.report.check import STYLES

        found = [*(self.known.get(row) for row in rows), *[None] * blank]
        found += [self.known.get(None)] * has_total
        cells = ["" if each is None else each[0].upper() for each in found]
        styles = ["" if each is None else STYLES[each[0]] for each in found]
        return TextColumn("check", cells, right=False, styles=styles)


def verdicts_of(check: Check) -> Verdicts:
    """Return the verdicts on call paths of the results of expectations."""
    return Verdicts(check.of_call_paths())


def verdict_note(check: Check, invocation: Invocation) -> str:
    """Return counts of the results of all expectations, and the command with the details."""
    from callpath_modeler.report.check import last_line

    command = invocation.line("check", shell_word(check.path))
    return f"expectations: {last_line(check)}. Details: {command}"


def verdict_header(check: Check) -> dict[str, object]:
    """Return the JSON fields of all expectations; ``program`` is the one of the whole program."""
    program = check.of_call_paths().get(None)
    return {
        "file": check.path,
        "passed": check.passed,
        "counts": {str(status): number for status, number in check.counts().items()},
        "program": None if program is None else str(program[0]),
    }
