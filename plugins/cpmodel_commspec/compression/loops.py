"""Repetition in a sequence, found in one pass: nested loops that unroll to exactly what was there.

The idea is that of ScalaTrace (Noeth et al., JPDC 2009): whenever the end of what was compressed
so far repeats what stands before it, the two become a loop. Only places where the last element
occurred before are looked at, so that the cost is near linear.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

_TRIES = 64
"""Earlier occurrences of an element that may end the first round of a loop."""

_BASE, _MODULUS = 0x1F123BB5159A55E5, (1 << 61) - 1


@dataclass(frozen=True, slots=True)
class Loop:
    """What is repeated `count` times."""

    count: int
    body: tuple[Node, ...]


Node: TypeAlias = "int | Loop"


def compress(sequence: Iterable[int]) -> tuple[Node, ...]:
    """Return a sequence of numbers, none below zero, as nested loops."""
    folding = _Folding()
    for element in sequence:
        folding.push(element)
    return folding.nodes()


class _Folding:
    """The compressed sequence so far; loops are elements below zero.

    Parts of it are compared by hashes of all beginnings, and only equal ones element by element.
    """

    def __init__(self) -> None:
        self._elements: list[int] = []
        self._hashes, self._powers = [0], [1]
        self._loops: list[tuple[int, tuple[int, ...]]] = []
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self._places: defaultdict[int, list[int]] = defaultdict(list)

    def push(self, element: int) -> None:
        """Add an element, and fold as long as the end repeats."""
        self._append(element)
        while self._fold():
            pass

    def nodes(self) -> tuple[Node, ...]:
        """Return the sequence."""
        made: list[Loop] = []

        def node(element: int) -> Node:
            return element if element >= 0 else made[~element]

        # A loop is numbered after those in it.
        for count, body in self._loops:
            made.append(Loop(count, tuple(map(node, body))))
        return tuple(map(node, self._elements))

    def _fold(self) -> bool:
        elements = self._elements
        end, last = len(elements), elements[-1]
        # The last place is that of the element itself.
        for place in self._places[last][-2 : -_TRIES - 2 : -1]:
            length = end - 1 - place
            found = elements[place]
            if found < 0:
                count, body = self._loops[~found]
                if len(body) == length and body == tuple(elements[place + 1 :]):
                    self._replace(length + 1, count + 1, body)
                    return True
            if found == last and self._is_repeated(length):
                self._replace(2 * length, 2, tuple(elements[place + 1 :]))
                return True
        return False

    def _is_repeated(self, length: int) -> bool:
        """Tell whether the last `length` elements are the same as those before them."""
        elements, hashes = self._elements, self._hashes
        end = len(elements)
        middle, begin = end - length, end - 2 * length
        if begin < 0 or elements[middle - 2 + (length == 1)] != elements[end - 2 + (length == 1)]:
            return False
        power = self._powers[length]
        first = (hashes[middle] - hashes[begin] * power) % _MODULUS
        second = (hashes[end] - hashes[middle] * power) % _MODULUS
        return first == second and elements[begin:middle] == elements[middle:]

    def _replace(self, length: int, count: int, body: tuple[int, ...]) -> None:
        for _ in range(length):
            self._remove()
        loop = count, body
        if loop not in self._numbers:
            self._numbers[loop] = ~len(self._loops)
            self._loops.append(loop)
        self._append(self._numbers[loop])

    def _append(self, element: int) -> None:
        for known in self._ends(element):
            self._places[known].append(len(self._elements))
        self._elements.append(element)
        self._hashes.append((self._hashes[-1] * _BASE + element) % _MODULUS)
        if len(self._powers) < len(self._hashes):
            self._powers.append(self._powers[-1] * _BASE % _MODULUS)

    def _remove(self) -> None:
        self._hashes.pop()
        for known in self._ends(self._elements.pop()):
            self._places[known].pop()

    def _ends(self, element: int) -> tuple[int, ...]:
        """Return what the round of a loop that ends here ends in: the element, or its own."""
        return (element,) if element >= 0 else (element, self._loops[~element][1][-1])


def unroll(nodes: Sequence[Node]) -> list[int]:
    """Return the sequence that loops stand for."""
    flat: list[int] = []
    for node in nodes:
        flat += [node] if isinstance(node, int) else unroll(node.body) * node.count
    return flat
