"""Statements that do not repeat: the lines that grow with the length of the run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from callpath_modeler.printable import printable, shortened
from callpath_modeler.units import counted
from cpmodel_commspec.compression.merging import Shared, SharedNode
from cpmodel_commspec.operations import Shape
from cpmodel_commspec.specification import Irregular

_LEAST_LINES = 16
_LINES_PER_PARTNER = 3
"""A statement is irregular from so many lines on, if one rank has so many of each partner."""

_SHOWN = 3


def irregular(
    merged: Sequence[SharedNode],
    meaning: Sequence[tuple[int, int]],
    shapes: Sequence[Shape],
    ranks_of: Mapping[int, Sequence[int]],
    *,
    is_any: bool = False,
) -> tuple[Irregular, ...]:
    """Return the statements that do not repeat, those of most lines first.

    Parameters
    ----------
    merged : the program of all ranks
    meaning : statement of each token: a shape and a tag
    ranks_of : the ranks of each program
    is_any : whether to return all statements
    """
    lines: Counter[tuple[int, tuple[int, int]]] = Counter()
    partners: defaultdict[tuple[int, tuple[int, int]], set[int]] = defaultdict(set)
    for node in _operations(merged):
        for program in node.who:
            key = program, meaning[node.token]
            lines[key] += 1
            partners[key].add(node.token)
    found: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for key, count in lines.items():
        program, (shape, _) = key
        if is_any or count >= max(_LEAST_LINES, _LINES_PER_PARTNER * len(partners[key])):
            found[shape][program] = max(count, found[shape].get(program, 0))
    told = [
        Irregular(
            shapes[shape].site,
            shapes[shape].call or shapes[shape].name or str(shapes[shape].kind),
            tuple(sorted(rank for program in programs for rank in ranks_of[program])),
            max(programs.values()),
        )
        for shape, programs in found.items()
    ]
    return tuple(sorted(told, key=lambda one: -one.lines))


def irregular_text(found: Sequence[Irregular]) -> str:
    """Return the statements that do not repeat, in words."""
    parts = []
    for one in found[:_SHOWN]:
        first, *others = one.ranks
        who = f"rank {first}" + (f" and {counted(len(others), 'other')}" if others else "")
        path = shortened(printable("/".join((*one.site[1:], one.call))))
        parts.append(f"{one.lines} lines for {path} of {who}")
    if len(found) > _SHOWN:
        parts.append(f"{counted(len(found) - _SHOWN, 'more statement')}")
    return ", ".join(parts)


def lines_of(merged: Sequence[SharedNode]) -> int:
    """Return the number of operations and loops."""
    return sum(1 if isinstance(x, Shared) else 1 + lines_of(x.body) for x in merged)


def _operations(merged: Sequence[SharedNode]) -> Iterator[Shared]:
    for node in merged:
        if isinstance(node, Shared):
            yield node
        else:
            yield from _operations(node.body)
