"""A Sphinx extension for headings with a named anchor, ``## Title {#anchor}``."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from myst_parser.slugs import github_slugify
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

_ANCHOR = re.compile(r"\s*\{#([\w-]+)\}$")


def slug(title: str) -> str:
    """Return the anchor of a heading: the named one, or else the one that code hosts generate.

    >>> slug("Sums of models {#sums}"), slug("Sums of models")
    ('sums', 'sums-of-models')
    """
    named = _ANCHOR.search(title)
    return named[1] if named else github_slugify(title)


class HideAnchors(SphinxTransform):
    """A transformation that removes the names of anchors from headings."""

    default_priority = 100

    def apply(self, **_: Any) -> None:
        """Change the headings of one page."""
        for title in self.document.findall(nodes.title):
            last = title.next_node(nodes.Text, descend=True) if len(title) == 1 else title[-1]
            if isinstance(last, nodes.Text):
                last.parent.replace(last, nodes.Text(_ANCHOR.sub("", last)))


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the extension to Sphinx."""
    app.add_transform(HideAnchors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
