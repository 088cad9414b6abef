"""Numbers in names of runs: each with its word, in columns with one value per run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import islice, pairwise

from msgspec import Struct, structs

from callpath_modeler.profile.schema import CAMEL
from callpath_modeler.readers.paths import is_processes


class NameWord(StrEnum):
    """Meaning of the word next to a number."""

    PROCESSES = "processes"
    CORES = "cores"
    THREADS = "threads"
    NODES = "nodes"
    REPETITION = "repetition"
    IDENTIFIER = "identifier"
    SIZE = "size"
    OTHER = "other"
    NONE = "none"


_PROCESSES = frozenset(
    {"rank", "tasks", "task", "proc", "mpi", "pe", "pes", "mpiprocs", "mpiranks", "nmpi",
     "mpiprocesses", "numranks", "numtasks", "nprocesses", "processors", "nprocessors", "size mpi"}
)  # fmt: skip
_CORES = frozenset({"cores", "core", "ncores", "cpus", "cpu", "ncpus", "num cores", "n cores"})
_THREADS = frozenset(
    {"threads", "thread", "nthreads", "numthreads", "omp", "thr", "num threads", "n threads",
     "omp threads", "omp num threads", "threads per rank", "threads per process",
     "threads per proc", "threads per task", "cpus per task", "cores per task", "tpp", "tpr"}
)  # fmt: skip
_NODES = frozenset({"nodes", "nnodes", "numnodes", "num nodes", "n nodes"})
REPETITIONS = frozenset({"r", "rep", "reps", "run", "trial", "seed", "repetition", "repeat"})
"""Words for the number of a repetition."""
_IDENTIFIERS = frozenset(
    {"job", "jobid", "jid", "slurm", "slurmid", "pbs", "lsf", "id", "pid", "uid", "uuid", "guid",
     "hash", "sha", "commit", "rev", "revision",
     "host", "hostname", "node", "nid", "login", "date",
     "time", "day", "month", "year", "launchdate", "timestamp", "datetime", "stamp", "epoch",
     "profile",
     "profiles", "summary", "index", "idx", "key", "serial", "version", "pr", "issue", "build"}
)  # fmt: skip
_SIZES = frozenset(
    {"size", "sizes", "problemsize", "inputsize", "nx", "ny", "nz", "cells", "elements", "elems",
     "elem", "grid", "dim", "dims", "mesh", "particles", "atoms", "block", "blocks", "bytes",
     "message", "msg", "length", "len", "width", "height", "depth", "order", "degree", "density",
     "iter", "iters", "iterations", "steps", "timesteps", "level", "levels", "tile", "batch",
     "problem size", "input size", "edge", "volume", "points", "dof", "dofs", "rows", "cols"}
)  # fmt: skip


@lru_cache(maxsize=256)
def word_of(text: str) -> NameWord:
    """Return the meaning of a word, or of several words joined by spaces or signs.

    >>> [str(word_of(word)) for word in ("ntasks", "omp-threads", "JobId", "n", "solver", "")]
    ['processes', 'threads', 'identifier', 'size', 'other', 'none']
    """
    parts = [part.lower() for part in re.findall(r"[A-Za-zµ]+", CAMEL.sub(" ", text))]
    if not parts:
        return NameWord.NONE
    plain = " ".join(parts)
    kinds = (
        (_THREADS, NameWord.THREADS), (_NODES, NameWord.NODES), (_CORES, NameWord.CORES),
        (REPETITIONS, NameWord.REPETITION), (_PROCESSES, NameWord.PROCESSES),
        (_IDENTIFIERS, NameWord.IDENTIFIER),        (_SIZES, NameWord.SIZE),
    )  # fmt: skip
    for words, kind in kinds:
        if plain in words:
            return kind
    if is_processes(plain):
        return NameWord.PROCESSES
    if len(plain) == 1:
        return NameWord.SIZE
    if (
        parts[-1] in _IDENTIFIERS - {"time", "node", "profile", "key"}
        or "".join(parts) in _IDENTIFIERS
    ):
        return NameWord.IDENTIFIER
    return NameWord.SIZE if "per" in parts or parts[-1] == "size" else NameWord.OTHER


_MOST_NAMES = 4096
"""Number of names whose numbers are remembered, because each case of a series needs them."""

_LONGEST_NAME = 255
"""Maximum number of characters that are read from a name; file systems allow no more."""

_DATE = r"(?:19|20)\d\d(?P<d>[-_.]?)(?:0[1-9]|1[0-2])(?P=d)(?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]\d|2[0-3])(?P<c>[-:_.]?)[0-5]\d(?P=c)[0-5]\d(?:[.,]\d{1,9})?"
_OPAQUE = re.compile(
    r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
    rf"|(?<!\d){_DATE}(?:[T_ -]?{_CLOCK}|T\d{{4}}|T\d\d[:-]\d\d)?(?:Z|[+-]\d\d:?\d\d)?(?!\d)"
    r"|(?<!\d)(?:[01]\d|2[0-3])(?P<t>[-:])[0-5]\d(?P=t)[0-5]\d(?!\d)"
    r"|(?<![A-Za-z0-9])[rx]\d+c\d+(?:s\d+)?(?:b\d+)?n\d+(?![A-Za-z0-9])"
    r"|(?<!\d)\d{16,}(?!\d)"
    r"|(?<![A-Za-z0-9])\d{6}-\d{6}_\d+_[A-Za-z0-9]{12}(?![A-Za-z0-9])"
)
"""Identifiers: UUIDs, dates, times, nodes by rack and slot, long numbers, names by Caliper."""
_HEXADECIMAL = re.compile(r"(?<![A-Za-z0-9])[0-9A-Fa-f]{7,64}(?![A-Za-z0-9])")
_FEWEST_CHANGES = 3
"""Fewest changes between digits and letters in a hexadecimal hash."""

NUMBER = r"[0-9]+(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""Expression for a number in a name; a comma may be the decimal separator."""
_PARTS = re.compile(rf"(?P<number>{NUMBER})|(?P<word>[A-Za-zµ]+)|(?P<sign>[^A-Za-zµ0-9]+)")
_MULTIPLES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9,
              "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
              "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}  # fmt: skip
