r"""Call-path patterns: ``main/**/MPI_*`` compiled to row masks.

Segments are joined by ``/`` (or ``->``); ``**`` stands for any number of callers, ``*`` and ``?``
for characters of one name, ``{a,b}`` for either, a segment that starts with ``~`` is a regular
expression, ``\/`` is a slash in a name, and ``@3f9a2c1`` is a call-path id. A segment matches a
function's full name, its short one (``main`` for ``int main(int, char**)``) and that without its
scope (``f`` for ``ns::f``). A pattern that matches no call path from the root is tried at any
depth.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.errors import UsageError, closest
from callpath_modeler.printable import shortened
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import PROGRAM
from callpath_modeler.profile.wildcards import is_plain, matcher_of

_ANY = "**"
_OF_PATTERNS = frozenset("/\\*?{}~@")
"""Characters that mean something in a pattern: names with them are no suggestion."""
_BITS = 62
"""So many segments have their states in a machine's number."""
_MOST_ANY = 100
"""So many ``**`` may stand in a pattern."""
_MOST_PARTS = 64
"""Parts of a pattern that a suggestion is looked for to."""
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
_QUALIFIERS = frozenset({"const", "volatile", "noexcept", "&", "&&"})


@dataclass(frozen=True)
class Patterns:
    """The names of a call tree, ready for any number of patterns.

    Attributes
    ----------
    tree : the call tree
    name : [call paths] which of the different names each has
    spelled : the ways to write each of these
    plain : which of them a text spells
    matches : of segments that were asked for, which names they fit, [names]
    literal : of segments that were asked for, which names they spell; None = not only that
    meant : of segments that were asked for, the names that they are or are like
    steps : where a segment leads to from a place in `reached`
    reached : call paths that segments spell from the root on, ascending; the first are its callers
    """

    tree: CallTree
    name: NDArray[np.intp]
    spelled: tuple[tuple[str, ...], ...]
    plain: Mapping[str, Sequence[int]]
    matches: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    literal: dict[str, Sequence[int] | None] = field(default_factory=dict)
    meant: dict[str, str] = field(default_factory=dict)
    steps: dict[tuple[int, str], int] = field(default_factory=dict)
    reached: list[NDArray[np.intp]] = field(default_factory=list)

    @classmethod
    def of(cls, tree: CallTree) -> Patterns:
        """Collect the names of a tree."""
        code = tree.region.astype(np.intp) * len(tree.annotations) + tree.annotation
        _, first, name = np.unique(code, return_index=True, return_inverse=True)
        spelled = tuple(_spellings(tree.name(row)) for row in first.tolist())
        plain: dict[str, list[int]] = {}
        for place, ways in enumerate(spelled):
            for way in {*ways}:
                plain.setdefault(way, []).append(place)
        return cls(tree, name, spelled, plain)

    @cached_property
    def ids(self) -> list[str]:
        """Ids of the call paths: a tree makes them anew whenever it is asked."""
        return self.tree.ids()

    def match(self, pattern: str) -> NDArray[np.bool_]:
        """Return which call paths a pattern names, [call paths]; else as `rows`."""
        mask = np.zeros(len(self.tree), bool)
        mask[self.rows(pattern)] = True
        return mask

    def rows(self, pattern: str) -> NDArray[np.intp]:
        """Return the call paths that a pattern names, ascending.

        Raises
        ------
        UsageError
            If the pattern is malformed.
        """
        if pattern.startswith("@"):
            return self._with_id(pattern[1:])
        segments = _segments(pattern)
        found = self._spelling(segments)
        if not len(found) and segments[0] != _ANY:
            found = self._spelling([_ANY, *segments])
        return found

    def _spelling(self, segments: Sequence[str]) -> NDArray[np.intp]:
        """Return the call paths that segments name from the root on."""
        names = [self._spelled_out(segment) for segment in segments]
        plain = [places for places in names if places is not None]
        if len(plain) == len(names):
            return self._along(segments, plain)
        if plain and segments[0] == _ANY and len(plain) == len(names) - 1:
            return self._ending_in(plain)
        return np.flatnonzero(self._from_root(segments))

    def _with_id(self, digits: str) -> NDArray[np.intp]:
        """Return the call paths whose ids begin with some digits."""
        ids = self._in_order
        begin = bisect_left(ids, (digits,))
        rows = [row for _, row in takewhile(lambda each: each[0].startswith(digits), ids[begin:])]
        return np.array(sorted(rows), np.intp)

    @cached_property
    def _in_order(self) -> list[tuple[str, int]]:
        return sorted((digits, row) for row, digits in enumerate(self.ids))

    @cached_property
    def _callees(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Numbers of (caller, name), ascending, and the call paths that have them."""
        number = (self.tree.parent + np.int64(1)) * len(self.spelled) + self.name
        order = np.argsort(number, kind="stable")
        return number[order], order

    @cached_property
    def _begins(self) -> NDArray[np.intp]:
        """What calls the first call paths that people write: the artificial root is no part."""
        programs = [row for row in self.tree.roots.tolist() if self.tree.name(row) == PROGRAM]
        return np.array([ROOT, *programs], np.intp)

    def _along(self, segments: Sequence[str], names: Sequence[Sequence[int]]) -> NDArray[np.intp]:
        """Return the call paths of these names, which segments spell, from the root on."""
        # Most patterns of a file begin like others: no step is made twice.
        if not self.reached:
            self.reached.append(self._begins)
        place = 0
        for segment, places in zip(segments, names, strict=True):
            if (place, segment) not in self.steps:
                rows = self._called(self.reached[place], places)
                rows.sort()
                rows.flags.writeable = False
                self.steps[place, segment] = len(self.reached)
                self.reached.append(rows)
            place = self.steps[place, segment]
            if not len(self.reached[place]):
                break
        return self.reached[place]

    def _ending_in(self, names: Sequence[Sequence[int]]) -> NDArray[np.intp]:
        """Return the call paths that have these names at their end."""
        found = [self._begins[:0], *(self._of_name[place] for place in names[-1])]
        rows = at = np.sort(np.concatenate(found))
        for places in reversed(names[:-1]):
            at = self._caller[at]
            fits = (at != ROOT) & np.isin(self.name[at], places)
            rows, at = rows[fits], at[fits]
        return rows

    @cached_property
    def _of_name(self) -> list[NDArray[np.intp]]:
        """Return the call paths of each name."""
        order = np.argsort(self.name, kind="stable")
        ends = np.cumsum(np.bincount(self.name, minlength=len(self.spelled)))
        return np.split(order, ends[:-1])

    @cached_property
    def _caller(self) -> NDArray[np.intp]:
        """The caller of each call path; `ROOT` where the artificial root calls it, too."""
        parent = self.tree.parent.astype(np.intp)
        return np.where(np.isin(parent, self._begins), ROOT, parent)

    def _called(self, rows: NDArray[np.intp], places: Sequence[int]) -> NDArray[np.intp]:
        """Return what some call paths call by one of some names, in no order."""
        numbers, order = self._callees
        wanted = (rows[:, None] + 1) * len(self.spelled) + np.array(places, dtype=np.int64)
        begin, end = (numbers.searchsorted(wanted.ravel(), side).tolist() for side in _SIDES)
        parts = [order[a:b] for a, b in zip(begin, end, strict=True)]
        return np.concatenate([order[:0], *parts])

    def _spelled_out(self, segment: str) -> Sequence[int] | None:
        """Return which names a segment spells, or None if it may mean others."""
        if segment not in self.literal:
            plain = segment != _ANY and is_plain(segment)
            self.literal[segment] = self.plain.get(segment, ()) if plain else None
        return self.literal[segment]

    def _from_root(self, segments: Sequence[str]) -> NDArray[np.bool_]:
        # State k: the first k segments are matched. States of a call path follow from its caller's,
        # and where there are none, neither are there below.
        tree, any_number = self.tree, [k for k, s in enumerate(segments) if s == _ANY]
        # The states of a call path are the bits of a number, of any size where segments are many.
        number = np.int64 if len(segments) < _BITS else object
        stays, done = sum(1 << k for k in any_number), 1 << len(segments)
        fits = np.zeros(len(self.spelled), number)
        for k, segment in enumerate(segments):
            fits |= self._fits(segment).astype(number) << k
        start = _skip_any(np.array([1], number), any_number)
        states = np.zeros(len(tree), number)
        # The artificial root is no part of the paths that people write.
        begins = np.zeros(len(tree) + 1, bool)
        begins[self._begins] = True
        rows: NDArray[np.integer] = tree.roots
        while len(rows):
            caller = tree.parent[rows]
            before = np.where(begins[caller], start, states[caller]) & fits[self.name[rows]]
            states[rows] = _skip_any((before & stays) | ((before & ~stays) << 1), any_number)
            rows = tree.called_by(rows[(states[rows] & (done - 1) != 0) | begins[rows]])
        return np.asarray((states & done) != 0, dtype=np.bool_)

    def _fits(self, segment: str) -> NDArray[np.bool_]:
        """Return which names a segment fits, [names]."""
        if segment not in self.matches:
            fits = np.zeros(len(self.spelled), bool)
            places = self._spelled_out(segment)
            if segment == _ANY:
                fits[:] = True
            elif places is not None:
                fits[list(places)] = True
            else:
                test = matcher_of(segment)
                fits[:] = [any(test(way) for way in ways) for ways in self.spelled]
            self.matches[segment] = fits
        return self.matches[segment]

    def nearest(self, pattern: str) -> str:
        """Return a pattern like one that names no call path, but that names some; or nothing."""
        if pattern.startswith(("@", "~")):
            return ""
        parts = pattern.replace("->", "/").split("/")
        if len(parts) > _MOST_PARTS:
            return ""
        spelt = [self._spelt(part) for part in parts]
        whole = "/".join(new or part for new, part in zip(spelt, parts, strict=True))
        functions = [f"**/{name}" for name in reversed(spelt) if name]
        return next((meant for meant in (whole, *functions) if len(self.rows(meant))), "")

    def _spelt(self, part: str) -> str:
        """Return the name that a part of a pattern is, or is like; or nothing."""
        if part not in self.meant:
            names = self._functions
            self.meant[part] = part if part in names else closest(part, names)
        return self.meant[part]

    @cached_property
    def _functions(self) -> list[str]:
        """Short names of functions that are patterns of themselves."""
        names = sorted({short_name(region.name) for region in self.tree.regions})
        return [name for name in names if not _OF_PATTERNS & set(name)]


def match(tree: CallTree, pattern: str) -> NDArray[np.bool_]:
    """Return which call paths one pattern names, as `Patterns.match`."""
    return Patterns.of(tree).match(pattern)


def find_one(tree: CallTree, pattern: str) -> int:
    """Return the row of the one call path that `pattern` names.

    Raises
    ------
    UsageError
        If it names none, or more than one.
    """
    rows = np.flatnonzero(match(tree, pattern))
    if len(rows) == 1:
        return int(rows[0])
    if len(rows):
        ids = tree.ids()
        some = ", ".join(f"@{ids[row]} {tree.path(int(row))}" for row in rows[:4])
        more = f" and {len(rows) - 4} more" if len(rows) > 4 else ""
        raise UsageError(
            f"{pattern!r} names {len(rows)} call paths", hint=f"choose one: {some}{more}"
        )
    raise unmatched(tree, pattern)


def unmatched(tree: CallTree, pattern: str) -> UsageError:
    """Return the error for a pattern that names no call path, with the nearest function."""
    meant = Patterns.of(tree).nearest(pattern)
    return UsageError(
        f"no call path matches {pattern!r}",
        hint=f"did you mean {meant!r}?" if meant else "`cpmodel rank` lists call paths",
    )


def short_name(name: str) -> str:
    """Return a function's name without return type, arguments and template arguments.

    >>> short_name("int main(int, char**)"), short_name("ns::A<int>::f(B<C> const&)#2")
    ('main', 'ns::A::f#2')
    >>> short_name("MPI_Wait"), short_name("!$omp parallel @f.f90:23")
    ('MPI_Wait', '!$omp parallel @f.f90:23')
    """
    if "(" not in name or "operator" in name or name.startswith("!$"):
        return name
    suffix = _note(name)
    core, depth = [], 0
    # In brackets: arguments, template arguments, "[with T = int]", "[clone .cold]", "[abi:cxx11]".
    for character in name.removesuffix(suffix):
        depth += character in "<(["
        if depth == 0:
            core.append(character)
        depth -= character in ">)]"
    words = [word for word in "".join(core).split() if word not in _QUALIFIERS]
    if not words or depth != 0:
        return name
    # An anonymous namespace leaves its two colons behind.
    return words[-1].replace("::::", "::").removeprefix("::") + suffix


def _note(name: str) -> str:
    """Return what follows the arguments of a function: ``[with T = int]``, ``#2``, both or none."""
    stem, sign, number = name.rpartition("#")
    end = len(stem) if sign and number.isdecimal() else len(name)
    if not name.endswith("]", 0, end):
        return name[end:] if name.endswith(")", 0, end) else ""
    # The brackets begin behind arguments, and hold no others that end.
    begin = name.find(")[", max(0, name.rfind("]", 0, end - 1)), end)
    return name[begin + 1 :] if begin >= 0 else ""


def _segments(pattern: str) -> list[str]:
    text = pattern.replace("->", "/").lstrip("/")
    ended = text.rstrip("/")
    # A slash behind a backslash is part of a name.
    text = text[: len(ended) + 1] if ended.endswith("\\") else ended
    if not text:
        raise UsageError("empty call-path pattern", hint="e.g. 'main/**/MPI_*'")
    segments = [part.replace("\\/", "/") for part in re.split(r"(?<!\\)/", text)]
    if segments.count(_ANY) > _MOST_ANY:
        raise UsageError(
            f"pattern {shortened(pattern)!r} has more than {_MOST_ANY} times **",
            hint="e.g. 'main/**/MPI_*'",
        )
    return segments


def _skip_any(states: NDArray[np.integer], any_number: Sequence[int]) -> NDArray[np.integer]:
    for k in any_number:
        states = states | (states >> k & 1) << (k + 1)
    return states


def _spellings(name: str) -> tuple[str, ...]:
    """Return the ways to write a function: in full, short, and without its scope."""
    short = short_name(name)
    return name, short, short.rsplit("::", 1)[-1]
