"""Numbered and counted findings about data, models and comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from callpath_modeler.diagnostics.findings_of_profiles import OF_PROFILES, FindingKind
from callpath_modeler.diagnostics.findings_of_series import OF_MODELS, OF_SERIES
from callpath_modeler.printable import printable, shortened

_LONGEST = 1500
"""Maximum number of characters of the text of a finding."""


MODELS = "models"
"""Subject of findings about the models of all call paths, whose lines do not repeat it."""


class Finding(Struct, frozen=True):
    """A fact that the user should know.

    Attributes
    ----------
    code : key into `KINDS`, e.g. ``"CPM102"``
    subject : the file, run, metric or call path
    message : the facts, in one line
    count : number of items, such as rows, call paths or values
    """

    code: str
    subject: str
    message: str
    count: int = 1

    def __post_init__(self) -> None:
        # Names of files and call paths may contain any characters.
        for name in ("subject", "message"):
            text: str = getattr(self, name)
            if not text.isprintable() or len(text) > _LONGEST:
                structs.force_setattr(self, name, printable(shortened(text, _LONGEST)))

    @property
    def remedy(self) -> str:
        """Action for the user."""
        return KINDS[self.code].remedy


# 1xx: profiles and series.  2xx: models.  3xx: comparisons.
KINDS: dict[str, FindingKind] = dict(sorted({**OF_PROFILES, **OF_SERIES, **OF_MODELS}.items()))

_MOST_INFLUENTIAL = (
    "CPM184", "CPM181", "CPM183", "CPM101", "CPM180", "CPM166", "CPM121", "CPM164",
    "CPM165", "CPM167", "CPM168", "CPM169", "CPM149",
    "CPM160", "CPM161", "CPM156", "CPM157", "CPM143", "CPM142", "CPM141", "CPM102",
    "CPM131", "CPM155", "CPM135", "CPM103", "CPM114", "CPM118", "CPM117", "CPM104",
    "CPM105", "CPM132", "CPM215", "CPM208", "CPM210", "CPM209", "CPM205", "CPM214",
    "CPM207", "CPM206", "CPM202", "CPM201", "CPM116", "CPM204", "CPM185", "CPM136",
    "CPM134",
    "CPM115",
)  # fmt: skip
"""Kinds in order of their influence on a result: its data, its meaning, its uncertainty."""

_REQUESTED = ("CPM139", "CPM140", "CPM189")
"""Kinds that repeat a request of the user; they come last."""


class Notices:
    """Findings about one subject, without duplicates."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._found: dict[tuple[str, str], Finding] = {}

    def findings(self) -> list[Finding]:
        """Return all findings so far, in order of their codes."""
        return sorted(self._found.values(), key=lambda finding: finding.code)

    def note(self, code: str, message: str, count: int = 1, about: str = "") -> None:
        """Add a finding; it replaces an earlier one with the same code and `about`."""
        self._found[code, about] = Finding(code, self._subject, message, count)


_EACH_COUNTS = frozenset({"CPM101"})


def count_by_code(findings: Iterable[Finding]) -> dict[str, int]:
    """Return the number of items for each code, in order of codes."""
    counts: Counter[str] = Counter()
    for finding in findings:
        counts[finding.code] += finding.count
    return dict(sorted(counts.items()))


def by_kind(findings: Sequence[Finding]) -> list[tuple[Finding, int]]:
    """Return the first finding of each kind and the number of all its items, by influence.

    Each unused profile has its own entry.
    """
    alone = [(finding, 1) for finding in findings if finding.code in _EACH_COUNTS]
    counts = count_by_code(findings)
    first = {finding.code: finding for finding in reversed(findings)}
    kinds = [(first[code], count) for code, count in counts.items() if code not in _EACH_COUNTS]
    return sorted(alone + kinds, key=lambda each: _influence(each[0].code))


def _influence(code: str) -> int:
    """Return the rank of a kind; the most influential kinds have the smallest rank."""
    if code in _MOST_INFLUENTIAL:
        return _MOST_INFLUENTIAL.index(code)
    return len(_MOST_INFLUENTIAL) + (code in _REQUESTED)


def summarise(
    findings: Sequence[Finding], limit: int | None = None, listing: str = "cpmodel -v ..."
) -> list[str]:
    """Return one line per kind, the most influential first: what happened, why, what to do.

    Each unused profile has its own line.

    Parameters
    ----------
    findings : the findings
    limit : maximum number of lines; one more line counts the others
    listing : the command that lists all findings
    """
    lines = [_line(finding, count) for finding, count in by_kind(findings)]
    if limit is not None and len(lines) > limit:
        more = len(lines) - limit
        notes = "note" if more == 1 else "notes"
        lines[limit:] = [f"{more} more {notes}: {listing}"]
    return lines


def in_short(findings: Sequence[Finding], limit: int, listing: str) -> list[str]:
    """Return one short line per kind, and the command that lists the findings in full.

    Parameters
    ----------
    findings : the findings
    limit : maximum number of lines
    listing : the command that lists all findings
    """
    kinds = by_kind(findings)
    lines = []
    for finding, count in kinds[:limit]:
        times = f" x{count}" if count > 1 else ""
        about = f": {finding.subject}" if finding.code in _EACH_COUNTS else ""
        lines.append(f"{KINDS[finding.code].what}{about}. ({finding.code}{times})")
    if lines:
        notes = "note" if len(kinds) == 1 else "notes"
        lines.append(f"{len(kinds)} {notes} in full: {listing}")
    return lines


def in_full(findings: Sequence[Finding]) -> list[str]:
    """Return one line per finding, the most influential kinds first."""
    ordered = sorted(findings, key=lambda finding: (_influence(finding.code), finding.code))
    return [_line(finding, finding.count) for finding in ordered]


def _line(finding: Finding, count: int) -> str:
    kind = KINDS[finding.code]
    times = f" x{count}" if count > 1 else ""
    stop = "" if finding.message.endswith((".", "!", "?")) else "."
    about = "" if finding.subject == MODELS else f"{finding.subject}: "
    what = f"{kind.what}: {about}{finding.message}{stop}"
    return f"{what} {kind.why} {kind.remedy} ({finding.code}{times})"
