"""Options of views, call paths that an argument selects, and commands on the same experiment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callpath_modeler.cli.option_groups import (
    NUMBER,
    F,
    WholeNumber,
    add_options,
    call_option,
    option,
    option_group,
    parameter_of,
    was_asked,
)
from callpath_modeler.cli.options import (
    STANDARD_INPUT,
    refuse_both,
    shared_names,
    with_standard_input,
)
from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shell_words
from callpath_modeler.units import decimal_of

if TYPE_CHECKING:
    from callpath_modeler.arrays import IntArray
    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.profile.view_request import Sort, ViewRequest
    from callpath_modeler.report.layout import Invocation


_TOP_OF_A_TABLE = 10

_VIEW = (
    option(
        "--view",
        "Callers with callees; functions with callers; functions only.",
        type=click.Choice(["top-down", "bottom-up", "flat"]),
        default="top-down",
    ),
    call_option(
        "--group A,B", "Levels of the flat view: paradigm, module, file, region. Default: region."
    ),
    call_option("--depth N", "Number of levels.", type=WholeNumber(1)),
    option(
        "--min-share SHARE",
        "Smaller shares have a common line. Default: 1% in a table, else 0.",
        written=NUMBER,
    ),
    call_option("--zoom PATH", "Start at this node of the view.", default=""),
    call_option(
        "--filter PATTERN",
        "Show call paths that match, e.g. '**/MPI_*'; the others share lines.",
        "keep",
        default="",
    ),
    call_option(
        "--open PATH",
        "Open the tree down to this node; PATH/** also opens its subtree.",
        "opened",
        multiple=True,
    ),
    call_option("--close PATH", "Hide the subtree of this node.", "closed", multiple=True),
    call_option(
        "--lines N", "Number of lines from which nothing is opened.", "most", type=WholeNumber(1)
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
    call_option("--reverse", "Reverse the order: smallest first."),
)


def _other(ctx: click.Context, option: click.Parameter, given: str) -> str:
    """Return the source of the earlier experiment; ``-`` is standard input."""
    return with_standard_input(ctx, option, (given,))[0]


COMPARE = call_option(
    "--compare BASE",
    "Show an earlier experiment beside this one, in one tree.",
    "other",
    callback=_other,
    default="",
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


def fields_of_views() -> frozenset[str]:
    """Return the names of the parameters that `view_options` and `sort_options` declare."""
    return frozenset(str(parameter_of(each).name) for each in (*_VIEW, *_SORT))


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
    from callpath_modeler.profile.tree_views import ViewKind
    from callpath_modeler.profile.view_request import ViewRequest

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


def row_of(experiment: Experiment, callpath: str) -> int:
    """Return the row of a call path; an error mentions options that may have excluded it."""
    from callpath_modeler.profile.pattern import find_one

    with _naming_options(experiment):
        return find_one(experiment.tree, callpath)


def rows_of(experiment: Experiment, pattern: str) -> IntArray:
    """Return the rows of all call paths that match, at least one; errors are as of `row_of`."""
    import numpy as np

    from callpath_modeler.profile.pattern import match, unmatched

    with _naming_options(experiment):
        rows = np.flatnonzero(match(experiment.tree, pattern))
        if not len(rows):
            raise unmatched(experiment.tree, pattern)
        return rows


@contextmanager
def _naming_options(experiment: Experiment) -> Iterator[None]:
    """Add options that may have excluded a call path to an error."""
    from callpath_modeler.profile.pruning import excluded_call_paths

    try:
        yield
    except UsageError as error:
        message = error.message + excluded_call_paths(experiment)
        raise UsageError(message, hint=error.hint) from None


_FEW_SOURCES = 2


def invocation_of(
    ctx: click.Context,
    *,
    sources: Sequence[str] | None = None,
    without: Collection[str] = (),
    in_full: bool = False,
    of_files: bool = False,
    every: bool = False,
) -> Invocation:
    """Return the command lines of other commands with the options of this command.

    These are the options that every command knows, as far as the command line or an environment
    variable set them. Values from configuration files apply to other commands anyway.

    Parameters
    ----------
    ctx : context of the command
    sources : sources of the other command; None = those of this command
    without : long names of options to omit
    in_full : write all sources; else a long list, such as a shell makes from a glob, is ``EXP...``
    of_files : include values from files, because `sources` may have other files
    every : include options of this command that not every command knows
    """
    from callpath_modeler.report.layout import Invocation
    from callpath_modeler.store import is_stored
    from callpath_modeler.studies.loading import OF_PROFILES

    sources = ctx.params["experiment"] if sources is None else sources
    sources = ["-" if source == ctx.meta.get(STANDARD_INPUT) else source for source in sources]
    files = click.core.ParameterSource.DEFAULT_MAP
    untold = {None, click.core.ParameterSource.DEFAULT, *(() if of_files else (files,))}
    options = (each for each in ctx.command.params if isinstance(each, click.Option))
    known = {each.opts[-1] for each in options} if every else {*shared_names()}
    known -= {*without}
    if any(is_stored(Path(source)) for source in sources):
        known -= {*OF_PROFILES}
    words: list[str] = []
    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name or "")
        source = ctx.get_parameter_source(parameter.name or "")
        # A variable or a file may say of a flag that it is not set.
        if source in untold or value is False or parameter.opts[-1] not in known:
            continue
        for one in value if isinstance(value, tuple) else (value,):
            words += [parameter.opts[-1], *([] if one is True else [str(one)])]
    few = in_full or len(sources) <= _FEW_SOURCES
    config = ctx.find_root().params.get("config")
    before = "" if config is None else shell_words(["--config", str(config)])
    return Invocation(shell_words(sources) if few else "EXP...", shell_words(words), before)


def listing_of_findings(ctx: click.Context | None) -> str:
    """Return the command that lists all findings of a result.

    Commands that are not about one experiment have their own findings.
    """
    arguments = () if ctx is None else ctx.command.params[:1]
    if ctx is None or not any(each.metavar == "EXP..." for each in arguments):
        return "cpmodel -v ..."
    shared = ("--predicted", "--inclusive", "--exclusive")
    return invocation_of(ctx, without=shared).line("info", "--diagnostics")
