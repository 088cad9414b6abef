"""Numbers in names of files and directories, each with its word, and the meanings of words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from callpath_modeler.readers.titles import is_processes


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
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=256)
def word_of(text: str) -> NameWord:
    """Return the meaning of a word, or of several words joined by spaces or signs.

    >>> [str(word_of(word)) for word in ("ntasks", "omp-threads", "JobId", "n", "solver", "")]
    ['processes', 'threads', 'identifier', 'size', 'other', 'none']
    """
    parts = [part.lower() for part in re.findall(r"[A-Za-zµ]+", _CAMEL.sub(" ", text))]
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
