"""Parts of a measured program that an experiment leaves out, for the words of verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from callpath_modeler.printable import printable
from callpath_modeler.units import counted, percent

WHOLE, REST = "whole program", "rest of the program"
"""Names of all call paths together, and of those that omissions leave."""


class OmissionKind(StrEnum):
    """Kinds of omitted parts, named after their options.

    Attributes
    ----------
    CALL_PATHS : call paths that ``--ignore`` excludes
    FOLDED : call paths that ``--hide`` folds into their callers, so that no cost is left out
    RUNS : runs that ``--where`` excludes
    PROCESSES : processes that ``--ranks`` excludes
    PROFILES : profiles that the list of runs in their directory does not name
    UNSELECTED : call paths that ``--select`` does not name
    CHEAP : call paths for which a record of a history has no room
    CONFIGURED : nothing is left out, but an untrusted file beside the profiles describes them
    NOT_CONFIGURED : keys of such a file that are not used
    """

    CALL_PATHS = "ignore"
    FOLDED = "hide"
    RUNS = "where"
    PROCESSES = "ranks"
    PROFILES = "manifest"
    UNSELECTED = "select"
    CHEAP = "cheap"
    CONFIGURED = "configured"
    NOT_CONFIGURED = "not-configured"


_OF_CALL_PATHS = frozenset({OmissionKind.CALL_PATHS, OmissionKind.UNSELECTED, OmissionKind.CHEAP})
_OF_FILES = frozenset({OmissionKind.CONFIGURED, OmissionKind.NOT_CONFIGURED})
_PARTIAL = _OF_CALL_PATHS | {OmissionKind.PROCESSES}


@dataclass(frozen=True, slots=True)
class Omission:
    """One part that is left out.

    Attributes
    ----------
    kind : what is left out
    count : number of call paths, runs or profiles; 0 = not known
    whole : number of all runs or profiles; 0 = not known
    share : share of the cost of all runs; None = not known
    metric : the metric of the cost
    condition : the condition on the processes that are left, or the keys and the name of a file;
        "" = neither
    """

    kind: OmissionKind
    count: int = 0
    whole: int = 0
    share: float | None = None
    metric: str = ""
    condition: str = ""

    def __post_init__(self) -> None:
        if self.count < 0 or self.whole < 0:
            raise ValueError("an omission of fewer than no call paths or runs")
        if self.share is not None and not -0.001 <= self.share <= 1.001:
            raise ValueError("an omission of more than the whole cost")
        for name in ("metric", "condition"):
            object.__setattr__(self, name, printable(getattr(self, name)))

    @property
    def text(self) -> str:
        """The omission in words: ``without 16 call paths, 72 % of the time``."""
        part = "" if self.share is None else f", {percent(self.share)} of the {self.metric}"
        if self.kind in _OF_FILES:
            is_used = self.kind is OmissionKind.CONFIGURED
            return f"{'with' if is_used else 'without'} {self.condition}"
        if self.kind is OmissionKind.PROCESSES:
            return f"with processes of {self.condition} only"
        if self.kind is OmissionKind.FOLDED:
            return f"with {counted(self.count, 'call path')} folded into callers{part}"
        if self.kind in _OF_CALL_PATHS:
            return f"without {counted(self.count, 'call path')}{part}"
        what = "run" if self.kind is OmissionKind.RUNS else "profile"
        return f"without {self.count} of {counted(self.whole, what)}{part}"


def with_omission(known: Sequence[Omission], new: Omission) -> tuple[Omission, ...]:
    """Add an omission whose share refers to the cost that the known ones leave."""
    if new.kind in _OF_FILES:
        return (*(each for each in known if each != new), new)
    same = next((each for each in known if each.kind is new.kind), None)
    if same is None or new.kind is OmissionKind.PROCESSES:
        return (*known, new)
    share = None
    if same.share is not None and new.share is not None and same.metric == new.metric:
        share = 1 - (1 - same.share) * (1 - new.share)
    joint = replace(
        new, count=same.count + new.count, whole=max(same.whole, new.whole), share=share
    )
    return tuple(joint if each is same else each for each in known)


def share_of(part: float, total: float) -> float | None:
    """Return the share of a cost; None = the cost has no shares."""
    return min(max(part / total, 0.0), 1.0) if total > 0 and math.isfinite(part) else None


def is_partial(omissions: Iterable[Omission]) -> bool:
    """Return whether any cost of the program is missing, so that no total is of all of it."""
    return any(each.kind in _PARTIAL for each in omissions)


def omissions_text(omissions: Iterable[Omission]) -> str:
    """Return all omissions in words; "" = nothing is left out."""
    return ", ".join(dict.fromkeys(each.text for each in omissions))


def omissions_json(omissions: Iterable[Omission]) -> list[dict[str, object]]:
    """Return all omissions as JSON fields."""
    return [
        {
            "kind": str(each.kind),
            "count": each.count,
            "whole": each.whole or None,
            "share": each.share,
            "metric": each.metric or None,
            "message": each.text,
        }
        for each in omissions
    ]
