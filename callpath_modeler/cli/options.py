"""Options that several commands share: one spelling everywhere."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.asking import Question
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.modeling import SearchSpace
    from callpath_modeler.pipeline import FitOptions
    from callpath_modeler.profile.wanted import Wanted

F = TypeVar("F", bound=Callable[..., Any])

_TOP_OF_A_TABLE = 10
_EITHER = "--inclusive and --exclusive exclude each other"


def _every_parameter(
    ctx: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Add the parameters that configuration files tell the sources of and the user does not."""
    names = {text.partition("=")[0] for text in given}
    others = (ctx.default_map or {}).get(option.name or "", ())
    return (*given, *(text for text in others if text.partition("=")[0] not in names))


EXPERIMENT = click.argument("experiment", nargs=-1, required=True, metavar="EXP...")
FORCE = click.option("--force", is_flag=True, help="Replace the file if it exists.")
_LOAD = (
    click.option("--where", metavar="COND", default="", help="Choose runs, e.g. 'p>=64,n=30'."),
    click.option(
        "--locations",
        type=click.Choice(["max", "mean", "median", "geomean", "min", "sum", "imbalance"]),
        help="How the values of many processes become one. Default: max.",
    ),
    click.option("--scaling", type=click.Choice(["weak", "strong"]), help="Default: recognised."),
    click.option(
        "--param",
        "parameters",
        metavar="NAME=SOURCE",
        multiple=True,
        callback=_every_parameter,
        help="Where it comes from: name, profile, processes, threads, nodes, metadata:KEY.",
    ),
    click.option("--name", "pattern", metavar="PATTERN", help="Run names: 'app.p{p}.n{n}.r{rep}'."),
    click.option(
        "--reader",
        metavar="NAME",
        help="Read with this reader, or with the one in FILE.py. Default: recognised.",
    ),
    click.option("--strict", is_flag=True, help="Stop at the first profile that cannot be used."),
)
_JOBS = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(0),
    metavar="N",
    default=1,
    show_default=True,
    help="Read and model with N processes; 0: with one for each processor.",
)
_METRIC = (
    click.option("-m", "--metric", metavar="NAME", help="Metric. Default: the run time."),
    click.option("-i", "--inclusive", is_flag=True, help="Call paths with all that they call."),
    click.option(
        "-e", "--exclusive", is_flag=True, help="By themselves. Default, except in call trees."
    ),
)
_PREDICTED = click.option(
    "--predicted", is_flag=True, help="Ask the models, even where the target was measured."
)
_ASK = (
    click.option("--target", metavar="P", help="Scale: a number, or inf for growth alone."),
    click.option("--at", metavar="p=P,...", help="The same by name; values of other parameters."),
    *_METRIC,
)
PARAMETER = click.option("--parameter", metavar="NAME", help="Parameter to scale in. Default: p.")
AGGREGATE = click.option(
    "--aggregate",
    type=click.Choice(["auto", "mean", "median", "trimmed", "midrange", "first-quartile", "min"]),
    default="auto",
    show_default=True,
    help="How repetitions become one value; auto: whatever scatters least here.",
)
_FIT = (
    PARAMETER,
    click.option(
        "--method",
        type=click.Choice(["mixture", "classic"]),
        default="mixture",
        show_default=True,
        help="A probability for every hypothesis, or the choice of one by cross-validation.",
    ),
    AGGREGATE,
    click.option(
        "--confidence",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.95,
        show_default=True,
        help="Probability that a band is to hold.",
    ),
    click.option("--exponents", metavar="LIST", help="Exponents I, e.g. '0,1/4,1/2,1,3/2,2'."),
    click.option(
        "--exponential",
        metavar="LIST",
        help="Rates of 2^(rate x), e.g. '1/2,1': for parameters of algorithms. Default: none.",
    ),
    click.option("--logs", metavar="LIST", help="Exponents J of log2, e.g. '0,1,2'."),
    click.option(
        "--terms",
        type=click.IntRange(1, 9),
        help="Most terms of a model. Default: 2, which is all that a mixture has; classic: 5.",
    ),
    click.option(
        "--folds",
        type=click.IntRange(2),
        help="Folds of the classic cross-validation. Default: leave one out.",
    ),
)
_VIEW = (
    click.option(
        "--view",
        type=click.Choice(["top-down", "bottom-up", "flat"]),
        default="top-down",
        show_default=True,
        help="Who calls what; which function, called by whom; functions alone.",
    ),
    click.option(
        "--group",
        metavar="A,B",
        help="Levels of the flat view: paradigm, module, file, region. Default: region.",
    ),
    click.option("--depth", type=click.IntRange(1), metavar="N", help="Show so many levels."),
    click.option(
        "--min-share",
        metavar="SHARE",
        help="Smaller ones share a line. Default: 1% in a table, else 0.",
    ),
    click.option("--zoom", metavar="PATH", default="", help="Begin with this node of the view."),
    click.option(
        "--filter",
        "keep",
        metavar="PATTERN",
        default="",
        help="Give lines to call paths that match, e.g. '**/MPI_*'; the others share some.",
    ),
    click.option(
        "--open",
        "opened",
        metavar="PATH",
        multiple=True,
        help="Open one level, and all down to this node; PATH/** with all below it.",
    ),
    click.option(
        "--close", "closed", metavar="PATH", multiple=True, help="Show nothing below this node."
    ),
    click.option(
        "--lines",
        "most",
        type=click.IntRange(1),
        metavar="N",
        help="From so many lines on, open nothing.",
    ),
)
_SORT = (
    click.option(
        "--sort",
        type=click.Choice(["value", "measured", "high", "excess", "growth", "trust", "name"]),
        default="value",
        show_default=True,
        help="Order of siblings: high is the upper end of the band.",
    ),
    click.option("--reverse", is_flag=True, help="The smallest first."),
)


