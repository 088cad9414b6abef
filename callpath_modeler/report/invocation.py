"""Commands that repeat a result or go into detail."""

from __future__ import annotations

from dataclasses import dataclass

from callpath_modeler.report.layout import NEXT


@dataclass(frozen=True, slots=True)
class Invocation:
    """The words of a command line, quoted for a shell.

    Attributes
    ----------
    sources : the experiment
    options : options that every command knows
    before : options before the command
    """

    sources: str = "EXP"
    options: str = ""
    before: str = ""

    def line(self, command: str, words: str = "") -> str:
        """Return the command line of another command on the same experiment with the same options.

        Parameters
        ----------
        command : name of the command
        words : further arguments of that command
        """
        parts = ("cpmodel", self.before, command, self.sources, words, self.options)
        return " ".join(part for part in parts if part)

    def hint(self, command: str, words: str = "") -> str:
        """Return the command line as a proposal for the next step."""
        return NEXT + self.line(command, words)


EXPERIMENT, NEW = Invocation(), Invocation("NEW")
"""Placeholders for an unknown experiment, and for the newer of two experiments."""
