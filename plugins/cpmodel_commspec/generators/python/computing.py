"""Computation of generated programs in Python: the tables of seconds of each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cpmodel_commspec.computation import Computation, Share
from cpmodel_commspec.specification import Specification, Step, walk


def table(told: Specification) -> str:
    """Return the table of computation; "" if no rank computes.

    The line of what comes after the last operation is that after the last line.
    """
    rows: list[str] = []
    for line, (node, _) in enumerate(walk(told.body), 1):
        if isinstance(node, Step) and node.computing is not None:
            rows += _rows(line, node.computing)
    if told.ending is not None:
        rows += _rows(told.lines + 1, told.ending)
    if not rows:
        return ""
    about = "# line, whether of first rounds, ranks, whether long rounds come together, key, bins"
    return f"COMPUTATION = (\n    {about}\n" + "".join(f"    {row},\n" for row in rows) + ")\n"


def _rows(line: int, told: Computation) -> Iterator[str]:
    for is_first, shares in enumerate((told.usual, told.first)):
        for share in shares:
            bins = "".join(f"({end}, {seconds!r}), " for end, seconds in _bins(share)).rstrip()
            yield (
                f"({line}, {bool(is_first)}, {_ranks(share.ranks)}, {share.is_common}, "
                f"{told.key + is_first}, ({bins}))"
            )


def _bins(share: Share) -> Iterator[tuple[int, float]]:
    """Yield the number of seconds up to the end of each bin, and their mean."""
    end = 0
    for count, mean in zip(share.seconds.counts, share.seconds.means, strict=True):
        end += count
        yield end, mean


def _ranks(ranks: Sequence[int]) -> str:
    if len(ranks) > 1 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"range({ranks[0]}, {ranks[-1] + 1})"
    return f"({''.join(f'{rank}, ' for rank in ranks).rstrip()})"