_COUNTS = (
    NameWord.PROCESSES,
    NameWord.CORES,
    NameWord.THREADS,
    NameWord.NODES,
    NameWord.REPETITION,
)


class NumberToken(Struct, frozen=True):
    """A number in a name.

    Attributes
    ----------
    word : the word next to the number, or ""
    value : the number
    text : the number as written
    joined : True if word and number form one piece, as in ``p64``, ``p=64`` and ``64ranks``
    """

    word: str
    value: float
    text: str
    joined: bool


def tokens_in(name: str) -> list[NumberToken]:
    """Return the numbers in the name of a file or directory, in order.

    Dates, times of day, UUIDs and hexadecimal hashes are identifiers, not numbers.

    >>> [(t.word, t.value) for t in tokens_in("mm.x1,25y1.r1")]
    [('x', 1.25), ('y', 1.0), ('r', 1.0)]
    >>> [(t.word, t.value) for t in tokens_in("lulesh_2024-05-17_ntasks_16_threads_2")]
    [('ntasks', 16.0), ('threads', 2.0)]
    >>> [(t.word, t.value) for t in tokens_in("lulesh-16cores-001")]
    [('cores', 16.0), ('', 1.0)]
    """
    return [*_tokens_of(name)]


@lru_cache(maxsize=_MOST_NAMES)
def _tokens_of(name: str) -> tuple[NumberToken, ...]:
    parts = _PARTS.finditer(without_identifiers(name))
    return tuple(_tokens([(found.lastgroup or "", found[0]) for found in parts]))


def without_identifiers(name: str) -> str:
    """Return a name with a bar instead of each date, time of day, UUID and hexadecimal hash."""
    name = _OPAQUE.sub("|", name[:_LONGEST_NAME])
    return _HEXADECIMAL.sub(lambda found: "|" if _is_hash(found[0]) else found[0], name)


def _is_hash(text: str) -> bool:
    digits = [letter.isdigit() for letter in text]
    changes = sum(one is not other for one, other in pairwise(digits))
    return changes >= _FEWEST_CHANGES


def _tokens(parts: Sequence[tuple[str, str]]) -> Iterator[NumberToken]:
    """Yield the numbers among the words, numbers and signs of a name; each word has one number."""
    used: set[int] = set()
    for k, (kind, text) in enumerate(parts):
        if kind != "number":
            continue
        value = float(text.replace(",", "."))
        behind = parts[k + 1] if k + 1 < len(parts) else ("", "")
        # A prefix must be at the end of a piece: in 10b5, b is the word of the next number.
        ends = k + 2 == len(parts) or (k + 2 < len(parts) and parts[k + 2][0] == "sign")
        if behind[0] == "word" and behind[1] in _MULTIPLES and ends:
            value *= _MULTIPLES[behind[1]]
            used.add(k + 1)
        word, joined, at = _word_of_number(parts, k, used)
        if not word and k + 1 in used and behind[1].endswith("B"):
            word, joined = "size", True
        used |= at
        yield NumberToken(word, value, text, joined)


