r"""Patterns of call paths, such as ``main/**/MPI_*``.

A pattern consists of segments, which ``/`` or ``->`` join:

- ``**``: any number of callers
- ``*`` and ``?``: any characters, or one character, of a name
- ``{a,b}``: either of two texts
- ``~`` before a segment: the segment is a regular expression
- ``\/``: a slash in a name
- ``@3f9a2c1``: the call path with this id

A segment matches the full name of a function, its short name (``main`` for
``int main(int, char**)``), or the short name without scopes (``f`` for ``ns::f``). ``f`` matches
all calls of `f` by one caller, and ``f:31`` the call in line 31. If a pattern matches no call path
from the root, it is tried at any depth.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import BoolArray, Int64Array, IntArray
from callpath_modeler.errors import UsageError, closest
from callpath_modeler.printable import shortened
from callpath_modeler.profile.calltree import ROOT, CallTree, without_site
from callpath_modeler.profile.schema import PROGRAM, Region
from callpath_modeler.support.expression import ExpressionError

_MOST_CHOICES, _LONGEST = 1000, 20_000
"""Maximum number of expansions of a segment with braces, and of their characters.

The time for compiling expansions grows with the square of a beginning that all of them share.
"""

_SPECIAL = re.compile(r"[*?]|\{[^{},]*,[^{}]*\}")
_UNPLAIN = re.compile(r"[*?{}~@\\]|->|^/|/$|//")
"""Signs of patterns that are no names from the root."""
_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")


def is_plain(segment: str) -> bool:
    """Return whether a segment is a name without wildcards."""
    return not segment.startswith("~") and not _SPECIAL.search(segment)


def matcher_of(segment: str) -> Callable[[str], object]:
    """Return a function that returns a true value for matching names.

    Raises
    ------
    UsageError
        If the regular expression is not supported, or the segment has too many expansions.
    """
    if not segment.startswith("~"):
        return re.compile("|".join(map(_glob, _without_braces(segment))), re.DOTALL).fullmatch
    # Few patterns are regular expressions.
    from callpath_modeler.profile.regular import Machine

    try:
        return Machine(segment[1:]).search
    except ExpressionError as cause:
        raise UsageError(
            f"pattern {shortened(segment)!r} is malformed: {cause}",
            hint=r"behind ~: letters . [a-z] \d \w \s * + ? {2,3} ( ) | ^ $ \b, and (?i) in front",
        ) from cause


def _without_braces(segment: str) -> list[str]:
    """Return the expansions of ``{a,b}`` in a segment."""
    # Odd parts are choices. Braces without a comma are ordinary characters.
    parts = _BRACES.split(segment)
    found = [parts[0]]
    for choices, text in zip(parts[1::2], parts[2::2], strict=True):
        chosen = [f"{choice}{text}" for choice in choices.split(",")]
        if len(found) * len(chosen) > _MOST_CHOICES:
            raise UsageError(
                f"pattern {shortened(segment)!r} has more than {_MOST_CHOICES} alternatives",
                hint="use fewer braces {a,b}",
            )
        longest = len(chosen) * sum(map(len, found)) + len(found) * sum(map(len, chosen))
        if longest > _LONGEST:
            raise UsageError(
                f"pattern {shortened(segment)!r} has alternatives of more than {_LONGEST} "
                "characters",
                hint="use fewer or shorter braces {a,b}",
            )
        found = [f"{before}{choice}" for before in found for choice in chosen]
    return found


def _glob(segment: str) -> str:
    """Return the regular expression for ``*`` and ``?``; other characters match themselves.

    The text after a star matches at its first occurrence; others are not tried, because the first
    one leaves the most text for the rest. The time for a match is at most proportional to the
    product of both lengths.
    """
    first, *others = (re.escape(part).replace(r"\?", ".") for part in segment.split("*"))
    if not others:
        return first
    middle = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    return f"{first}{middle}.*{others[-1]}"


_ANY = "**"
_OF_PATTERNS = frozenset("/\\*?{}~@")
"""Special characters of patterns; a name that contains one is not suggested."""
_BITS = 62
"""Number of segments whose states fit into a machine integer."""
_MOST_ANY = 100
"""Maximum number of ``**`` in a pattern."""
_MOST_PARTS = 64
"""Maximum number of segments of a pattern for which a suggestion is searched."""
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
_DIGITS = "0123456789"
_QUALIFIERS = frozenset({"const", "volatile", "noexcept", "&", "&&"})


@dataclass(frozen=True)
class Patterns:
    """Index of the names of a call tree, for any number of patterns.

    The last six attributes are caches.

    Attributes
    ----------
    tree : the call tree
    name : [call paths] number of the name of each call path
    spelled : [names] spellings of each distinct name
    plain : numbers of names, by spelling
    matches : [names] True if the segment matches the name, by segment
    literal : numbers of the names with this spelling, by segment; None = the segment has wildcards
    meant : the most similar name, by segment
    steps : position in `reached` after a segment, by the position before it and the segment
    reached : call paths that a sequence of plain segments names from the root, ascending; the first
        entry holds the callers of the first segment
    found : call paths of patterns that `prepare` has searched
    """

    tree: CallTree
    name: IntArray
    spelled: tuple[tuple[str, ...], ...]
    plain: Mapping[str, Sequence[int]]
    matches: dict[str, BoolArray] = field(default_factory=dict)
    literal: dict[str, Sequence[int] | None] = field(default_factory=dict)
    meant: dict[str, str] = field(default_factory=dict)
    steps: dict[tuple[int, str], int] = field(default_factory=dict)
    reached: list[IntArray] = field(default_factory=list)
    found: dict[str, IntArray] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: CallTree) -> Patterns:
        """Return the index of the names of a tree."""
        code = tree.region.astype(np.intp) * len(tree.annotations) + tree.annotation
        _, first, name = np.unique(code, return_index=True, return_inverse=True)
        spelled = tuple(_spellings(tree, row) for row in first.tolist())
        plain: dict[str, list[int]] = {}
        for place, ways in enumerate(spelled):
            for way in {*ways}:
                plain.setdefault(way, []).append(place)
        return cls(tree, name, spelled, plain)

    @cached_property
    def ids(self) -> list[str]:
        """Ids of the call paths; they are cached here, because the tree does not cache them."""
        return self.tree.ids()

    def match(self, pattern: str) -> BoolArray:
        """Return True for the call paths that a pattern names, [call paths]."""
        mask = np.zeros(len(self.tree), bool)
        mask[self.rows(pattern)] = True
        return mask

    def rows(self, pattern: str) -> IntArray:
        """Return the call paths that a pattern names, ascending.

        Raises
        ------
        UsageError
            If the pattern is malformed.
        """
        if pattern in self.found:
            return self.found[pattern]
        if pattern.startswith("@"):
            return self._with_id(pattern[1:])
        segments = _segments(pattern)
        found = self._spelling(segments)
        if not len(found) and segments[0] != _ANY:
            found = self._spelling([_ANY, *segments])
        return found

    def prepare(self, patterns: Iterable[str]) -> None:
        """Search many patterns together, so that `rows` returns them at once.

        A file has up to 10^5 call paths from the root, which share their callers. Each caller is
        searched once, and all call paths of a depth are searched in one array. Patterns with
        special characters, or of call paths that share names, are left to `rows`.
        """
        levels: list[list[tuple[str, str, str]]] = []
        for pattern in patterns:
            path = "" if pattern in self.found or _UNPLAIN.search(pattern) else pattern
            while path and path not in self.found:
                caller, _, name = path.rpartition("/")
                depth = path.count("/")
                levels += [[] for _ in range(len(levels), depth + 1)]
                levels[depth].append((path, caller, name))
                self.found[path] = self._begins[:0]
                path = caller
        for depth, level in enumerate(levels):
            self._search(level, is_first=not depth)
        every = [path for level in levels for path, _, _ in level]
        for path in every:
            if not len(self.found[path]):
                del self.found[path]

    def _search(self, level: Sequence[tuple[str, str, str]], *, is_first: bool) -> None:
        """Search call paths of one depth whose callers were searched."""
        wanted, numbers = [], []
        for path, caller, name in level:
            rows = self._begins if is_first else self.found[caller]
            places = self.plain.get(name, ())
            if len(rows) == 1 == len(places):
                wanted.append(path)
                numbers.append((int(rows[0]) + 1) * len(self.spelled) + places[0])
            elif len(rows) and places:
                found = self._called(rows, places)
                found.sort()
                found.flags.writeable = False
                self.found[path] = found
        known, order = self._callees
        begin, end = (
            known.searchsorted(np.array(numbers, np.int64), side).tolist() for side in _SIDES
        )
        for path, first, last in zip(wanted, begin, end, strict=True):
            self.found[path] = order[first:last]

    def _spelling(self, segments: Sequence[str]) -> IntArray:
        """Return the call paths that segments name from the root."""
        names = [self._spelled_out(segment) for segment in segments]
        plain = [places for places in names if places is not None]
        if len(plain) == len(names):
            return self._along(segments, plain)
        if plain and segments[0] == _ANY and len(plain) == len(names) - 1:
            return self._ending_in(plain)
        return np.flatnonzero(self._from_root(segments))

    def _with_id(self, digits: str) -> IntArray:
        """Return the call paths whose ids begin with `digits`."""
        ids = self._in_order
        begin = bisect_left(ids, (digits,))
        rows = [row for _, row in takewhile(lambda each: each[0].startswith(digits), ids[begin:])]
        return np.array(sorted(rows), np.intp)

    @cached_property
    def _in_order(self) -> list[tuple[str, int]]:
        return sorted((digits, row) for row, digits in enumerate(self.ids))

    @cached_property
    def _callees(self) -> tuple[Int64Array, IntArray]:
        """Numbers of the pairs (caller, name), ascending, and the call path of each pair."""
        number = (self.tree.parent + np.int64(1)) * len(self.spelled) + self.name
        order = np.argsort(number, kind="stable")
        order.flags.writeable = False
        return number[order], order

    @cached_property
    def _begins(self) -> IntArray:
        """Callers of the first segment: no call path, or an artificial program root."""
        programs = [row for row in self.tree.roots.tolist() if self.tree.name(row) == PROGRAM]
        return np.array([ROOT, *programs], np.intp)

    def _along(self, segments: Sequence[str], names: Sequence[Sequence[int]]) -> IntArray:
        """Return the call paths with these names from the root on, ascending."""
        # Patterns of a file often share their first segments, so steps are cached.
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

    def _ending_in(self, names: Sequence[Sequence[int]]) -> IntArray:
        """Return the call paths whose last names are `names`."""
        found = [self._begins[:0], *(self._of_name[place] for place in names[-1])]
        rows = at = np.sort(np.concatenate(found))
        for places in reversed(names[:-1]):
            at = self._caller[at]
            fits = (at != ROOT) & np.isin(self.name[at], places)
            rows, at = rows[fits], at[fits]
        return rows

    @cached_property
    def _of_name(self) -> list[IntArray]:
        """Call paths of each name."""
        order = np.argsort(self.name, kind="stable")
        ends = np.cumsum(np.bincount(self.name, minlength=len(self.spelled)))
        return np.split(order, ends[:-1])

    @cached_property
    def _caller(self) -> IntArray:
        """Caller of each call path; `ROOT` also for callees of an artificial program root."""
        parent = self.tree.parent.astype(np.intp)
        return np.where(np.isin(parent, self._begins), ROOT, parent)

    def _called(self, rows: IntArray, places: Sequence[int]) -> IntArray:
        """Return the callees of `rows` with one of the names `places`, unordered."""
        numbers, order = self._callees
        wanted = (rows[:, None] + 1) * len(self.spelled) + np.array(places, dtype=np.int64)
        begin, end = (numbers.searchsorted(wanted.ravel(), side).tolist() for side in _SIDES)
        parts = [order[a:b] for a, b in zip(begin, end, strict=True)]
        return np.concatenate([order[:0], *parts])

    def _spelled_out(self, segment: str) -> Sequence[int] | None:
        """Return the names with this spelling, or None if the segment has wildcards."""
        if segment not in self.literal:
            plain = segment != _ANY and is_plain(segment)
            self.literal[segment] = self.plain.get(segment, ()) if plain else None
        return self.literal[segment]

    def _from_root(self, segments: Sequence[str]) -> BoolArray:
        # State k means that the first k segments have matched. The states of a call path follow
        # from those of its caller. A call path without states has no matches in its subtree.
        tree, any_number = self.tree, [k for k, s in enumerate(segments) if s == _ANY]
        # The states of a call path are the bits of an integer; many segments need Python integers.
        number = np.int64 if len(segments) < _BITS else object
        stays, done = sum(1 << k for k in any_number), 1 << len(segments)
        fits = np.zeros(len(self.spelled), number)
        for k, segment in enumerate(segments):
            fits |= self._fits(segment).astype(number) << k
        start = _skip_any(np.array([1], number), any_number)
        states = np.zeros(len(tree), number)
        # Patterns do not contain an artificial program root.
        begins = np.zeros(len(tree) + 1, bool)
        begins[self._begins] = True
        rows: NDArray[np.integer] = tree.roots
        while len(rows):
            caller = tree.parent[rows]
            before = np.where(begins[caller], start, states[caller]) & fits[self.name[rows]]
            states[rows] = _skip_any((before & stays) | ((before & ~stays) << 1), any_number)
            rows = tree.called_by(rows[(states[rows] & (done - 1) != 0) | begins[rows]])
        return np.asarray((states & done) != 0, dtype=np.bool_)

    def _fits(self, segment: str) -> BoolArray:
        """Return True for the names that a segment matches, [names]."""
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
        """Return a similar pattern that names at least one call path, or ""."""
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
        """Return the function that a segment names, or the most similar one, or ""."""
        if part not in self.meant:
            names = self._functions
            self.meant[part] = part if part in names else closest(part, names)
        return self.meant[part]

    @cached_property
    def _functions(self) -> list[str]:
        """Short names of functions without special characters of patterns."""
        names = sorted({short_name(region.name) for region in self.tree.regions})
        return [name for name in names if not _OF_PATTERNS & set(name)]


def match(tree: CallTree, pattern: str) -> BoolArray:
    """Return True for the call paths that a pattern names, [call paths]; see `Patterns.match`."""
    return Patterns.of(tree).match(pattern)


def matched(tree: CallTree, pattern: str) -> BoolArray:
    """Return the call paths that a pattern names, as `match` does.

    Raises
    ------
    UsageError
        If it names none.
    """
    found = match(tree, pattern)
    if not found.any():
        raise unmatched(tree, pattern)
    return found


def find_one(tree: CallTree, pattern: str) -> int:
    """Return the row of the only call path that `pattern` names.

    Raises
    ------
    UsageError
        If the pattern names no call path, or more than one.
    """
    rows = np.flatnonzero(match(tree, pattern))
    if len(rows) == 1:
        return int(rows[0])
    if len(rows):
        shown = rows[:4].tolist()
        named = zip(tree.ids(shown), tree.paths(shown), strict=True)
        some = ", ".join(f"@{short} {path}" for short, path in named)
        more = f" and {len(rows) - 4} more" if len(rows) > 4 else ""
        raise UsageError(
            f"{pattern!r} names {len(rows)} call paths", hint=f"choose one: {some}{more}"
        )
    raise unmatched(tree, pattern)


def unmatched(tree: CallTree, pattern: str) -> UsageError:
    """Return the error for a pattern that names no call path; the hint suggests a function."""
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
    >>> short_name("int f(double) const:31")
    'f:31'
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
    # The name of an anonymous namespace is gone, but its two colons are left.
    return words[-1].replace("::::", "::").removeprefix("::") + suffix


def _note(name: str) -> str:
    """Return the text after the arguments of a function, such as ``[with T = int]#2:31``, or ""."""
    end = len(name)
    # At most an ordinal, a line, and the ordinal of a call in this line.
    for _ in range(3):
        stem = name[:end].rstrip(_DIGITS)
        if len(stem) == end or not stem.endswith(("#", ":")) or stem.endswith("::"):
            break
        end = len(stem) - 1
    if not name.endswith("]", 0, end):
        return name[end:]
    # The brackets follow the arguments and contain no other brackets.
    begin = name.find(")[", max(0, name.rfind("]", 0, end - 1)), end)
    return name[begin + 1 :] if begin >= 0 else name[end:]


