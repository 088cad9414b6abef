"""A Sphinx extension that shortens the types of arrays in signatures."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_ARRAY = re.compile(r"(?:numpy\.)?ndarray\[tuple\[Any, \.\.\.\], (?:numpy\.)?dtype\[([\w.]+)\]\]")


def short(text: str) -> str:
    """Return a signature with short types of arrays.

    >>> short("numpy.ndarray[tuple[Any, ...], numpy.dtype[numpy.float64]]")
    'NDArray[float64]'
    """
    return _ARRAY.sub(lambda match: f"NDArray[{match[1].removeprefix('numpy.')}]", text)


def _signature(
    _app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, arguments: str, result: str
) -> tuple[str | None, str | None]:
    return (arguments and short(arguments), result and short(result))


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the extension to Sphinx."""
    app.connect("autodoc-process-signature", _signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
