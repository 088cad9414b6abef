"""The content of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.causes import Cause
from callpath_modeler.analysis.expectations.check import Check
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.diagnostics import Finding
from callpath_modeler.fingerprints import Fingerprint
from callpath_modeler.process_profile import ProcessProfile
from callpath_modeler.report.efficiency import EfficiencyView
from callpath_modeler.report.invocation import Invocation


@dataclass(frozen=True, slots=True, eq=False)
class Provenance:
    """The origin of a page, without a date: the same inputs give the same page.

    Attributes
    ----------
    command : the command that repeats the page
    listing : the command that lists all call paths
    invocation : command lines for the same experiment
    versions : versions of programs, by name
    inputs : the files that were read
    configuration : the configuration files
    """

    command: str
    listing: str
    invocation: Invocation
    versions: Sequence[tuple[str, str]]
    inputs: Sequence[Fingerprint]
    configuration: Sequence[Fingerprint] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PageContent:
    """The content of a page.

    Attributes
    ----------
    ranking : the ranking
    forecast : the same predictions in views; None for a metric that does not add up over call paths
    check : results of expectations; None = no expectations
    findings : data quality findings
    making : the origin of the page
    top : number of call paths with cards
    efficiency : factors of parallel efficiency, or the reason why there are none; "" = no section
    causes : why these call paths grow, by row, where that is known
    processes : values of the processes at the largest scale, by row, where they are known
    no_processes : reason why there are no values of processes; "" = there are some, or none are
        wanted
    """

    ranking: Ranking
    forecast: Answer | None
    check: Check | None
    findings: Sequence[Finding]
    making: Provenance
    top: int
    efficiency: EfficiencyView | str = ""
    causes: Mapping[int, Cause] = field(default_factory=dict)
    processes: Mapping[int, ProcessProfile] = field(default_factory=dict)
    no_processes: str = ""
