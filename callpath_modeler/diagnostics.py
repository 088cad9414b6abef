"""Findings: what a user should know about the data and the models, numbered and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from callpath_modeler.printable import printable


@dataclass(frozen=True, slots=True)
class Kind:
    """One numbered kind of finding.

    Attributes
    ----------
    title : what was found, in general terms
    remedy : what the user can do about it
    """

    title: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a user should know.

    Attributes
    ----------
    code : key into `KINDS`, e.g. ``"CPM102"``
    subject : the file, run, metric or call path it is about
    message : what was found there, in one line
    count : how many items (rows, call paths, values) it stands for
    """

    code: str
    subject: str
    message: str
    count: int = 1

    def __post_init__(self) -> None:
        # Names of files and call paths may hold anything.
        for name in ("subject", "message"):
            text: str = getattr(self, name)
            if not text.isprintable():
                object.__setattr__(self, name, printable(text))

    @property
    def remedy(self) -> str:
        """Return what to do about it."""
        return KINDS[self.code].remedy


# 1xx: what was read.  2xx: what was modelled.  3xx: what was compared.
KINDS: dict[str, Kind] = {
    "CPM101": Kind("profile left out", "measure the run again or take it out of the list"),
    "CPM102": Kind(
        "name and profile disagree on a parameter",
        "rename the run, or say which one counts with --param p=name or --param p=processes",
    ),
    "CPM103": Kind("data end early", "missing rows count as zero; measure the run again"),
    "CPM104": Kind("counter ran below zero", "such values count as zero; check the counter"),
    "CPM105": Kind("negative exclusive values", "they count as zero; check the measurement"),
    "CPM106": Kind("call tree cut at the depth limit", "raise SCOREP_PROFILING_MAX_CALLPATH_DEPTH"),
    "CPM107": Kind(
        "metrics not readable", "for derived metrics store values with `cube_remap2 -d`"
    ),
    "CPM108": Kind(
        "columns are not single threads", "measure with SCOREP_PROFILING_FORMAT=default"
    ),
    "CPM109": Kind("task subtree detached", "its time is already part of the regions that ran it"),
    "CPM110": Kind(
        "accelerator locations left out", "their time is not part of the CPU statistics"
    ),
    "CPM111": Kind("profile definitions repaired", "the XML was not well-formed; check the names"),
    "CPM112": Kind(
        "call paths of one name added", "nothing to do, unless the two should be told apart"
    ),
    "CPM113": Kind(
        "call paths missing at some points",
        "they are modelled where they occur; --where leaves out the other scales",
    ),
    "CPM114": Kind(
        "cost not conserved", "copy the profile again; if that does not help, report it"
    ),
    "CPM115": Kind(
        "listed times add up to more than the time of the program",
        "each is the maximum over processes or threads, and different ones are slow in different "
        "call paths; --locations mean lists means over processes",
    ),
    "CPM116": Kind("another parameter varies along", "read the models as functions of both"),
    "CPM117": Kind("non-finite values", "they count as missing"),
    "CPM118": Kind("two metrics of one name", "the first is used; rename one"),
    "CPM119": Kind("metric missing in some runs", "measure all runs with the same metrics"),
    "CPM120": Kind("iterations were clustered", "set SCOREP_PROFILING_ENABLE_CLUSTERING=false"),
    "CPM121": Kind("profile of another program", "rank one program at a time"),
    "CPM122": Kind("same profile given twice", "take one of the two out of the list"),
    "CPM123": Kind("functions of one name told apart by order", "build all runs from one source"),
    "CPM124": Kind(
        "archive headers do not match their members",
        "what lies between them was read; check it, or measure again",
    ),
    "CPM125": Kind("columns of a table left out", "put what matters into parameters or call paths"),
    "CPM126": Kind(
        "only sums over processes are stored",
        "keep the metric-db files, or run hpcprof of HPCToolkit 2022.10 or later",
    ),
    "CPM127": Kind("regions never left", "they end with the trace; let the run end by itself"),
    "CPM128": Kind(
        "calls that do not nest",
        "a call without return ends with its caller, and a return without call does not count; "
        "check the instrumentation by hand",
    ),
    "CPM129": Kind(
        "measurement paused", "raise SCOREP_TOTAL_MEMORY if the trace was flushed in between"
    ),
    "CPM130": Kind("repetitions were summarised", "export the experiment with its values kept"),
    "CPM131": Kind(
        "runs differ in more than their scale",
        "compare like with like: leave the odd runs out, with --where or of the list",
    ),
    "CPM132": Kind("values of some processes only", "give the profile of all processes"),
    "CPM133": Kind(
        "communication outside any call path", "it is not counted; instrument main at least"
    ),
    "CPM134": Kind(
        "too few repetitions to know means to 5 %", "add them, or measure on a quieter machine"
    ),
    "CPM135": Kind(
        "times look inclusive and are read as such",
        "if they are exclusive, call them time (exc)",
    ),
    "CPM136": Kind(
        "runs that were slower as a whole", "repeat them, or leave them out: models bend with them"
    ),
    "CPM137": Kind(
        "one of two call paths in each run",
        "if it is one function that was renamed, build all runs from one source",
    ),
    "CPM138": Kind(
        "communication left out", "what is told is the rest; run it only if that is all you need"
    ),
    "CPM139": Kind("call paths left out as asked", "without --ignore they count"),
    "CPM140": Kind("call paths counted as their callers", "without --hide they stand alone"),
    "CPM141": Kind(
        "a number in names is not used",
        "if it is a parameter, give --param NAME=name (for a column: a manifest or another table); "
        "--param NAME=none confirms that it is none",
    ),
    "CPM142": Kind(
        "a number in names is taken for a parameter",
        "if it is none, give --param NAME=none, or --name PATTERN with braces around each number",
    ),
    "CPM143": Kind(
        "runs of one point have different inputs",
        "choose one input with --where, or they count as repetitions of each other",
    ),
    "CPM155": Kind(
        "times of functions contain each other, so there is no total",
        "name the callers: main->solve rather than solve; if times are exclusive, call them "
        "time (exc)",
    ),
    "CPM151": Kind(
        "call paths cut at a depth", "raise TAU_CALLPATH_DEPTH above the depth of the program"
    ),
    "CPM152": Kind(
        "timers that repeat the time of others left out", "none: every time counts once"
    ),
    "CPM160": Kind(
        "time without a unit",
        "if the values are no seconds, say what they are, e.g. --unit time=us",
    ),
    "CPM161": Kind(
        "number of processes counted from sums and averages",
        "record mpi.world.size: enable the mpi service, or Adiak's jobsize",
    ),
    "CPM162": Kind(
        "stacks with frames that have no name",
        "build with symbols, so that the profiler finds the names of functions",
    ),
    "CPM163": Kind("two counts for each stack", "model the second with -m samples_2"),
    "CPM164": Kind(
        "files that no reader recognises",
        "give one of them alone to learn why, or move them out of the directory",
    ),
    "CPM165": Kind(
        "texts taken as call paths",
        "call the column of call paths callpath; texts about runs are no part of them then",
    ),
    "CPM201": Kind("too few points for a model", "measure at more scales"),
    "CPM202": Kind(
        "outside the model class", "measure more scales; read the band, not the formula"
    ),
    "CPM203": Kind("too noisy for a model", "repeat the measurements"),
    "CPM204": Kind("fewer than five points", "five scales or more make a model believable"),
    "CPM205": Kind("target far beyond the data", "measure a larger scale before you act on this"),
    "CPM206": Kind("parameter held", "say where: --at NAME=VALUE,... with all of them"),
    "CPM207": Kind(
        "parameters varied one at a time", "measure one more run, with all of them at their largest"
    ),
    "CPM208": Kind(
        "one scale unlike all others",
        "measure it again, with the machine and the processes per node of the others; "
        "it counts little",
    ),
    "CPM301": Kind(
        "message sizes not known",
        "they are taken to be equal; give them as a parameter, e.g. a column size",
    ),
    "CPM302": Kind(
        "calls of a program compared",
        "they differ in size, and wait for late processes: measure functions with a benchmark",
    ),
}


