"""Runs of several cases: programs, inputs or machines that words tell apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from callpath_modeler.errors import UsageError
from callpath_modeler.printable import printable, shell_word, shortened
from callpath_modeler.units import counted

_MOST = 5
"""Maximum number of cases in an error."""
_SIGNS = re.compile(r"[,<>=!*?\[\]]")
"""Characters with a meaning in conditions."""


class _Read(Protocol):
    @property
    def metadata(self) -> Mapping[str, str]: ...
    @property
    def cases(self) -> tuple[str, ...]: ...


def refuse_several_cases(runs: Sequence[_Read]) -> None:
    """Raise an error if runs are of several cases, which no model describes together.

    Raises
    ------
    UsageError
        If there are several cases. The error lists them, and explains how to choose one.
    """
    for key in dict.fromkeys(key for run in runs for key in run.cases):
        values = dict.fromkeys(run.metadata.get(key, "") for run in runs)
        if len(values) < 2:
            continue
        shown = [shortened(printable(value) or "(empty)", 40) for value in values]
        listed = ", ".join(shown[:_MOST])
        more = f", and {len(shown) - _MOST} more" if len(shown) > _MOST else ""
        name = shown_name = printable(key)
        chosen = shell_word(f"{name}={_SIGNS.sub('?', next(filter(None, values)))}")
        raise UsageError(
            f"{counted(len(values), 'case')} in column {shown_name!r}: {listed}{more}; "
            "runs of several cases are not repetitions of each other",
            hint=f"choose one: --where {chosen}, or rank each: "
            f"cpmodel rank --group-by {shell_word(name)}; if they are call paths, call the "
            "column callpath",
        )
