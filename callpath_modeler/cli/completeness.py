"""Completeness of the runs behind a verdict."""

from __future__ import annotations

from collections.abc import Iterable

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.units import counted


def refuse_incomplete(findings: Iterable[Finding]) -> None:
    """Raise an error if a profile was not used: then nothing failed, but not all was checked.

    Raises
    ------
    InputError
        If a finding says that a profile was not used.
    """
    unused = sorted({finding.subject for finding in findings if finding.code == "CPM101"})
    if unused:
        number = counted(len(unused), "profile")
        raise InputError(
            f"{number} could not be used, so the verdict rests on the other runs: {unused[0]}",
            hint="measure the run again, or name only the profiles to check",
        )
