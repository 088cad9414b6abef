"""Paths of profiles for workers elsewhere, which have another working directory.

Workers get absolute paths. Their answers name each profile as the user did, so the answers are the
same as without workers.
"""

from __future__ import annotations

from dataclasses import replace

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.runs import ReadRun


def with_absolute_path(file: RunFile) -> RunFile:
    """Return a profile with its absolute path."""
    return replace(file, path=file.path.absolute())


def named_as(file: RunFile, outcome: list[ReadRun] | InputError) -> list[ReadRun] | InputError:
    """Return the runs or the error of a profile, which name it as `file` does."""
    long, short = str(file.path.absolute()), str(file.path)
    if long == short:
        return outcome
    if isinstance(outcome, InputError):
        hint = outcome.hint and outcome.hint.replace(long, short)
        return InputError(outcome.message.replace(long, short), hint=hint)
    return [
        replace(
            run,
            name=run.name.replace(long, short),
            file=replace(run.file, path=file.path),
            findings=tuple(_renamed(each, long, short) for each in run.findings),
        )
        for run in outcome
    ]


def _renamed(finding: Finding, long: str, short: str) -> Finding:
    subject, message = (text.replace(long, short) for text in (finding.subject, finding.message))
    return replace(finding, subject=subject, message=message)
