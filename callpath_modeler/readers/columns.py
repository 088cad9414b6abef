"""Columns of the numbers in the names of runs: one value per run and word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct, structs

from callpath_modeler.readers.tokens import NameWord, NumberToken, tokens_in, word_of

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
