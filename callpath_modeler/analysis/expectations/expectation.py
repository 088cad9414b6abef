"""Expectations as the other modules see them: every text understood, every default in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from callpath_modeler.analysis.expectations.document import Document, Unsure
from callpath_modeler.analysis.expectations.expression import Comparison
from callpath_modeler.modeling import Growth
from callpath_modeler.modeling.validation import DeviationLimits
from callpath_modeler.toml.format import TomlFile
from callpath_modeler.toml.positions import Place


class CriterionKind(StrEnum):
    """Numbers that can be bounded at a target."""

    VALUE = "value"
    SHARE = "share"  # of the whole program
    EXCESS = "excess"  # excess work between the smallest scale and the target
    LOSS = "loss"  # cost per process beyond the ideal


@dataclass(frozen=True, slots=True)
class GrowthLimit:
    """How fast something may grow.

    Attributes
    ----------
    text : as the user wrote it
    expected : the growth that is written there
    limits : what is accepted
    parameter : in which it is written; None = it names none
    """

    text: str
    expected: Growth
    limits: DeviationLimits
    parameter: str | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """What a number at the target is to stay below or above.

    Attributes
    ----------
    text : as the user wrote it
    kind : which number
    at_most : True for ``<=``, False for ``>=``
    amount : in `unit`
    unit : SI base unit
    """

    text: str
    kind: CriterionKind
    at_most: bool
    amount: float
    unit: str


@dataclass(frozen=True, slots=True)
class RuleText:
    """What functions are to cost, held against each other.

    Attributes
    ----------
    comparison : of what their call paths cost
    """

    comparison: Comparison

    @property
    def text(self) -> str:
        """As the user wrote it."""
        return self.comparison.text


Criterion = GrowthLimit | Bound | Comparison | RuleText


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation.

    Attributes
    ----------
    name : unique in its file
    place : where it stands there
    criteria : all of them are expected
    callpath : pattern; None = the whole program
    others : only of call paths that no other expectation names
    inclusive : of call paths with all that they call
    metric : None = the run time
    target : values of parameters by name; empty = the file names none
    at_least : how many call paths the pattern is to match
    confidence : of the verdict
    unsure : what to make of it where the data do not tell
    control : name of an expectation that fails along where the machine is to blame
    xfail : why it is known to fail
    note, source : for people
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
    confidence: float = 0.95
    unsure: Unsure = "warn"
    control: str | None = None
    xfail: str | None = None
    note: str | None = None
    source: str | None = None

    @property
    def parameter(self) -> str | None:
        """The parameter that its growth is written in."""
        named = (one.parameter for one in self.criteria if isinstance(one, GrowthLimit))
        return next(named, None)


@dataclass(frozen=True, slots=True)
class Expectations:
    """All of a file.

    Attributes
    ----------
    written : the file
    expectations : in its order
    numbers : by name, each with its unit
    parameter : the main one of those that targets name; None = there are no targets
    """

    written: TomlFile[Document]
    expectations: tuple[Expectation, ...]
    numbers: Mapping[str, tuple[float, str]]
    parameter: str | None
