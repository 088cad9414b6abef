"""Options of views of the call tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.option_groups import F, WholeNumber, add_options, option_group, was_asked
from callpath_modeler.cli.options import refuse_both, with_standard_input
from callpath_modeler.errors import UsageError
from callpath_modeler.numerals import decimal_of

if TYPE_CHECKING:
    from callpath_modeler.profile.view_request import Sort, ViewRequest

_TOP_OF_A_TABLE = 10

_VIEW = (
    click.option(
        "--view",
        type=click.Choice(["top-down", "bottom-up", "flat"]),
        default="top-down",
        show_default=True,
        help="Callers with callees; functions with callers; functions only.",
    ),
    click.option(
        "--group",
        metavar="A,B",
        help="Levels of the flat view: paradigm, module, file, region. Default: region.",
    ),
    click.option("--depth", type=WholeNumber(1), metavar="N", help="Number of levels."),
    click.option(
        "--min-share",
        metavar="SHARE",
        help="Smaller shares have a common line. Default: 1% in a table, else 0.",
    ),
    click.option("--zoom", metavar="PATH", default="", help="Start at this node of the view."),
    click.option(
        "--filter",
        "keep",
        metavar="PATTERN",
        default="",
        help="Show call paths that match, e.g. '**/MPI_*'; the others share lines.",
    ),
    click.option(
        "--open",
        "opened",
        metavar="PATH",
        multiple=True,
        help="Open the tree down to this node; PATH/** also opens its subtree.",
    ),
    click.option(
        "--close", "closed", metavar="PATH", multiple=True, help="Hide the subtree of this node."
    ),
    click.option(
        "--lines",
        "most",
        type=WholeNumber(1),
        metavar="N",
        help="Number of lines from which nothing is opened.",
    ),
)
_ORDERS = ("value", "measured", "high", "excess", "growth", "trust", "name")
_ORDERS_OF_TWO = ("difference", "ratio", "new", "base")
_SORT = (
    click.option(
        "--sort",
        type=click.Choice([*_ORDERS, *_ORDERS_OF_TWO]),
        help="Order of siblings; high is the upper limit of the band; difference, ratio, new and "
        "base are for views --compare. Default: value; excess between two scales; difference of "
        "two experiments.",
    ),
    click.option("--reverse", is_flag=True, help="Reverse the order: smallest first."),
)


def _other(ctx: click.Context, option: click.Parameter, given: str) -> str:
    """Return the source of the earlier experiment; ``-`` is standard input."""
    return with_standard_input(ctx, option, (given,))[0]


COMPARE = click.option(
    "--compare",
    "other",
    callback=_other,
    metavar="BASE",
    default="",
    help="Show an earlier experiment beside this one, in one tree.",
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
    *,
    view: str,
    group: str | None,
    depth: int | None,
    min_share: str | None,
    zoom: str,
    keep: str,
    opened: tuple[str, ...],
    closed: tuple[str, ...],
    most: int | None,
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
            depth=depth,
            top=first,
            least=parse_share(share, "--min-share"),
            zoom=zoom,
            keep=keep,
            opened=opened,
            closed=closed,
            most=most,
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