class Notices:
    """Findings about one subject; what is found again counts once."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._found: dict[tuple[str, str], Finding] = {}

    def findings(self) -> list[Finding]:
        """Return all findings so far, in order of their codes."""
        return sorted(self._found.values(), key=lambda finding: finding.code)

    def note(self, code: str, message: str, count: int = 1, about: str = "") -> None:
        """Keep a finding; a later one of the same code about the same thing replaces it."""
        self._found[code, about] = Finding(code, self._subject, message, count)


_EACH_COUNTS = frozenset({"CPM101"})


def count_by_code(findings: Iterable[Finding]) -> dict[str, int]:
    """Return how many items each code stands for, in order of code."""
    counts: Counter[str] = Counter()
    for finding in findings:
        counts[finding.code] += finding.count
    return dict(sorted(counts.items()))


def by_kind(findings: Sequence[Finding]) -> list[tuple[Finding, int]]:
    """Return one finding of each kind, the first, with how many items all of the kind stand for.

    What was left out of the answer stands by itself.
    """
    alone = [(finding, 1) for finding in findings if finding.code in _EACH_COUNTS]
    counts = count_by_code(findings)
    first = {finding.code: finding for finding in reversed(findings)}
    kinds = ((first[code], count) for code, count in counts.items())
    return alone + [each for each in kinds if each[0].code not in _EACH_COUNTS]


def summarise(findings: Sequence[Finding], limit: int | None = None) -> list[str]:
    """Return one line per kind: code, count, what was found first, and the remedy.

    What was left out of the answer is named one by one.

    Parameters
    ----------
    limit : most lines to return; the rest is counted in one more
    """
    lines = [_line(finding, count) for finding, count in by_kind(findings)]
    if limit is not None and len(lines) > limit:
        more = len(lines) - limit
        lines[limit:] = [f"... and {more} more: cpmodel -v shows all"]
    return lines


def _line(finding: Finding, count: int) -> str:
    times = f" x{count}" if count > 1 else ""
    what = f"{KINDS[finding.code].title}: {finding.subject}: {finding.message}"
    return f"{finding.code}{times} {what} -> {finding.remedy}"
