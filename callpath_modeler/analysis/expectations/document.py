"""Schema of expectation files."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from callpath_modeler.errors import InputError
from callpath_modeler.toml import TomlFile, TomlFormat

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
