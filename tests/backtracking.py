"""The steps that Python's regular expressions take: a matcher that tries as they do, and counts.

The matcher of `re` goes back to the last choice wherever it fails. How often it does that tells
what an expression costs, the same on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _compiler, _parser
from re import _constants as ops
from typing import Any

MOST = 1_000_000
"""Steps after which an expression is given up."""

_REPEATS = {ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT}


class TooManyError(AssertionError):
    """An expression took more steps than any that is linear."""


class Counting:
    """An expression that counts the steps of its matches.

    Attributes
    ----------
    steps : so far
    """

    def __init__(self, expression: re.Pattern) -> None:
        flags = expression.flags
        if isinstance(expression.pattern, bytes):
            flags &= ~re.UNICODE
        self.parsed, self.flags, self.steps = _parser.parse(expression.pattern, flags), flags, 0
        self.code: list[tuple[Any, ...]] = []
        self._write(self.parsed)
        self._add("end")

    def search(self, text, *, whole: bool = False) -> tuple[int, int] | None:
        """Return where the expression is found first."""
        return next(self.found(text, range(len(text) + 1), whole=whole), None)

    def match(self, text) -> tuple[int, int] | None:
        """Return how far the expression reaches from the beginning."""
        return next(self.found(text, range(1)), None)

    def fullmatch(self, text) -> tuple[int, int] | None:
        """Return the whole if the expression is all of it."""
        return next(self.found(text, range(1), whole=True), None)

    def everywhere(self, text) -> list[tuple[int, int]]:
        """Return all places, as `finditer` does."""
        return [*self.found(text, range(len(text) + 1))]

    def found(self, text, begins: range, *, whole: bool = False) -> Iterator[tuple[int, int]]:
        """Yield from where to where the expression reaches, from each of some places."""
        begin, is_empty_refused = begins.start, False
        while begin < begins.stop:
            least = begin + 1 if is_empty_refused else begin
            end = self._run(self.code, text, begin, least, whole=whole)
            is_empty_refused = False
            if end is None:
                begin += 1
                continue
            yield begin, end
            # An empty match is not found at the same place again.
            is_empty_refused, begin = begin == end, end

    def _add(self, *step: Any) -> int:
        self.code.append(step)
        return len(self.code) - 1

    def _write(self, nodes: Iterable) -> None:
        for op, about in nodes:
            if op in _REPEATS:
                self._write_repeat(op, *about)
            elif op is ops.BRANCH:
                self._write_branch(about[1])
            elif op is ops.SUBPATTERN:
                group, *_, inner = about
                self._add("mark", (group, 0))
                self._write(inner)
                self._add("mark", (group, 1))
            elif op is ops.ATOMIC_GROUP:
                self._write_atomic(lambda inner=about: self._write(inner))
            elif op in (ops.ASSERT, ops.ASSERT_NOT):
                self._write_look(op is ops.ASSERT, *about)
            elif op is ops.GROUPREF:
                self._add("again", about)
            else:
                self._write_one(op, about)

    def _write_one(self, op, about) -> None:
        assert op in {ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN, ops.AT}, op
        one = _compiler.compile(_parser.SubPattern(self.parsed.state, [(op, about)]), self.flags)
        self._add("at" if op is ops.AT else "one", one)

    def _write_repeat(self, op, least: int, most: int, inner) -> None:
        if op is ops.POSSESSIVE_REPEAT:
            self._write_atomic(lambda: self._write_repeat(ops.MAX_REPEAT, least, most, inner))
            return
        is_greedy = op is ops.MAX_REPEAT
        for _ in range(least):
            self._write(inner)
        if most is ops.MAXREPEAT:
            split = self._add("split")
            self._add("here", split)
            self._write(inner)
            self._add("moved", split)
            self._add("jump", split)
            self._choose(split, is_greedy=is_greedy)
            return
        splits = []
        for _ in range(most - least):
            splits.append(self._add("split"))
            self._write(inner)
        for split in splits:
            self._choose(split, is_greedy=is_greedy)

    def _choose(self, split: int, *, is_greedy: bool) -> None:
        ways = (split + 1, len(self.code))
        self.code[split] = ("split", *(ways if is_greedy else ways[::-1]))

    def _write_branch(self, branches) -> None:
        jumps = []
        for number, branch in enumerate(branches):
            is_last = number == len(branches) - 1
            split = None if is_last else self._add("split")
            self._write(branch)
            if split is not None:
                jumps.append(self._add("jump"))
                self._choose(split, is_greedy=True)
        for jump in jumps:
            self.code[jump] = ("jump", len(self.code))

    def _write_atomic(self, write) -> None:
        begin = self._add("begin", len(self.code))
        write()
        self._add("cut", begin)

    def _write_look(self, is_wanted: bool, direction: int, inner) -> None:
        outer, self.code = self.code, []
        self._write(inner)
        self._add("end")
        code, self.code = self.code, outer
        low, high = inner.getwidth()
        assert direction > 0 or low == high
        self._add("look", is_wanted, 0 if direction > 0 else low, code)

    def _run(self, code, text, begin: int, least: int, *, whole: bool = False, marks=None):  # noqa: C901, PLR0912
        """Return where a match that begins at a place ends; None if there is none."""
        stack: list[tuple[int, int, dict]] = [(0, begin, marks or {})]
        while stack:
            at, place, marks = stack.pop()
            while True:
                self.steps += 1
                if self.steps > MOST:
                    raise TooManyError(f"more than {MOST} steps")
                kind, *about = code[at]
                at += 1
                if kind == "one":
                    if place >= len(text) or not about[0].match(text[place : place + 1]):
                        break
                    place += 1
                elif kind == "split":
                    stack.append((about[1], place, marks))
                    at = about[0]
                elif kind == "jump":
                    at = about[0]
                elif kind in {"mark", "here"}:
                    marks = {**marks, about[0]: place}
                elif kind == "moved":
                    if marks[about[0]] == place:
                        at += 1
                elif kind == "begin":
                    marks = {**marks, ("height", about[0]): len(stack)}
                elif kind == "cut":
                    del stack[marks["height", about[0]] :]
                elif kind == "at":
                    if not about[0].match(text, place):
                        break
                elif kind == "again":
                    held = text[marks[about[0], 0] : marks[about[0], 1]]
                    self.steps += len(held)
                    if text[place : place + len(held)] != held:
                        break
                    place += len(held)
                elif kind == "look":
                    is_wanted, back, inner = about
                    start = place - back
                    seen = start >= 0 and self._run(inner, text, start, start, marks=marks)
                    if (seen is not None and seen is not False) != is_wanted:
                        break
                elif place < least or (whole and place != len(text)):
                    break
                else:
                    return place
        return None
