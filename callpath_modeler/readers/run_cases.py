"""Cases of runs: words that tell runs apart, conditions on runs, and their origin.

Runs of one scale that differ in an input, an algorithm or a machine are different programs, and no
repetitions of each other. A word is one of a case if a word at its place recurs in several
runs, and if runs of one scale have several such words.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Protocol, TypeVar

from msgspec import Struct, structs

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.runs import Run, case_findings, names_a_case, of_case
from callpath_modeler.readers.parameters import FROM_PROFILE
from callpath_modeler.readers.profile_runs import ReadRun
from callpath_modeler.readers.tokens import (
    NameWord,
    NumberColumn,
    columns_of,
    different_names,
    kinds_of,
    without_identifiers,
    word_of,
)
from callpath_modeler.units import counted, decimal_of, is_number, setting_text

_OF_MACHINES = ("machine", "cluster")
_OF_BUILDS = ("compiler", "compilerversion", "Compiler Name", "Compiler Version", "mpi")
ENVIRONMENT = (*_OF_MACHINES, *_OF_BUILDS)
"""Keys of the metadata for the machine and the build."""
_ARGUMENTS = ("command line", "cmdline")
"""Keys of the metadata for the program and its arguments."""
_OTHERS = frozenset({*_OF_MACHINES, *_OF_BUILDS, *_ARGUMENTS, "program", "creator"})
_CHANCE = re.compile(
    r"date|time|host|user|path|output|file|log|pid|seed|version|launch", re.IGNORECASE
)
"""Keys of metadata that vary by chance, or with the place of the start."""
_MOST = 3
"""Maximum number of values in a finding."""
_ALL_NEW = 2
"""If more than this number of runs all differ in a value, they differ by chance."""


def provenance_findings(runs: Sequence[Run]) -> list[Finding]:
    """Return findings about differences between the runs of one series.

    Machines and compilers are compared between all runs. Arguments may depend on the scale, so they
    are compared among the repetitions of each point. The same holds for other metadata with
    recurring values.
    """
    findings = []
    for key in (*_OF_MACHINES, *_OF_BUILDS):
        told = _odd((run.metadata.get(key, ""), run) for run in runs)
        findings += [Finding("CPM131", key, told)] if told else []
    points: dict[tuple[float, ...], list[Run]] = {}
    for run in runs:
        points.setdefault(tuple(run.parameters.values()), []).append(run)
    for at in points.values():
        told = _odd((_arguments(run.metadata), run) for run in at)
        where = setting_text(at[0].parameters)
        findings += [Finding("CPM131", f"arguments at {where}", told)] if told else []
    return [*findings, *_inputs(runs, [*points.values()])]


def _inputs(runs: Sequence[Run], points: Sequence[Sequence[Run]]) -> list[Finding]:
    """Return findings about metadata with recurring values that differ within a point."""
    findings: list[Finding] = []
    cases: list[str] = []
    for key in dict.fromkeys(key for run in runs for key in run.metadata):
        if is_of_chance(key):
            continue
        count = Counter(run.metadata[key] for run in runs if key in run.metadata)
        if len(count) < 2 or 2 * len(count) > len(runs) or min(count.values()) < 2:
            continue
        mixed = sum(len({run.metadata.get(key) for run in of}) > 1 for of in points)
        if mixed and names_a_case(key) and not all(map(is_number, count)):
            cases.append(key)
        elif mixed:
            findings.append(_input(key, count, mixed, len(points)))
    return [*case_findings(cases, runs), *findings]


def _input(key: str, count: Counter[str], mixed: int, points: int) -> Finding:
    listed = ", ".join(
        f"{value} in {counted(number, 'run')}" for value, number in count.most_common(_MOST)
    )
    more = f", {len(count) - _MOST} more" if len(count) > _MOST else ""
    if all(is_number(value) for value in count):
        choice = f"--param '{key}=metadata:{key}' makes it a parameter"
    else:
        chosen = shell_word(f"{key}={count.most_common(1)[0][0]}")
        choice = f"choose with --where {chosen}, or rank each with --group-by {shell_word(key)}"
    return Finding("CPM143", key, f"{listed}{more}, at {mixed} of {points} points; {choice}")


def is_of_chance(key: str) -> bool:
    """Return whether an entry of the metadata varies by chance, or has a comparison of its own."""
    is_identifier = word_of(key) is NameWord.IDENTIFIER
    return key in _OTHERS or is_identifier or _CHANCE.search(key) is not None


def _arguments(metadata: Mapping[str, str]) -> str:
    """Return the arguments of the program, without its name; "" = not known."""
    for key in _ARGUMENTS:
        if key in metadata:
            words = metadata[key].strip("[]").replace(",", " ").split()
            return " ".join(words[1:]) or "none"
    return ""


def _odd(told: Iterable[tuple[str, Run]]) -> str:
    """Return the distinct values with their runs, the most frequent first; "" = all are equal."""
    first: dict[str, Run] = {}
    count: Counter[str] = Counter()
    for value, run in told:
        if value:
            first.setdefault(value, run)
            count[value] += 1
    # A value that differs in every run, such as a container name or a seed, means nothing.
    always_new = len(count) == sum(count.values()) > _ALL_NEW
    if len(count) < 2 or always_new:
        return ""
    parts = [
        f"{value} in {counted(number, 'run')} (first {first[value].source})"
        for value, number in count.most_common(_MOST)
    ]
    more = [f"{len(count) - _MOST} more"] if len(count) > _MOST else []
    return "; ".join([*parts, *more])


_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "==": operator.eq,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"([^<>=!]+)(>=|<=|!=|==|=|>|<)([^<>=!]+)")


class _Described(Protocol):
    @property
    def metadata(self) -> Mapping[str, str]: ...


class _Stating(_Described, Protocol):
    @property
    def stated(self) -> Mapping[str, float]: ...
    @property
    def cases(self) -> Sequence[str]: ...


_R = TypeVar("_R", bound=_Stating)


class RunCondition(Struct, frozen=True):
    """A condition on one parameter or on one entry of the metadata.

    Attributes
    ----------
    name : name of a parameter, or key of the metadata
    sign : comparison
    text : right-hand side; for text with ``=`` and ``!=``, it may contain ``*`` and ``?``
    """

    name: str
    sign: str
    text: str

    def as_text(self) -> str:
        """Return the condition as it was given."""
        return f"{self.name}{self.sign}{self.text}"

    def holds(self, value: str | float | None) -> bool:
        """Return whether a parameter or a text of the metadata meets the condition.

        Raises
        ------
        UsageError
            If a text would be compared by size.
        """
        if value is None:
            return self.sign == "!="
        left, right = _number(value), _number(self.text)
        if left is not None and right is not None:
            return bool(_COMPARE[self.sign](left, right))
        if self.sign not in {"=", "==", "!="}:
            raise UsageError(
                f"--where {self.name}{self.sign}{self.text}: the value {value!r} is not a number",
                hint="compare words with = or !=, e.g. --where "
                + shell_word(f"{self.name}={value}"),
            )
        is_like = fnmatchcase(str(value).lower(), self.text.lower())
        return is_like is not (self.sign == "!=")


def parse_conditions(text: str) -> list[RunCondition]:
    """Return the conditions in a text, which commas separate.

    Raises
    ------
    UsageError
        If a condition is malformed.
    """
    conditions = []
    for part in text.split(","):
        parsed = _CONDITION.fullmatch(part)
        if parsed is None or not (parsed[1].strip() and parsed[3].strip()):
            raise UsageError(
                f"condition {part!r} is malformed",
                hint="e.g. --where 'p>=64,n=30' or --where 'InputType=Random'",
            )
        conditions.append(RunCondition(parsed[1].strip(), parsed[2], parsed[3].strip()))
    return conditions


class RunSelection:
    """Conditions on runs; those on metadata are applied before parameters are known.

    Parameters
    ----------
    text : conditions, with commas between them
    cases : names of cases; a run must be of all of them
    if_possible : ignore the names if the runs are of one case
    """

    def __init__(self, text: str, cases: Sequence[str] = (), *, if_possible: bool = False) -> None:
        self.if_possible = if_possible
        self.finds_cases = False
        """Whether the runs are of several cases, so that the names apply."""
        self.open = parse_conditions(text) if text else []
        """Conditions that have not been applied."""
        self.cases = [*cases]
        """Names of cases that have not been applied."""
        self.excluded = 0, 0
        """Number of runs that conditions on metadata excluded, and of all runs."""

    def by_metadata(self, runs: list[_R]) -> list[_R]:
        """Return the runs that meet the conditions on metadata, and are of the chosen cases.

        Raises
        ------
        DataError
            If no run meets them.
        UsageError
            If there is no such case.
        """
        parameters = {name for run in runs for name in run.stated} | FROM_PROFILE.keys()
        chosen = runs
        for condition in [*self.open]:
            name = condition.name
            if name not in parameters and is_metadata(runs, name):
                chosen = [run for run in chosen if condition.holds(metadata_value(run, name))]
                self.open.remove(condition)
                if not chosen:
                    told = condition.as_text()
                    raise DataError(f"no run is left where {told}", hint="see `cpmodel info`")
        keys = keys_of_cases(chosen)
        self.finds_cases = bool(keys)
        for text in self.cases if keys or not self.if_possible else ():
            found = of_case(keys, chosen, text)
            chosen = [run for run, is_chosen in zip(chosen, found, strict=True) if is_chosen]
        self.cases = []
        self.excluded = len(runs) - len(chosen), len(runs)
        return chosen


def keys_of_cases(runs: Iterable[_Stating]) -> list[str]:
    """Return the keys of the metadata that tell cases apart, each once."""
    return [*dict.fromkeys(key for run in runs for key in run.cases)]


def metadata_value(run: _Described, name: str) -> str | None:
    """Return the metadata of a run under a key; upper and lower case are equal."""
    if name in run.metadata:
        return run.metadata[name]
    found = (text for key, text in run.metadata.items() if key.lower() == name.lower())
    return next(found, None)


def is_metadata(runs: Sequence[_Described], name: str) -> bool:
    """Return whether any run has the key in its metadata."""
    return any(metadata_value(run, name) is not None for run in runs)


def _number(value: str | float) -> float | None:
    try:
        return decimal_of(value) if isinstance(value, str) else float(value)
    except ValueError:
        return None


_KIND = "kind"
"""Key of the metadata for the word in the name of a run that names its kind."""
_MOST_PIECES = 16
"""Maximum number of words that are read from one name."""

Points = Callable[[Sequence[ReadRun]], Sequence[Hashable]]


def with_cases(
    read: list[ReadRun],
    points: Points,
    excluded: Collection[str] = (),
    parameters: Collection[str] = (),
) -> list[ReadRun]:
    """Return runs with the keys of the metadata that tell cases apart.

    Words in names become entries of the metadata: ``kind``, ``kind2`` and so on. A word or entry
    that follows from others is left out.

    Parameters
    ----------
    read : the runs
    points : returns the scale of each run, or anything that is equal for repetitions
    excluded : keys that tell no cases apart, because the user says so
    parameters : names of parameters that the user states
    """
    read = _with_numbered_kinds(_with_kinds(read), parameters)
    keys = keys_of_cases(read)
    texts = {key: [run.metadata.get(key, "") for run in read] for key in keys}
    words = _words(read)
    candidates = _recurring(_entries(read, texts), but="") | words
    if candidates:
        at = points(read)
        texts |= {key: of for key, of in candidates.items() if _tells_apart(of, at)}
    kept = _independent({key: of for key, of in texts.items() if key not in excluded})
    new = [key for key in kept if key in words]
    return [
        structs.replace(
            run,
            metadata={**{key: words[key][k] for key in new}, **run.metadata},
            cases=tuple(kept),
        )
        for k, run in enumerate(read)
    ]


def _with_kinds(read: list[ReadRun]) -> list[ReadRun]:
    """Return runs with the word of their names that names their kind, as in ``p2-re64``."""
    if not _have_names(read) or any(run.file.is_explicit for run in read):
        return read
    kinds = kinds_of([run.file.components for run in read])
    if not kinds:
        return read
    return [
        structs.replace(
            run,
            metadata={_KIND: word, **run.metadata},
            file=structs.replace(run.file, names=names),
            cases=(*run.cases, _KIND),
        )
        for run, (word, names) in zip(read, kinds, strict=True)
    ]


def _with_numbered_kinds(read: list[ReadRun], parameters: Collection[str]) -> list[ReadRun]:
    """Return runs with the numbers of their names that name kinds.

    They count kinds from 0, as ``i0``, ``i1``, ``i2`` do: a size or a number of workers is not 0,
    and models need positive values. Or words follow from them, as from ``team6_merge`` and
    ``team16_quick``: the runs of each number are those of another program.
    """
    if not _have_names(read) or any(run.file.is_explicit for run in read):
        return read
    if any(_KIND in run.metadata for run in read):
        return read
    names = [run.file.components for run in read]
    for column in columns_of(names):
        number = Counter(column.values)
        if column.label in parameters or len(number) < 2 or min(number.values()) < 2:
            continue
        texts = _kinds_of_numbers(column, names)
        if not texts:
            continue
        sign = re.compile(rf"(?<![A-Za-z]){re.escape(column.label)}[-_.=:]?\d+")
        return [
            structs.replace(
                run,
                metadata={_KIND: text, **run.metadata},
                file=structs.replace(
                    run.file, names=tuple(sign.sub("", n) for n in run.file.components)
                ),
                cases=(*run.cases, _KIND),
            )
            for run, text in zip(read, texts, strict=True)
        ]
    return read


def _kinds_of_numbers(column: NumberColumn, names: Sequence[Sequence[str]]) -> list[str]:
    """Return the kind of each run if the numbers of a column name kinds, else an empty list."""
    if not column.joined or None in column.values:
        return []
    texts = [f"{column.label}{value:.0f}" for value in column.values]
    if column.word is NameWord.OTHER:
        words = ["_".join(each) for each in zip(*words_of(names), strict=True)]
        if len({*words}) > 1 and len({*zip(texts, words, strict=True)}) == len({*texts}):
            return [f"{text}_{word}" for text, word in zip(texts, words, strict=True)]
    is_named = names_a_case(column.label) or (len(column.label) == 1 and column.label != "t")
    is_kind = is_named and column.word in {NameWord.SIZE, NameWord.OTHER}
    counts = {*column.values} == {float(k) for k in range(len({*column.values}))}
    return texts if is_kind and counts else []


def _have_names(read: Sequence[ReadRun]) -> bool:
    """Return whether the names of runs may tell them apart; a list of runs decides on its own."""
    listed = any(run.file.from_manifest for run in read)
    return not listed and len({run.file.path for run in read}) > 1


def _entries(read: Sequence[ReadRun], known: Mapping[str, object]) -> dict[str, list[str]]:
    """Return the entries of the metadata, by key, that may tell cases apart."""
    keys = dict.fromkeys(key for run in read for key in run.metadata)
    found = {
        key: [run.metadata.get(key, "") for run in read]
        for key in keys
        if key not in known and names_a_case(key) and not is_of_chance(key)
    }
    return {
        key: texts for key, texts in found.items() if not all(map(is_number, filter(None, texts)))
    }


def _words(read: Sequence[ReadRun]) -> dict[str, list[str]]:
    """Return the words in names that recur and differ between runs, by key of the metadata."""
    if not _have_names(read):
        return {}
    taken = {key for run in read for key in run.metadata}
    names = (name for name in _names_of_kinds() if name not in taken)
    columns = words_of([run.file.components for run in read])
    found = _recurring({str(number): column for number, column in enumerate(columns)})
    return dict(zip(names, (found[number] for number in _independent(found)), strict=False))


def _names_of_kinds() -> Iterator[str]:
    yield _KIND
    for number in range(2, _MOST_PIECES):
        yield f"{_KIND}{number}"


def words_of(names: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the words in the names of runs that differ between them, in columns of [runs].

    Words with digits, identifiers, and single letters are left out.

    Parameters
    ----------
    names : for each run, the name of the file without its ending, then the names of the directories
        above it, the nearest first

    Returns
    -------
    list of list of str
        The outermost directory comes first. If the names have different numbers of words, all words
        of a name are one text.

    >>> words_of([["p2-a", "quick"], ["p4-a", "quick"], ["p2-a", "odd_even"]])
    [['quick', 'quick', 'odd_even']]
    """
    levels = [[*map(_pieces, reversed(own))] for own in different_names(names)[0]]
    if len({*map(len, levels)}) > 1:
        levels = [[["/".join(word for words in own for word in words)]] for own in levels]
    columns: list[list[str]] = []
    for of_level in zip(*levels, strict=True):
        if len({*map(len, of_level)}) > 1:
            columns.append(["_".join(words) for words in of_level])
        else:
            columns += map(list, zip(*of_level, strict=True))
    return [
        column for column in columns if len({*column}) > 1 and not all(len(w) == 1 for w in column)
    ]