def load_options(command: F) -> F:
    """Add the options that say which runs to read, and how; they arrive as ``load``."""
    return _gathered(command, (*_LOAD, _JOBS), "load", _make_load)


def fit_options(command: F) -> F:
    """Add the options that say how to model; they arrive as ``fitting``."""
    return _gathered(command, _FIT, "fitting", _make_fit)


def question_options(command: F) -> F:
    """Add the options that say what is asked; they arrive as ``question``."""
    return _gathered(command, _ASK, "question", _make_question)


def target_options(command: F) -> F:
    """Add those of `question_options`, and ``predicted``: of runs or models at the target."""
    return _gathered(command, (*_ASK, _PREDICTED), "question", _make_question_at_target)


def metric_options(command: F) -> F:
    """Add ``metric``, ``inclusive`` and ``exclusive``."""
    return added(command, _METRIC)


def sort_options(command: F) -> F:
    """Add ``sort`` and ``reverse``: how siblings of a view of predictions are ordered."""
    return added(command, _SORT)


def view_options(command: F) -> F:
    """Add the options that choose a view; they arrive as ``viewing``.

    That is a function that makes a `Wanted` of format, ``top``, ``inclusive`` and ``exclusive``.
    """
    return _gathered(command, _VIEW, "viewing", _make_view)


def shared_names() -> frozenset[str]:
    """Return the names of the options that every command knows which answers a question.

    ``--predicted`` is among them, which only those know that tell what a target costs.
    """
    options = (*_ASK, _PREDICTED, *_LOAD, *_FIT)
    return frozenset(name for option in options for name in _parameter(option).opts)


def _parameter(option: Callable[..., Any]) -> click.Parameter:
    """Return what an option decorator adds."""

    def bare() -> None: ...

    parameter: click.Parameter = option(bare).__click_params__[0]
    return parameter


