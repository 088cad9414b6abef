"""Command lines that ask for the same, or for more of it."""

from __future__ import annotations

from dataclasses import dataclass

from callpath_modeler.report.layout import NEXT


@dataclass(frozen=True, slots=True)
class Invocation:
    """What a command line was asked with, in the words of a shell.

    Attributes
    ----------
    sources : the experiment
    options : those that every command knows
    before : options before the command
    """

    sources: str = "EXP"
    options: str = ""
    before: str = ""

    def line(self, command: str, words: str = "") -> str:
        """Return the command line by which another command tells of the same.

        Parameters
        ----------
        words : what that command is asked beside
        """
        parts = ("cpmodel", self.before, command, self.sources, words, self.options)
        return " ".join(part for part in parts if part)

    def hint(self, command: str, words: str = "") -> str:
        """Return `line` as what may be done next."""
        return NEXT + self.line(command, words)


EXPERIMENT, NEW = Invocation(), Invocation("NEW")
"""What stands for sources that are not known: of one experiment, of the newer of two."""