def _word_of_number(  # noqa: C901, PLR0911 - one case per form of a name
    parts: Sequence[tuple[str, str]], k: int, used: set[int]
) -> tuple[str, bool, set[int]]:
    """Return the word of the number at `k`, whether they form one piece, and the word's parts."""

    def is_word(i: int) -> bool:
        return 0 <= i < len(parts) and parts[i][0] == "word" and i not in used

    before, after = is_word(k - 1), is_word(k + 1)
    first = k
    while first > 0 and parts[first - 1][0] != "sign":
        first -= 1
    last = k
    while last + 1 < len(parts) and parts[last + 1][0] != "sign":
        last += 1
    if parts[first][0] == "number" and last > k:
        # In 16ranks, the word follows the number. In 10x20x30, x is a multiplication sign.
        ends = parts[last][0] == "word"
        return (parts[k + 1][1], True, {k + 1}) if after and ends else ("", False, set())
    if parts[first][0] == parts[last][0] == "number" and first < k:
        return "", False, set()
    if before:
        return _with_words_before(parts, k - 1, used, joined=True)
    if k > 1 and parts[k - 1][0] == "sign" and "|" not in parts[k - 1][1] and is_word(k - 2):
        found = _with_words_before(parts, k - 2, used, joined=parts[k - 1][1].strip() in "=:")
        meaning = word_of(found[0])
        following = k + 2 if k + 1 < len(parts) and parts[k + 1][0] == "sign" else len(parts)
        other = word_of(parts[following][1]) if is_word(following) else NameWord.NONE
        if meaning is not NameWord.OTHER or other not in _COUNTS or found[1]:
            return found
        if _has_own_number(parts, following):
            return found
        return parts[following][1], False, {following}
    following = k + 2
    is_count = is_word(following) and word_of(parts[following][1]) in _COUNTS
    if is_count and not _has_own_number(parts, following):
        return parts[following][1], False, {following}
    return ("", False, set()) if not after else (parts[k + 1][1], True, {k + 1})


def _has_own_number(parts: Sequence[tuple[str, str]], word: int) -> bool:
    """Return whether a number directly follows a word, as in ``8_rep1``."""
    return word + 1 < len(parts) and parts[word + 1][0] == "number"


def _with_words_before(
    parts: Sequence[tuple[str, str]], last: int, used: set[int], *, joined: bool
) -> tuple[str, bool, set[int]]:
    """Return a word, with preceding words if they have a joint meaning.

    Examples are ``ntasks-per-node`` and ``num_ranks``.
    """
    chain = [last]
    while (
        len(chain) < 4
        and chain[0] >= 2
        and parts[chain[0] - 1] in {("sign", "_"), ("sign", "-"), ("sign", " ")}
        and parts[chain[0] - 2][0] == "word"
        and chain[0] - 2 not in used
    ):
        chain.insert(0, chain[0] - 2)
    own = word_of(parts[last][1])
    for begin in range(len(chain) - 1):
        words = [parts[i][1] for i in chain[begin:]]
        if words[1].lower() == "per" or (
            own in {NameWord.OTHER, NameWord.SIZE, *_COUNTS}
            and word_of(" ".join(words))
            in {NameWord.PROCESSES, NameWord.THREADS, NameWord.NODES, NameWord.CORES}
        ):
            return "_".join(words), joined, {*chain[begin:]}
    return parts[last][1], joined, {last}


_MOST_LEVELS = 8
"""Maximum number of names of a run: the file and the directories above it."""
_MOST_NUMBERS = 32
"""Maximum number of numbers that are read from one name."""
_WHOLE = (
    NameWord.PROCESSES,
    NameWord.CORES,
    NameWord.THREADS,
    NameWord.NODES,
    NameWord.REPETITION,
    NameWord.IDENTIFIER,
)
"""Words of integers: 8.1 at one of them is the integer 8 and another number, 1."""
_FEW_ODD = 0.05
"""Largest share of runs with another form of name that are left out."""
_LETTERS = frozenset({"t", "v"})
"""Single letters without a meaning in the name of the directory of all runs: tests, versions."""
_SIZE = "n"
"""Name of a size behind words that name kinds of runs."""
_LARGE = 10
"""Smallest integer from which on 30.1 and 30.2 are two runs of size 30 instead of two sizes."""

