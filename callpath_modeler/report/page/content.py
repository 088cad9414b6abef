"""What a page is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from callpath_modeler.analysis.expectations.check import Check
from callpath_modeler.analysis.forecast import Forecast
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.analysis.requirements import Requirements
from callpath_modeler.diagnostics import Finding
from callpath_modeler.fingerprints import Fingerprint
from callpath_modeler.report.invocation import Invocation


@dataclass(frozen=True, slots=True, eq=False)
class Provenance:
    """How a page was made. It has no date: of the same inputs, pages are the same.

    Attributes
    ----------
    command : that makes it again
    listing : command that lists all call paths
    invocation : asks other commands for the same
    versions : of programs, by name
    inputs : the files that were read
    configuration : the files that options come from
    """

    command: str
    listing: str
    invocation: Invocation
    versions: Sequence[tuple[str, str]]
    inputs: Sequence[Fingerprint]
    configuration: Sequence[Fingerprint] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PageContent:
    """What there is to tell.

    Attributes
    ----------
    ranking : the answer
    forecast : the same in views; None for a metric that does not add up over call paths
    check : what came of expectations; None = none were given
    findings : what a user should know
    making : how it came about
    top : so many call paths have cards
    needs : what these need beside time, by row, where that is known
    """

    ranking: Ranking
    forecast: Forecast | None
    check: Check | None
    findings: Sequence[Finding]
    making: Provenance
    top: int
    needs: Mapping[int, Requirements] = field(default_factory=dict)
