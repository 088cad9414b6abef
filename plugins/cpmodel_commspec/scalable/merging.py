"""Merge of the programs of all ranks of all traces into one, with loops of different rounds.

This differs from `cpmodel_commspec.compression.merging` in one respect: the rounds of a loop may
depend on the number of processes. So loops of different traces become one although their counts
differ, and operations become the only round of a loop that other traces repeat.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cpmodel_commspec.compression.merging import (
    Join,
    Line,
    Merger,
    Nodes,
    Rounds,
    as_loop,
    lines_of,
)

_ONCE = 1
"""Cost of a loop of one round around lines."""


class ScalableMerger(Merger):
    """Merge of programs.

    Parameters
    ----------
    trace_of : the trace of each program
    free : tokens that ranks of one trace may repeat a different number of times
    """

    gain, gain_of_equal, gain_of_rounds, joins_equal = 4, 1, 1, False

    def __init__(self, trace_of: Sequence[int], free: Collection[int]) -> None:
        self._trace_of, self._free = trace_of, free

    def _place(self, program: Nodes, _length: int, number: int) -> tuple[int, ...]:
        """Return the sort key of a program: the one of most lines, of the largest trace."""
        return -lines_of(program), -self._trace_of[number], number

    def _joins(self, one: Nodes, other: Nodes, a: int, b: int) -> list[tuple[Join, int]]:
        """Return the joins that end with the nodes before `a` and `b`, and what each is worth."""
        x, y = one[a - 1], other[b - 1]
        found = super()._joins(one, other, a, b)
        if isinstance(x, Rounds) and not isinstance(y, Rounds):
            for n in range(1, min(b, len(x.body)) + 1):
                gain = self._gain_once(x, other[b - n : b])
                if gain:
                    found.append((Join(a - 1, a, b - n, b), gain))
        if isinstance(y, Rounds) and not isinstance(x, Rounds):
            for n in range(1, min(a, lines_of(one)) + 1):
                gain = self._gain_once(y, one[a - n : a])
                if gain:
                    found.append((Join(a - n, a, b - 1, b), gain))
        return found

    def _gain_once(self, loop: Rounds, nodes: Nodes) -> int:
        """Return what is won if nodes are a round of a loop; 0 if they are not."""
        if any(isinstance(node, Rounds) for node in nodes):
            return 0
        if not self._is_free(loop) and len(nodes) != len(loop.body):
            return 0
        single = as_loop(nodes)
        if not self._may_join(loop, single):
            return 0
        gain, joins = self._longest(loop.body, nodes)
        is_whole = sum(join.d - join.c for join in joins) == len(nodes)
        return gain - _ONCE if is_whole else 0

    def _may_join(self, one: Rounds, other: Rounds) -> bool:
        """Tell whether loops have equal rounds in each trace that has both, or free ones."""
        if self._is_free(one) or self._is_free(other):
            return True
        rounds: dict[int, set[int]] = {}
        for program, count in (*one.counts.items(), *other.counts.items()):
            rounds.setdefault(self._trace_of[program], set()).add(count)
        return all(len(own) == 1 for own in rounds.values())

    def _is_free(self, loop: Rounds) -> bool:
        return any(isinstance(node, Line) and node.token in self._free for node in loop.body)