def added(command: F, options: tuple[Callable[[F], F], ...]) -> F:
    """Add options to a command, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def _gathered(
    command: F, options: tuple[Callable[[F], F], ...], name: str, make: Callable[..., object]
) -> F:
    """Add `options` to a command; their values arrive as one object called `name`."""
    code = make.__code__
    taken = code.co_varnames[: code.co_kwonlyargcount]

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        kwargs[name] = make(**{key: kwargs.pop(key) for key in taken})
        return command(*args, **kwargs)

    wrapped: Any = wrapper
    gathered: F = added(wrapped, options)
    return gathered


def _make_load(
    *,
    where: str,
    locations: str | None,
    scaling: str | None,
    parameters: tuple[str, ...],
    pattern: str | None,
    reader: str | None,
    strict: bool,
    jobs: int,
) -> LoadOptions:
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.profile.experiment import Scaling
    from callpath_modeler.profile.schema import Reduction
    from callpath_modeler.readers.assemble import ReadOptions

    sources = {}
    for text in parameters:
        name, sign, source = text.partition("=")
        if not sign:
            raise UsageError(f"--param {text!r} is malformed", hint="e.g. --param p=name")
        sources[name] = source
    read = ReadOptions(
        locations=None if locations is None else Reduction(locations),
        parameter_sources=sources,
        scaling=None if scaling is None else Scaling(scaling),
        strict=strict,
        jobs=jobs,
    )
    return LoadOptions(read, where, pattern, reader, preset=_preset())


def _preset() -> frozenset[str]:
    """Return the options that were not given on the command line itself."""
    ctx = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE
    return frozenset(
        option.opts[-1]
        for option in ctx.command.params
        if ctx.get_parameter_source(option.name or "") is not given
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
) -> Callable[[str, int | None, bool, bool], Wanted]:
    from callpath_modeler.profile.groups import Grouping
    from callpath_modeler.profile.views import ViewKind
    from callpath_modeler.profile.wanted import Wanted

    kind = ViewKind(view)
    if group is not None and kind is not ViewKind.FLAT:
        raise UsageError("--group is for the flat view", hint="add --view flat")
    try:
        by = tuple(Grouping(name) for name in (group or "region").split(","))
    except ValueError:
        raise UsageError(
            f"--group {group!r}: no such level", hint=f"of {', '.join(Grouping)}"
        ) from None

    def wanted(form: str, top: int | None, inclusive: bool, exclusive: bool) -> Wanted:
        if inclusive and exclusive:
            raise UsageError(_EITHER, hint="give one of them")
        for_people = form == "table"
        share = "1%" if min_share is None and for_people else min_share or "0"
        first = _TOP_OF_A_TABLE if top is None and for_people else top
        order = inclusive if inclusive or exclusive else None
        return Wanted(
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

    return wanted


def parse_share(text: str, option: str) -> float:
    """Return the fraction that ``1%`` or ``0.01`` writes, or raise `UsageError`."""
    number = text.strip().removesuffix("%")
    try:
        share = float(number) / (100 if "%" in text else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"{option} {text!r} is no share", hint="e.g. 1% or 0.01")
    return share


def _make_question(
    *, target: str | None, at: str | None, metric: str | None, inclusive: bool, exclusive: bool
) -> Question:
    from callpath_modeler.asking import Question

    if inclusive and exclusive:
        raise UsageError(_EITHER, hint="give one of them")
    return Question(target, at, metric, inclusive)


def _make_question_at_target(
    *,
    target: str | None,
    at: str | None,
    metric: str | None,
    inclusive: bool,
    exclusive: bool,
    predicted: bool,
) -> Question:
    from dataclasses import replace

    asked = _make_question(
        target=target, at=at, metric=metric, inclusive=inclusive, exclusive=exclusive
    )
    return replace(asked, predicted=predicted)


def _make_fit(
    *,
    parameter: str | None,
    method: str,
    aggregate: str,
    confidence: float,
    exponents: str | None,
    exponential: str | None,
    logs: str | None,
    terms: int | None,
    folds: int | None,
) -> FitOptions:
    from callpath_modeler.pipeline import FitOptions

    # click lets NaN pass every range.
    if not 0 < confidence < 1:
        raise UsageError(f"--confidence {confidence} is no probability", hint="e.g. 0.95")
    return FitOptions(
        parameter=parameter,
        method=method,  # type: ignore[arg-type] # click allows no other
        space=_space(method, exponents, exponential, logs, terms),
        folds=folds,
        aggregate=aggregate,  # type: ignore[arg-type] # click allows no other
        confidence=confidence,
        jobs=click.get_current_context().params.get("jobs", 1),
    )


def _space(
    method: str,
    exponents: str | None,
    exponential: str | None,
    logs: str | None,
    terms: int | None,
) -> SearchSpace | None:
    """Return the space that was asked for; None for the method's own."""
    if (exponents, exponential, logs, terms) == (None,) * 4:
        return None
    from dataclasses import replace

    from callpath_modeler.modeling import SearchSpace, default_space
    from callpath_modeler.modeling.terms import as_exponent

    default = default_space(method)  # type: ignore[arg-type] # click allows no other
    if method != "classic" and terms is not None and terms > default.max_terms:
        raise UsageError(
            f"--terms {terms}: a mixture is of models with up to {default.max_terms} terms",
            hint="--method classic refines term by term",
        )
    try:
        chosen_logs = default.logs if logs is None else tuple(map(int, logs.split(",")))
        rates = tuple(as_exponent(rate) for rate in (exponential or "").split(",") if rate)
        most = terms or default.max_terms
        if exponents is not None:
            plain = SearchSpace.of(exponents.split(","), chosen_logs, most)
            return replace(plain, exponential=rates)
        return replace(default, logs=chosen_logs, max_terms=most, exponential=rates)
    except ValueError as cause:
        raise UsageError(
            f"no such space of hypotheses: {cause}", hint="--exponents 0,1/2,1,2 --logs 0,1,2"
        ) from None
