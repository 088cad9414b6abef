"""How call paths are written on a page: short, in full for who asks, and linked to their cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from callpath_modeler.arrays import IntArray
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.report.layout import shorten
from callpath_modeler.report.page.markup import Html, escaped, joined, tag
from callpath_modeler.report.ranking import distinct_names

_ROOM = 90
"""Letters of a call path; from the middle of longer ones, names are left out."""
_FULL = 600
"""Letters of a call path in full: call chains are 50,000 calls deep, and this is one page."""


def cut(text: str, room: int = 300) -> str:
    """Return a text without its middle where it has more letters than `room`."""
    half = room // 2
    return text if len(text) <= room else f"{text[:half]} … {text[-half:]}"


def shortened(names: Sequence[str]) -> str:
    """Return a call path without names from its middle where it is long."""
    return shorten([cut(name, _ROOM) for name in names], _ROOM)


class CallPathLinks:
    """Names of call paths.

    Parameters
    ----------
    tree : the call paths
    cards : those that have cards
    """

    def __init__(self, tree: CallTree, cards: IntArray) -> None:
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

    def paths(self, rows: IntArray) -> list[Html]:
        """Return call paths in lines that may break behind each slash.

        Function names are short, and long paths lack names from their middle; those that then look
        the same have their ids beside them.
        """
        named = distinct_names(self._tree, rows, full=False)
        texts = [shortened(names) for names in named]
        count = Counter(texts)
        pairs = zip(rows.tolist(), texts, strict=True)
        return [self._path(row, text, alike=count[text] > 1) for row, text in pairs]

    def _path(self, row: int, text: str, *, alike: bool) -> Html:
        full = self._tree.path(row)
        told = None if full == text else cut(full, _FULL)
        parts = Html("<wbr>").join(escaped(part) for part in text.replace("/", "/\0").split("\0"))
        beside = tag("span", f" {self.mark(row)}", class_="aside") if alike else ""
        return joined(tag("code", Html(parts), title=told), beside)
