"""Meanings of the titles of table columns: words of each role."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from callpath_modeler.profile.runs import worker_parameter
from callpath_modeler.profile.schema import base_unit
from callpath_modeler.readers.paths import is_measured, is_processes, is_rate, read_title
from callpath_modeler.readers.tokens import REPETITIONS, NameWord, word_of
from cpmodel_tables.notations import TIMES

CALL_PATHS = ("callpath", "call path", "call tree path", "callstack", "call stack")
REGIONS = ("path", "region", "function", "routine", "kernel", "name", "node", "call site", "stack")
LIKE_REGIONS = frozenset(
    {*REGIONS, "timer", "subroutine", "procedure", "call", "variable", "kernel name", "operation",
     "function name", "phase", "section", "routine name", "region name", "collective", "task",
     "stage", "component", "module", "loop"}
)  # fmt: skip
"""Titles of texts that end a call path, which may begin in the columns before."""
METRICS = ("metric", "metric name", "counter")
VALUES = ("value", "val", "measurement", "measured", "result")
REPETITION_TITLES = (
    *sorted(REPETITIONS),
    "jube wp iteration",
    "repetitions",
    "iteration",
    "run id",
)
UNITS = ("unit", "units")
RUNS = ("file", "source", "profile", "file name", "filename", "directory", "run")
PROGRAMS = ("program", "application", "executable", "app", "benchmark", "code", "binary")
UNUSED = frozenset({"", "id", "nid", "index", "depth", "line", "unnamed 0"})
LOCATIONS = frozenset(
    {"rank", "process", "process id", "mpi rank", "thread", "thread id", "location", "location id"}
)
NOTES = frozenset(
    {"host", "hostname", "host name", "partition", "queue", "user", "date", "time stamp",
     "timestamp", "status", "state", "comment", "comments", "note", "notes", "job", "job id",
     "jobid", "job name", "jobname", "environment", "remark", "remarks", "description", "log",
     "logfile", "node list", "nodelist", "account", "units"}
)  # fmt: skip
"""Titles of texts about single runs, which do not tell programs apart."""
_IDENTITIES = frozenset(
    {"version", "release", "commit", "revision", "compiler", "machine", "cluster", "branch",
     "variant", "algorithm", "algo", "implementation", "impl", "case", "study", "config",
     "configuration"}
)  # fmt: skip
"""Titles of programs, inputs or machines, also if their names are numbers."""
COUNTS = frozenset(
    {"tasks", "threads", "nodes", "n threads", "n nodes", "num nodes", "num threads", "cores"}
)
"""Titles of counts that belong to a whole run, at any position in a table."""
_STAMPS = frozenset(
    {"start", "end", "begin", "stop", "finish", "start time", "end time", "stop time",
     "begin time", "finish time", "timestamp", "time stamp", "ts", "datetime", "date time",
     "started", "finished", "started at", "finished at", "ended", "ended at", "submit",
     "submit time", "start timestamp", "end timestamp", "matching timestamp", "epoch", "tstart",
     "tend", "t start", "t end", "start ns", "end ns", "start us", "end us"}
)  # fmt: skip
"""Titles of points in time."""
_TOTALS = frozenset(
    {
        "total",
        "wall",
        "walltime",
        "wallclock",
        "elapsed",
        "runtime",
        "real",
        "overall",
        "makespan",
        "laufzeit",
        "gesamt",
        "gesamtzeit",
        "duration",
    }
)
_TIMES = _TOTALS | {
    "time", "times", "t", "zeit", "temps", "tiempo", "tempo", "seconds", "secs", "sec", "latency"
}  # fmt: skip
_ACTIVITIES = frozenset(
    {"comp", "compute", "computation", "calc", "comm", "communication", "mpi", "io", "wait",
     "waiting", "sync", "barrier", "halo", "exchange", "init", "initialization", "setup", "solve",
     "assembly", "fft", "force", "forces", "pair", "neigh", "kspace", "output", "overhead", "other",
     "rest", "finalize", "idle", "transfer", "copy", "bond", "modify", "neighbor"}
)  # fmt: skip
"""Titles of parts of the run time, also without a unit."""
_UNITS = frozenset({"time", "times", "t", "s", "sec", "secs", "seconds", "ms", "us", "ns"})
"""Words that accompany the name of a part of the run time."""
_WHOLE_UNITS = frozenset({"minutes", "mins", "hours", "hrs", "milliseconds", "microseconds"})
"""Titles of times that name nothing but the unit."""
_OF_PROCESSORS = frozenset({"cpu", "core", "user", "sys", "system", "cputime", "process"})
_PARTIAL = frozenset(
    {
        "per",
        "avg",
        "average",
        "mean",
        "min",
        "max",
        "minimum",
        "maximum",
        "median",
        "std",
        "stddev",
        "stdev",
        "sd",
        "var",
        "iqr",
        "ci",
        "percent",
        "pct",
        "fraction",
        "ratio",
        "share",
        "step",
    }
)
_MODELS = frozenset(
    {"ideal", "expected", "theoretical", "linear", "perfect", "model", "predicted", "fit"}
)
_OF_MODELS = frozenset(
    {"time", "times", "t", "speedup", "speed", "up", "scaling", "efficiency", "seconds", "sec", "s",
     "ms", "us", "min", "h", "run", "total", "wall", "walltime", "elapsed", "runtime", "duration"}
)  # fmt: skip
"""Other words of titles of models; with further ones, ``linear solver`` is measured."""
_BRACKETS = re.compile(r"(?<!\s)\s*[\[(][^\[(\])]*[\])]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_MOST_TITLES = 256
"""Number of titles that are remembered: the tables of a series have the same titles."""


class Place(StrEnum):
    """Place of a column of values in a table without call paths."""

    TOTAL = "total"
    TIME = "time"
    PART = "part"
    OF_PROCESSORS = "time of processors"
    AVERAGE = "average"
    COUNT = "count"
    RATE = "rate"
    MODEL = "model"


@lru_cache(maxsize=_MOST_TITLES)
def plain(title: str) -> str:
    """Return a title in lower case, without unit and punctuation.

    >>> plain("Call_Path"), plain("value[s]"), plain("Thread ID")
    ('call path', 'value', 'thread id')
    """
    bare = re.sub(r"[\[(][^\[(\])]*[\])]", "", title)
    return " ".join(re.findall(r"[0-9a-z]+", bare.lower()))


@lru_cache(maxsize=_MOST_TITLES)
def scale_name(title: str) -> str | None:
    """Return the parameter that a title names, if it counts workers; None = it does not.

    Processes become ``p``; cores, GPUs, threads and nodes keep their kind.

    >>> [scale_name(title) for title in ("MPI ranks", "#cores", "No. of nodes", "tasks per node")]
    ['p', 'cores', 'nodes', None]
    >>> [scale_name(title) for title in ("MPI (s)", "CPU [%]", "Processes [#]")]
    [None, None, 'p']
    """
    if is_processes(title):
        return "p"
    if any(map(_is_unit, _BRACKETS.findall(title))):
        return None
    if worker_parameter([title]) is None:
        return "threads" if word_of(title) is NameWord.THREADS else None
    if worker_parameter([title, "p"]) == title or word_of(title) is NameWord.PROCESSES:
        # Of two names of one group, `worker_parameter` returns the first.
        return "p"
    words = re.findall(r"[^\W\d_]+", _CAMEL.sub(" ", _BRACKETS.sub("", title)))
    return title if len(words) < 2 and title.isidentifier() else (words or [title])[-1]


def _is_unit(bracket: str) -> bool:
    """Return whether a bracket states a unit of a measured quantity, as in ``MPI (s)``."""
    note = bracket.strip(" \t[]()").lower().rstrip(".")
    return note in TIMES or "%" in note or "/" in note or base_unit(note)[0] in {"s", "B", "W", "J"}


def is_identity(title: str) -> bool:
    """Return whether a title names programs, inputs or machines, even by numbers.

    >>> [is_identity(title) for title in ("Version", "solver", "size", "grid")]
    [True, False, False, False]
    """
    words = {*plain(title).split()}
    return bool(words) and words <= _IDENTITIES


def is_stamp(title: str) -> bool:
    """Return whether a title means a point in time.

    >>> [is_stamp(title) for title in ("Start (ns)", "Timestamp (ns)", "time", "start-up time")]
    [True, True, False, False]
    """
    return plain(title) in _STAMPS


@lru_cache(maxsize=_MOST_TITLES)
def is_cost(title: str) -> bool:
    """Return whether a title means a measured quantity, and less of it is better.

    >>> [is_cost(title) for title in ("Laufzeit", "time (min)", "t (h)", "ns/day", "grid")]
    [True, True, True, False, False]
    """
    words = {*plain(title).split()}
    is_known = is_measured(title) or bool(words & (_TIMES - {"t"})) or unit_of_time(title) != ""
    return is_known and not is_rate(title) and not is_stamp(title)


def unit_of_time(title: str) -> str:
    """Return the unit of time in the brackets of a title, or that is the title, or ``""``.

    >>> unit_of_time("Time Expended(ms.)"), unit_of_time("time [h]"), unit_of_time("grid [cells]")
    ('ms', 'h', '')
    >>> unit_of_time("Hours"), unit_of_time("node hours")
    ('hours', '')
    """
    if plain(title) in _WHOLE_UNITS:
        return plain(title)
    notes = (note.strip(" ()[]").lower().rstrip(".") for note in _BRACKETS.findall(title))
    return next((note for note in notes if note in TIMES and note not in {"m", "d"}), "")


@lru_cache(maxsize=_MOST_TITLES)
def place_of(title: str) -> Place:
    """Return the place of a column of values in a table without call paths.

    >>> [str(place_of(title)) for title in ("total (s)", "compute (s)", "Core t (s)", "Speedup")]
    ['total', 'part', 'time of processors', 'rate']
    """
    if is_model(title):
        return Place.MODEL
    if is_rate(title):
        return Place.RATE
    if is_activity(title):
        return Place.PART
    words = {*re.findall(r"[a-z]+", _CAMEL.sub(" ", plain(title)).lower())}
    return _place_of_cost(title, words) if is_cost(title) else Place.COUNT


def _place_of_cost(title: str, words: set[str]) -> Place:
    if _is_count(title, words):
        return Place.COUNT
    if words & _PARTIAL:
        return Place.AVERAGE
    if words & _OF_PROCESSORS:
        return Place.OF_PROCESSORS
    if plain(title) in _WHOLE_UNITS:
        return Place.TIME
    if words & (_TOTALS - {"duration"}) or {"run", "time"} <= words or {"solution"} <= words:
        return Place.TOTAL
    named = _BRACKETS.sub("", title)
    rest = (
        words - _TIMES - {"execution", "exec", "expended", "used", "in", "taken", "s", "ms", "us"}
    )
    return Place.TIME if not rest and named.strip() else Place.PART


def _is_count(title: str, words: set[str]) -> bool:
    if unit_of_time(title) or words & _TIMES:
        return False
    return read_title(title).unit != "s"


def is_model(title: str) -> bool:
    """Return whether a title means numbers of a model, which nobody measured.

    >>> [is_model(title) for title in ("ideal", "t_ideal", "Time (expected)", "linear solver (s)")]
    [True, True, True, False]
    """
    words = {*re.findall(r"[a-z]+", _CAMEL.sub(" ", title).lower())}
    return bool(words & _MODELS) and words <= _MODELS | _OF_MODELS


@lru_cache(maxsize=_MOST_TITLES)
def is_activity(title: str) -> bool:
    """Return whether a title names only a part of the run time, such as ``comm``.

    >>> [is_activity(title) for title in ("comm", "MPI", "halo exchange", "MPI ranks", "comm size")]
    [True, True, True, False, False]
    >>> [is_activity(title) for title in ("solve_ms", "t_io", "comm time", "time (ms)")]
    [True, True, True, False]
    """
    words = {*plain(title).split()} - _UNITS
    return bool(words) and words <= _ACTIVITIES


def may_name_a_case(word: str) -> bool:
    """Return whether a word of the title of a time has no known meaning, as ``old`` and ``gcc``.

    >>> [may_name_a_case(word) for word in ("old", "gcc", "total", "cpu", "max", "comm")]
    [True, True, False, False, False, False]
    """
    known = _TIMES | _OF_PROCESSORS | _PARTIAL | _MODELS | _ACTIVITIES
    return word.lower() not in known


def part_name(title: str) -> str:
    """Return the name of a part of the run time, from the title of its column.

    >>> part_name("compute (s)"), part_name("comm_time"), part_name("t_io"), part_name("FFT")
    ('compute', 'comm', 'io', 'FFT')
    """
    name = _BRACKETS.sub("", title).strip()
    words = [word for word in re.split(r"[\s_]+", name) if word]
    kept = [word for word in words if word.lower() not in {"time", "t", "s", "sec", "ms", "us"}]
    return "_".join(kept) if kept and len(kept) < len(words) else name