def _pieces(name: str) -> list[str]:
    """Return the words of a name that have no digits."""
    found = re.findall(r"[^\W_]+", without_identifiers(name))
    return [*islice((word for word in found if word.isalpha()), _MOST_PIECES)]


def _recurring(columns: Mapping[str, list[str]], but: str | None = None) -> dict[str, list[str]]:
    """Return the columns with several texts, of which one recurs. `but` stands for no text.

    A case may have one run, e.g. if its other runs cannot be read. Of texts in metadata, which more
    often differ by chance, those that recur have at least half of the runs. Paths, which stand for
    names with different numbers of words, all recur: such names are of no common series.
    """
    found = {}
    for key, texts in columns.items():
        count = Counter(text for text in texts if text != but)
        recurring = sum(number for number in count.values() if number > 1)
        least = 1.0 if but is None else len(texts) / 2
        if any("/" in text for text in count):
            least = len(texts) if 2 * len(count) <= len(texts) else math.inf
        if len(count) > 1 and recurring >= least:
            found[key] = texts
    return found


def _tells_apart(texts: Sequence[str], at: Sequence[Hashable]) -> bool:
    """Return whether runs of one scale have several texts."""
    return len({*zip(at, texts, strict=True)}) > len({*at})


def _independent(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the keys whose texts do not follow from those of the keys before."""
    kept: list[str] = []
    seen: list[tuple[str, ...]] = [() for _ in next(iter(columns.values()), ())]
    for key, texts in columns.items():
        finer = [(*before, text) for before, text in zip(seen, texts, strict=True)]
        if len({*finer}) > len({*seen}):
            kept.append(key)
            seen = finer
    return kept
