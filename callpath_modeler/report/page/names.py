"""How call paths are written on a page: short, in full for who asks, and linked to their cards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.report.layout import shorten
from callpath_modeler.report.page.markup import Html, escaped, tag
from callpath_modeler.report.ranking import distinct_names

_ROOM = 90
"""Letters of a call path; from the middle of longer ones, names are left out."""
_FULL = 600
"""Letters of a call path in full: call chains are 50,000 calls deep, and this is one page."""


class Names:
    """Names of call paths.

    Parameters
    ----------
    tree : the call paths
    cards : those that have cards
    """

    def __init__(self, tree: CallTree, cards: NDArray[np.intp]) -> None:
        self._tree = tree
        self._ids = tree.ids()
        self._cards = {int(row) for row in cards}

    def mark(self, row: int) -> str:
        """Return the id that commands know a call path by."""
        return f"@{self._ids[row]}"

    def anchor(self, row: int) -> str:
        """Return the id of the card of a call path."""
        return f"c-{self._ids[row]}"

    def link(self, row: int, content: str) -> Html:
        """Return content that leads to the card of a call path, where there is one."""
        if row not in self._cards:
            return escaped(content)
        return tag("a", content, href=f"#{self.anchor(row)}")

    def path(self, row: int, names: Sequence[str]) -> Html:
        """Return a call path in a line that may break behind each slash.

        Parameters
        ----------
        names : of which it is made
        """
        text = shorten(names, _ROOM)
        full = self._tree.path(row)
        told = None if full == text else shorten([full], _FULL)
        parts = Html("<wbr>").join(escaped(part) for part in text.replace("/", "/\0").split("\0"))
        return tag("code", Html(parts), title=told)

    def paths(self, rows: NDArray[np.intp]) -> list[Html]:
        """Return call paths, with short function names unless two would then look the same."""
        named = distinct_names(self._tree, rows, full=False)
        return [self.path(int(row), one) for row, one in zip(rows, named, strict=True)]