def _segments(pattern: str) -> list[str]:
    text = pattern.replace("->", "/").lstrip("/")
    ended = text.rstrip("/")
    # A slash after a backslash is part of a name.
    text = text[: len(ended) + 1] if ended.endswith("\\") else ended
    if not text:
        raise UsageError("empty call-path pattern", hint="e.g. 'main/**/MPI_*'")
    segments = [part.replace("\\/", "/") for part in re.split(r"(?<!\\)/", text)]
    if segments.count(_ANY) > _MOST_ANY:
        raise UsageError(
            f"pattern {shortened(pattern)!r} contains ** more than {_MOST_ANY} times",
            hint="e.g. 'main/**/MPI_*'",
        )
    return segments


def _skip_any(states: NDArray[np.integer], any_number: Sequence[int]) -> NDArray[np.integer]:
    for k in any_number:
        states = states | (states >> k & 1) << (k + 1)
    return states


def _spellings(tree: CallTree, row: int) -> tuple[str, ...]:
    """Return the full name, the short name, and the short name without scopes.

    A call from a line has all three twice, with the line and without it.
    """
    region: Region = tree.regions[tree.region[row]]
    note = tree.annotations[tree.annotation[row]]
    ways: tuple[str, ...] = ()
    for name in {region.name + note: 0, region.name + without_site(note): 0}:
        short = short_name(name)
        ways = (*ways, name, short, short.rsplit("::", 1)[-1])
    return ways
