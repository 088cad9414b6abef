"""HTML markup in which text is escaped, so that no content can break it."""

from __future__ import annotations

import html
import re

_NOT_HTML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_VOID = frozenset({"br", "col", "input", "link", "meta", "circle", "line", "path", "polygon"})
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

Attribute = str | float | bool | None


class Html(str):
    """Markup, in contrast to plain text."""

    __slots__ = ()


def escaped(text: str) -> Html:
    """Return text as markup; characters that HTML forbids become replacement characters."""
    if isinstance(text, Html):
        return text
    return Html(html.escape(_NOT_HTML.sub(_REPLACEMENT, text)))


def tag(name: str, /, *children: str, **attributes: Attribute) -> Html:
    """Return an element.

    Parameters
    ----------
    name : name of the element
    children : text, which is escaped, and markup, which is not
    attributes : ``class_`` is class, ``aria_label`` is aria-label; True = an attribute without a
        value; None and False = no attribute
    """
    pairs = (
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_value(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    start = f"<{name}{''.join(pairs)}>"
    if name in _VOID:
        return Html(start if name in {"br", "col", "input", "link", "meta"} else start[:-1] + "/>")
    return Html(f"{start}{joined(*children)}</{name}>")


def joined(*children: str) -> Html:
    """Return text and markup, concatenated."""
    return Html("".join(map(escaped, children)))


def _value(value: str | float) -> str:
    return escaped(value) if isinstance(value, str) else f"{value:g}"


def number(value: float, text: str) -> Html:
    """Return a number as formatted text, with the full value for programs."""
    return tag("data", text, value=repr(float(value)))


def table(
    header: list[Html],
    rows: list[Html],
    *,
    caption: str,
    foot: tuple[Html, ...] = (),
    narrow: bool = False,
) -> Html:
    """Return a table that scrolls sideways where it is wider than the screen.

    Parameters
    ----------
    header : cells of the head
    rows, foot : rows
    caption : description for screen readers
    narrow : the table rarely scrolls, so the tab key skips it
    """
    whole = tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", tag("tr", *header)),
        tag("tbody", *rows),
        tag("tfoot", *foot) if foot else "",
    )
    if narrow:
        return tag("div", whole, class_="wide")
    return scrolling(caption, whole)


def scrolling(name: str, content: Html) -> Html:
    """Return content that scrolls sideways, also by keyboard."""
    return tag("div", content, class_="wide", role="region", tabindex="0", aria_label=name)


def head(text: str, *, right: bool = False, kind: str = "") -> Html:
    """Return the head of a column; `kind` is its class for styles."""
    return tag("th", text, scope="col", class_=_classes(right, kind))


def cell(content: str, *, right: bool = False, kind: str = "") -> Html:
    """Return a cell."""
    return tag("td", content, class_=_classes(right, kind))


def _classes(right: bool, kind: str) -> str | None:
    return " ".join(["n"] * right + [kind] * bool(kind)) or None


def plain_table(rows: list[tuple[str, ...]], caption: str) -> Html:
    """Return a table of texts; its first row is the head, its first column names the rows."""
    first, *others = rows
    body = [
        tag("tr", tag("th", one[0], scope="row"), *(cell(text) for text in one[1:]))
        for one in others
    ]
    return table([head(text) for text in first], body, caption=caption, narrow=True)


def pairs(items: list[tuple[str, str]]) -> Html:
    """Return a list of terms and their descriptions."""
    return tag("dl", *(tag("div", tag("dt", word), tag("dd", text)) for word, text in items))
