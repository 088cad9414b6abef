"""Commands that repeat a result or go into detail."""

from __future__ import annotations

from dataclasses import dataclass

from callpath_modeler.report.layout import NEXT

_WITH_EXCESS_WORK = frozenset({"rank", "show", "views", "report", "excess"})
"""Commands that know expected costs."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The words of a command line, quoted for a shell.

    Attributes
    ----------
    sources : the experiment
    options : options that every command knows
    before : options before the command
    expected : option of expected costs, for commands with excess work
    """

    sources: str = "EXP"
    options: str = ""
    before: str = ""
    expected: str = ""

    def line(self, command: str, words: str = "") -> str:
        """Return the command line of another command on the same experiment with the same options.

        Parameters
        ----------
        command : name of the command
        words : further arguments of that command
        """
        expected = self.expected if command in _WITH_EXCESS_WORK else ""
        parts = ("cpmodel", self.before, command, self.sources, words, expected, self.options)
        return " ".join(part for part in parts if part)

    def hint(self, command: str, words: str = "") -> str:
        """Return the command line as a proposal for the next step."""
        return NEXT + self.line(command, words)


EXPERIMENT, NEW = Invocation(), Invocation("NEW")
"""Placeholders for an unknown experiment, and for the newer of two experiments."""
