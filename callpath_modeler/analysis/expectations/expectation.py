"""Expectations with all texts parsed and all defaults applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from callpath_modeler.analysis.expectations.document import Document, Unsure
from callpath_modeler.argument_checks import CONFIDENCE
from callpath_modeler.expression import Comparison
from callpath_modeler.modeling import Growth
from callpath_modeler.modeling.validation import DeviationLimits
from callpath_modeler.toml import Place, TomlFile


class CriterionKind(StrEnum):
    """Numbers at a target that can have a bound."""

    VALUE = "value"
    SHARE = "share"  # of the whole program
    EXCESS = "excess"  # excess work between the smallest scale and the target
    LOSS = "loss"  # cost per process beyond the ideal


@dataclass(frozen=True, slots=True)
class GrowthLimit:
    """Limit of a growth.

    Attributes
    ----------
    text : the text of the file
    expected : the growth in that text
    limits : range of accepted growths
    parameter : parameter of the growth; None = the text names none
    """

    text: str
    expected: Growth
    limits: DeviationLimits
    parameter: str | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """Bound of a number at the target.

    Attributes
    ----------
    text : the text of the file
    kind : the number
    at_most : True for ``<=``, False for ``>=``
    amount : the bound, in `unit`
    unit : SI base unit
    """

    text: str
    kind: CriterionKind
    at_most: bool
    amount: float
    unit: str


@dataclass(frozen=True, slots=True)
class RuleText:
    """Rule about the costs of several functions.

    Attributes
    ----------
    comparison : comparison of the costs of their call paths
    """

    comparison: Comparison

    @property
    def text(self) -> str:
        """The text of the file."""
        return self.comparison.text


Criterion = GrowthLimit | Bound | Comparison | RuleText


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation.

    Attributes
    ----------
    name : name, unique in the file
    place : position in the file
    criteria : growth limits and bounds; all of them are expected
    callpath : pattern; None = the whole program
    others : True = only call paths that no other expectation selects
    inclusive : True = inclusive values
    metric : name of the metric; None = the first duration
    target : values of parameters by name; empty = the file has no target
    at_least : smallest number of call paths that the pattern must select
    confidence : confidence of the verdict
    unsure : effect if the data do not decide
    control : name of an expectation that fails as well if the machine is the cause
    xfail : reason of a known failure
    note, source : texts for people
    """

    name: str
    place: Place
    criteria: tuple[Criterion, ...]
    callpath: str | None = None
    others: bool = False
    inclusive: bool = False
    metric: str | None = None
    target: Mapping[str, float] = field(default_factory=dict)
    at_least: int = 1
    confidence: float = CONFIDENCE
    unsure: Unsure = "warn"
    control: str | None = None
    xfail: str | None = None
    note: str | None = None
    source: str | None = None

    @property
    def parameter(self) -> str | None:
        """Parameter of the growth limits."""
        named = (one.parameter for one in self.criteria if isinstance(one, GrowthLimit))
        return next(named, None)


@dataclass(frozen=True, slots=True)
class Expectations:
    """All expectations of a file.

    Attributes
    ----------
    written : the file
    expectations : in the order of the file
    numbers : numbers by name, each with its unit
    parameter : main parameter of the targets; None = there are no targets
    """

    written: TomlFile[Document]
    expectations: tuple[Expectation, ...]
    numbers: Mapping[str, tuple[float, str]]
    parameter: str | None
