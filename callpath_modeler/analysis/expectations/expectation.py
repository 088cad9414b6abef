"""Expectations: the schema of their files, and their parsed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import msgspec

from callpath_modeler.errors import CONFIDENCE, InputError
from callpath_modeler.modeling import Growth
from callpath_modeler.modeling.expected_growth import DeviationLimits
from callpath_modeler.support.expression import Comparison
from callpath_modeler.support.toml import Place, TomlFile, TomlFormat

SCHEMA = 1
"""Version of the format."""

Unsure = Literal["pass", "warn", "fail"]
"""Effect of an expectation that the data do not decide."""


class JudgementSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys of expectations and rules about their evaluation."""

    metric: str | None = None
    target: dict[str, Any] | None = None
    confidence: float | None = None
    unsure: Unsure | None = None
    inclusive: bool | None = None


class Defaults(JudgementSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys of ``[defaults]``; every expectation may override them."""

    at_least: int | None = None
    deviation: str | None = None


class ExpectEntry(Defaults, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[expect]]``."""

    name: str | None = None
    callpath: str | None = None
    others: bool = False
    growth: str | None = None
    value: str | None = None
    share: str | None = None
    excess: str | None = None
    loss: str | None = None
    bound: str | None = None
    control: str | None = None
    xfail: str | None = None
    note: str | None = None
    source: str | None = None


class RuleEntry(JudgementSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[rule]]``."""

    rule: str
    name: str | None = None
    control: str | None = None
    xfail: str | None = None
    note: str | None = None
    source: str | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole file."""

    schema: int
    target: dict[str, Any] | None = None
    defaults: Defaults = msgspec.field(default_factory=Defaults)
    numbers: dict[str, Any] = {}
    expect: list[ExpectEntry] = []
    rule: list[RuleEntry] = []


EXAMPLES = {
    "schema": "schema = 1",
    "target": "target = { p = 4096 }",
    "numbers": "[numbers], then processes_per_node = 48",
    "defaults": "[defaults], then confidence = 0.95",
    "expect": "[[expect]], then the keys of one expectation",
    "rule": "[[rule]], then rule = '{**/MPI_Allreduce} <= {**/MPI_Reduce} + {**/MPI_Bcast}'",
    "name": 'name = "halo exchange stays local"',
    "callpath": 'callpath = "main/**/MPI_*"',
    "others": "others = true",
    "metric": 'metric = "time"',
    "growth": 'growth = "<= O(log p)"',
    "deviation": 'deviation = "O(log p)"',
    "value": 'value = "<= 2.5 s"',
    "share": 'share = "<= 5 %"',
    "excess": 'excess = "<= 10 %"',
    "loss": 'loss = "<= 1 s"',
    "bound": 'bound = "bytes * processes_per_node <= 24 GB"',
    "confidence": "confidence = 0.95",
    "unsure": 'unsure = "fail"',
    "at_least": "at_least = 1",
    "inclusive": "inclusive = true",
    "control": 'control = "the name of another expectation"',
    "xfail": 'xfail = "issue 812: not merged yet"',
    "note": 'note = "why this is expected"',
    "source": 'source = "where it comes from"',
}
"""An example of every key."""


_FORMAT = TomlFormat(Document, EXAMPLES, InputError)
"""TOML format of expectation files."""


def parse(content: bytes | str, path: str) -> TomlFile[Document]:
    """Return the content of an expectation file.

    Raises
    ------
    InputError
        If it is not valid TOML, or has an unknown key or a value of a wrong type; the message
        begins with the line.
    """
    written = _FORMAT.parse(content, path)
    schema = written.document.schema
    if schema != SCHEMA:
        written.refuse(("schema",), f"schema {schema} is not known", f"schema = {SCHEMA}")
    return written


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
