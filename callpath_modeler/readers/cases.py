"""Cases of runs: words in names, and entries of the metadata, that tell runs of one scale apart.

Runs of one scale that differ in an input, an algorithm or a machine are different programs, and no
repetitions of each other. A word is one of a case if a word at its place recurs in several
runs, and if runs of one scale have several such words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import structs

from callpath_modeler.profile.runs import names_a_case
from callpath_modeler.readers.columns import columns_of, different_names, kinds_of
from callpath_modeler.readers.run_filter import keys_of_cases
from callpath_modeler.readers.run_provenance import is_number, is_of_chance
from callpath_modeler.readers.runs import ReadRun
from callpath_modeler.readers.tokens import NameWord, without_identifiers

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
    """Return runs with the numbers of their names that count kinds from 0: ``i0``, ``i1``, ``i2``.

    A size or a number of workers is not 0, and models need positive values.
    """
    if not _have_names(read) or any(run.file.is_explicit for run in read):
        return read
    for column in columns_of([run.file.components for run in read]):
        number = Counter(column.values)
        counts = {*number} == {float(k) for k in range(len(number))}
        is_named = names_a_case(column.label) or (len(column.label) == 1 and column.label != "t")
        is_kind = column.joined and is_named and column.word in {NameWord.SIZE, NameWord.OTHER}
        if not counts or not is_kind or len(number) < 2 or column.label in parameters:
            continue
        if min(number.values()) < 2 or any(_KIND in run.metadata for run in read):
            continue
        sign = re.compile(rf"(?<![A-Za-z]){re.escape(column.label)}[-_.=:]?\d+")
        texts = [f"{column.label}{value:.0f}" for value in column.values if value is not None]
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
