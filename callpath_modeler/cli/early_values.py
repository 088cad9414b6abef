"""Values of options that are invalid whatever the profiles contain."""

from __future__ import annotations

from typing import Any

import click


def check_values(ctx: click.Context) -> None:
    """Refuse values of options that no profile could make valid.

    Raises
    ------
    UsageError
        If a target, a pair of scales or the source of a parameter is invalid.
    """
    _check_targets(ctx.params)
    for text in ctx.params.get("parameters") or ():
        from callpath_modeler.readers.parameters import check_source

        name, _, source = text.partition("=")
        if name and source:
            check_source(name, source)


def _check_targets(given: dict[str, Any]) -> None:
    target, at = given.get("target"), given.get("at")
    words = [one for one in ((target, None), (None, at)) if isinstance(one[0] or one[1], str)]
    pairs = given.get("pairs") or ()
    if not words and not pairs:
        return
    # It imports numpy, which many commands do not need.
    from callpath_modeler.question import parse_pairs, parse_target

    for target_text, at_text in words:
        parse_target(target_text, at_text, given.get("parameter"))
    parse_pairs(pairs)