Key = tuple[str, int, float]
"""The word, or for a number without a word, its level and its position in the name."""
Values = tuple[float | None, ...]


class NumberColumn(Struct, frozen=True):
    """One number of every run.

    Attributes
    ----------
    label : the word next to the number, or ""
    word : meaning of the word
    values : [runs]; None = the names of the run lack the number
    joined : True if word and number form one piece in all names, as in ``p64``
    place : position of the number, for messages
    common : True if only the name of the directory of all runs has the number
    """

    label: str
    word: NameWord
    values: Values
    joined: bool = True
    place: str = "run names"
    common: bool = False

    @property
    def shown(self) -> str:
        """Name of the column in messages."""
        return self.label or f"the number in {self.place}"


def columns_of(names: Sequence[Sequence[str]]) -> list[NumberColumn]:
    """Return the numbers in the names of runs.

    Parameters
    ----------
    names : for each run, the name of the file without its ending, then the names of the directories
        above it, the nearest first

    Returns
    -------
    list of NumberColumn
        In order of first occurrence. Numbers with the same word share a column, whether they are in
        the name of the file or of a directory.
    """
    parts: dict[Key, dict[tuple[int, int], dict[int, NumberToken]]] = {}
    common: dict[Key, bool] = {}
    different, shared = different_names(names)
    for run, own in enumerate(different):
        for key, level, occurrence, token in _keyed(own):
            is_common = 0 < level >= len(own) - shared
            if is_common and _is_vague(key[0]):
                continue
            common[key] = is_common and common.get(key, True)
            parts.setdefault(key, {}).setdefault((level, occurrence), {})[run] = token
    columns = []
    for key, places in parts.items():
        word = key[0]
        level, tokens = _merged(places, len(names))
        kind, place = word_of(word), _place(level)
        is_split = _is_split(tokens.values(), kind)
        joined = all(token.joined for token in tokens.values())
        whole = _values(tokens, len(names), is_split=is_split)
        columns.append(NumberColumn(word, kind, whole, joined, place, common[key]))
        if is_split:
            columns.append(
                NumberColumn("", NameWord.NONE, _endings(tokens, len(names)), False, place)
            )
    return _completed(columns)


def _is_vague(word: str) -> bool:
    """Return whether a word in the directory of all runs may mean anything, as in ``v2``."""
    return word.lower() in _LETTERS or word_of(word) in {NameWord.OTHER, NameWord.NONE}


