"""Options of views of the call tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from callpath_modeler.cli.option_groups import (
    NUMBER,
    F,
    WholeNumber,
    add_options,
    option,
    option_group,
    was_asked,
)
from callpath_modeler.cli.options import refuse_both, with_standard_input
from callpath_modeler.errors import UsageError
from callpath_modeler.numerals import decimal_of

if TYPE_CHECKING:
    from callpath_modeler.profile.view_request import Sort, ViewRequest

_TOP_OF_A_TABLE = 10

_VIEW = (
    option(
        "--view",
        "Callers with callees; functions with callers; functions only.",
        type=click.Choice(["top-down", "bottom-up", "flat"]),
        default="top-down",
    ),
    option(
        "--group A,B",
        "Levels of the flat view: paradigm, module, file, region. Default: region.",
        key=None,
    ),
    option("--depth N", "Number of levels.", type=WholeNumber(1), key=None),
    option(
        "--min-share SHARE",
        "Smaller shares have a common line. Default: 1% in a table, else 0.",
        written=NUMBER,
    ),
    option("--zoom PATH", "Start at this node of the view.", default="", key=None),
    option(
        "--filter PATTERN",
        "Show call paths that match, e.g. '**/MPI_*'; the others share lines.",
        "keep",
        default="",
        key=None,
    ),
    option(
        "--open PATH",
        "Open the tree down to this node; PATH/** also opens its subtree.",
        "opened",
        multiple=True,
        key=None,
    ),
    option("--close PATH", "Hide the subtree of this node.", "closed", multiple=True, key=None),
    option(
        "--lines N",
        "Number of lines from which nothing is opened.",
        "most",
        type=WholeNumber(1),
        key=None,
    ),
)
_ORDERS = ("value", "measured", "high", "excess", "growth", "trust", "name")
_ORDERS_OF_TWO = ("difference", "ratio", "new", "base")
_SORT = (
    option(
        "--sort ORDER",
        "Order of siblings: value, measured, high (the upper limit of the band), excess, growth, "
        "trust or name; with --compare: difference, ratio, new, base or name. Default: value; "
        "excess between two scales; difference of two experiments.",
        type=click.Choice([*_ORDERS, *_ORDERS_OF_TWO]),
    ),
    option("--reverse", "Reverse the order: smallest first.", key=None),
)


def _other(ctx: click.Context, option: click.Parameter, given: str) -> str:
    """Return the source of the earlier experiment; ``-`` is standard input."""
    return with_standard_input(ctx, option, (given,))[0]


COMPARE = option(
    "--compare BASE",
    "Show an earlier experiment beside this one, in one tree.",
    "other",
    callback=_other,
    default="",
    key=None,
)
"""The option of views of two experiments."""


def view_options(command: F) -> F:
    """Add the options of a view; they arrive as ``viewing``.

    It is a function that returns a `ViewRequest` for format, ``top``, ``inclusive`` and
    ``exclusive``.
    """
    return option_group(command, _VIEW, "viewing", _make_view)


def sort_options(command: F) -> F:
    """Add ``sort`` and ``reverse``: the order of siblings in a view."""
    return add_options(command, _SORT)


def chosen_order(ctx: click.Context, *, is_pair: bool) -> Sort | None:
    """Return the order of `--sort`; None = the default.

    A configuration is for all views, so its order is not used where there is no such order.

    Raises
    ------
    UsageError
        If the command line asks for an order of two experiments and there is one, or the reverse.
    """
    from callpath_modeler.profile.view_request import Sort

    sort: str | None = ctx.params["sort"]
    if sort is None or sort == Sort.NAME or (sort in _ORDERS_OF_TWO) == is_pair:
        return None if sort is None else Sort(sort)
    if not was_asked(ctx, "sort"):
        return None
    if is_pair:
        raise UsageError(
            f"--sort {sort}: two experiments have other orders",
            hint=f"one of {', '.join(_ORDERS_OF_TWO)}, name",
        )
    raise UsageError(
        f"--sort {sort} is for two experiments",
        hint="add --compare BASE to cpmodel views; in the browser, s changes the order",
    )


def _make_view(
    *, view: str, group: str | None, min_share: str | None, **same: Any
) -> Callable[[str, int | None, bool, bool], ViewRequest]:
    from callpath_modeler.profile.groups import Grouping
    from callpath_modeler.profile.view_request import ViewRequest
    from callpath_modeler.profile.views import ViewKind

    kind = ViewKind(view)
    if group is not None and kind is not ViewKind.FLAT:
        raise UsageError("--group is for the flat view", hint="add --view flat")
    try:
        by = tuple(Grouping(name) for name in (group or "region").split(","))
    except ValueError:
        raise UsageError(
            f"--group {group!r}: no such level", hint=f"of {', '.join(Grouping)}"
        ) from None

    def view_request(form: str, top: int | None, inclusive: bool, exclusive: bool) -> ViewRequest:
        refuse_both(inclusive=inclusive, exclusive=exclusive)
        for_people = form == "table"
        share = "1%" if min_share is None and for_people else min_share or "0"
        first = _TOP_OF_A_TABLE if top is None and for_people else top
        order = inclusive if inclusive or exclusive else None
        return ViewRequest(
            kind=kind,
            by=by,
            inclusive=order,
            top=first,
            least=parse_share(share, "--min-share"),
            **same,
        )

    return view_request


def parse_share(text: str, option: str) -> float:
    """Return the fraction for ``1%`` or ``0.01``, or raise `UsageError`."""
    number = text.strip().removesuffix("%")
    try:
        share = decimal_of(number) / (100 if "%" in text else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"{option} {text!r} is not a share", hint="e.g. 1% or 0.01")
    return share
