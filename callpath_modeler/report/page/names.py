"""Names of call paths on a page: short, in full on demand, and linked to their cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from callpath_modeler.arrays import IntArray
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.report.layout import shorten
from callpath_modeler.report.page.markup import Html, escaped, joined, tag
from callpath_modeler.report.ranking_text import distinct_names

_ROOM = 90
"""Longest call path, in characters; longer ones lose names in the middle."""
_FULL = 600
"""Longest full call path, in characters: call chains can be 50,000 calls deep."""


def cut(text: str, room: int = 300) -> str:
    """Return a text of at most `room` characters; longer ones lose their middle."""
    half = room // 2
    return text if len(text) <= room else f"{text[:half]} … {text[-half:]}"


def shortened(names: Sequence[str]) -> str:
    """Return a call path; long ones lose names in the middle."""
    return shorten([cut(name, _ROOM) for name in names], _ROOM)


class CallPathLinks:
    """Names of call paths.

    Parameters
    ----------
    tree : the call paths
    cards : the call paths with cards
    """

    def __init__(self, tree: CallTree, cards: IntArray) -> None:
        self._tree = tree
        self._cards = {int(row) for row in cards}

    def mark(self, row: int) -> str:
        """Return the id of a call path that commands accept."""
        return f"@{self._tree.id_of(row)}"

    def anchor(self, row: int) -> str:
        """Return the id of the card of a call path."""
        return f"c-{self._tree.id_of(row)}"

    def link(self, row: int, content: str) -> Html:
        """Return content that links to the card of a call path, if it has one."""
        if row not in self._cards:
            return escaped(content)
        return tag("a", content, href=f"#{self.anchor(row)}")

    def paths(self, rows: IntArray) -> list[Html]:
        """Return call paths in lines that may break after each slash.

        Function names are short, and long paths lose names in the middle. Paths that look the same
        are followed by their ids.
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