def kinds_of(names: Sequence[Sequence[str]]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the word of each run that names its kind, and the names with another word instead.

    Words name kinds if each run has one of them, and if the same numbers recur behind them. Without
    such words, nothing is returned.

    >>> kinds_of([["p2-a64"], ["p2-re64"], ["p4-a128"], ["p4-re128"]])[1:3]
    [('re', ('p2-n64',)), ('a', ('p4-n128',))]
    >>> kinds_of([["p2-n64"], ["p4-n64"]])
    []
    """
    columns = columns_of(names)
    kinds = [columns[k] for k in _kinds(columns)]
    found = []
    for run, own in enumerate(names if kinds else ()):
        word = next(column.label for column in kinds if column.values[run] is not None)
        sign = re.compile(rf"(?<![A-Za-z]){re.escape(word)}(?=[-_.=:]?\d)")
        found.append((word, tuple(sign.sub(_SIZE, name) for name in own)))
    return found


def odd_names(names: Sequence[Sequence[str]]) -> frozenset[int]:
    """Return the few runs whose file names have other words or numbers than nearly all others.

    >>> sorted(odd_names([["merge_2-8-1"], ["_4-8-1"], *[["merge_4-8-2"]] * 30]))
    [1]
    """
    forms = [tuple(token.word for token in tokens_in(own[0])) for own in names]
    (usual, count), *_ = Counter(forms).most_common(1)
    if len(names) - count > _FEW_ODD * len(names):
        return frozenset()
    return frozenset(k for k, form in enumerate(forms) if form != usual)


def _kinds(columns: Sequence[NumberColumn]) -> list[int]:
    """Return the columns whose words name kinds of runs."""
    found = [
        k
        for k, column in enumerate(columns)
        if column.label and column.joined and column.word is not NameWord.IDENTIFIER
        and None in column.values
    ]  # fmt: skip
    if len(found) < 2:
        return []
    told = [{value for value in columns[k].values if value is not None} for k in found]
    each_has_one = all(
        sum(value is not None for value in values) == 1
        for values in zip(*(columns[k].values for k in found), strict=True)
    )
    recurs = len(told[0]) > 1 and all(values == told[0] for values in told)
    return found if each_has_one and recurs and min(told[0]) >= _LARGE else []


def _completed(columns: Sequence[NumberColumn]) -> list[NumberColumn]:
    """Merge two columns of one kind of count if every run has at most one of the words."""
    done: list[NumberColumn] = []
    for column in columns:
        for k, other in enumerate(done):
            pairs = [*zip(other.values, column.values, strict=True)]
            if (
                column.word is other.word
                and column.word in _WHOLE[:-1]
                and all(None in pair for pair in pairs)
            ):
                values = tuple(b if a is None else a for a, b in pairs)
                done[k] = structs.replace(
                    other, values=values, joined=other.joined and column.joined
                )
                break
        else:
            done.append(column)
    return done


def different_names(names: Sequence[Sequence[str]]) -> tuple[list[Sequence[str]], int]:
    """Return names without the directories above the nearest common directory.

    Returns
    -------
    names : list of sequences of str
        The remaining names of each run.
    shared : int
        1 if the last name of each run is the common directory, else 0.
    """
    above = [tuple(reversed(own[1:])) for own in names]
    shared = 0
    for parts in zip(*above, strict=False):
        if len({*parts}) > 1:
            break
        shared += 1
    # If a file is directly in the common directory, this directory is its last name.
    is_near = any(len(own) - shared < 2 for own in names)
    levels = [max(2, min(len(own) - shared, _MOST_LEVELS)) for own in names]
    return [own[:most] for own, most in zip(names, levels, strict=True)], int(is_near)


def _keyed(own: Sequence[str]) -> Iterator[tuple[Key, int, int, NumberToken]]:
    """Yield the numbers of one run, each with its key, level and occurrence at this level."""
    for level, name in enumerate(own):
        count: dict[str, int] = {}
        for token in islice(tokens_in(name), _MOST_NUMBERS):
            number = count.setdefault(token.word, 0)
            count[token.word] += 1
            if token.word:
                yield (token.word, -1, -1), level, number, token
            else:
                yield ("", level, number), level, 0, token


def _place(level: int) -> str:
    return "file names" if level == 0 else "directory names"


_Tokens = Mapping[int, NumberToken]


def _merged(places: Mapping[tuple[int, int], _Tokens], runs: int) -> tuple[int, _Tokens]:
    """Return the level of a word, and its number in each run.

    If a run has the word in several names, the varying numbers have priority. Missing numbers are
    taken from the next name, from the file to the outermost directory.
    """
    varying = [at for at, tokens in places.items() if len({t.text for t in tokens.values()}) > 1]
    order = sorted(varying or places)
    merged: dict[int, NumberToken] = {}
    for at in (*order, *sorted(places)):
        if len(merged) < runs:
            for run, token in places[at].items():
                merged.setdefault(run, token)
    return order[0][0], merged


def _is_split(tokens: Iterable[NumberToken], kind: NameWord) -> bool:
    """Return whether a number such as 8.1 is two numbers: 8, and the run number 1."""
    texts = {token.text.lower() for token in tokens}
    if any("e" in text for text in texts):
        return False
    if kind in _WHOLE:
        return any("." in text or "," in text for text in texts)
    endings: dict[str, set[str]] = {}
    for text in texts:
        whole, _, ending = text.partition(".")
        endings.setdefault(whole, set()).add(ending)
    if len(endings) < 2 or not any(len(found) > 1 for found in endings.values()):
        return False
    if not all(_counts(found) for found in endings.values()):
        return False
    return kind is not NameWord.SIZE or max(map(int, endings)) >= _LARGE


def _counts(texts: set[str]) -> bool:
    """Return whether texts are consecutive integers from 0 or 1."""
    if not all(text.isdigit() for text in texts):
        return False
    numbers = sorted(int(text) for text in texts)
    return numbers[0] <= 1 and numbers == [*range(numbers[0], numbers[0] + len(numbers))]


def _values(tokens: _Tokens, runs: int, *, is_split: bool) -> Values:
    values: list[float | None] = [None] * runs
    for run, token in tokens.items():
        whole = token.text.replace(",", ".").partition(".")[0]
        values[run] = float(whole) if is_split else token.value
    return tuple(values)


def _endings(tokens: _Tokens, runs: int) -> Values:
    """Return the second part of numbers such as 8.1."""
    values: list[float | None] = [None] * runs
    for run, token in tokens.items():
        ending = token.text.replace(",", ".").partition(".")[2]
        values[run] = float(ending) if ending else None
    return tuple(values)
