"""The content of ``--expect``: a growth, a file of expectations, or another experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from callpath_modeler.analysis.expectations.clauses import read
from callpath_modeler.analysis.expectations.expectation import Expectations
from callpath_modeler.errors import UsageError
from callpath_modeler.modeling import Function, GrowthSyntaxError, parse_function
from callpath_modeler.profile.experiment import Scaling

_EXAMPLES = "e.g. --expect 'O(log p)', --expect expectations.toml, or a directory of runs"


@dataclass(frozen=True, slots=True)
class ExcessExpectation:
    """The content of ``--expect``: a growth, a file of expectations, or another experiment.

    Attributes
    ----------
    text : what the user wrote
    growth : the growth and its parameter; None = it is none
    expectations : the expectations of a file; None = it is none. Without both, `text` is the path
        of another experiment
    """

    text: str
    growth: tuple[Function, str | None] | None = None
    expectations: Expectations | None = None


def parse_expectation(text: str) -> ExcessExpectation:
    """Return the content of ``--expect``.

    A path that exists is a file of expectations if its suffix is ``.toml``, else an experiment. All
    else is a growth.

    Raises
    ------
    UsageError
        If the text is neither a path nor a growth.
    InputError
        If the file of expectations is invalid.
    """
    if text.endswith(".toml"):
        return ExcessExpectation(text, expectations=read(Path(text)))
    if text in {Scaling.WEAK, Scaling.STRONG}:
        raise UsageError(f"--expect {text} is a kind of scaling", hint=f"--scaling {text}")
    try:
        if text.strip() and Path(text).exists():
            return ExcessExpectation(text)
    except (OSError, ValueError):
        pass  # The text is too long for a path, or has a null character.
    try:
        return ExcessExpectation(" ".join(text.split()), growth=parse_function(text))
    except GrowthSyntaxError as cause:
        message = f"--expect is neither a growth nor an existing path: {cause}"
        raise UsageError(message, hint=_EXAMPLES) from None
