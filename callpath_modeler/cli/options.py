"""Options that several commands share, with the same names everywhere."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callpath_modeler.cli.option_groups import (
    ASKED,
    BESIDE,
    LIST,
    MODELS,
    NUMBER,
    RUNS,
    TABLE,
    ConditionsOption,
    DecimalNumber,
    F,
    WholeNumber,
    add_options,
    call_option,
    option,
    option_group,
    output_option,
    parameter_of,
    was_asked,
)
from callpath_modeler.cli.preflight import OutputPath, stored
from callpath_modeler.errors import CONFIDENCE, UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from callpath_modeler.modeling import Method, SearchSpace
    from callpath_modeler.readers.base import ColumnChoices
    from callpath_modeler.readers.process_selection import ProcessSelection
    from callpath_modeler.studies.loading import LoadOptions
    from callpath_modeler.studies.pipeline import FitOptions


def refuse_both(*, inclusive: bool, exclusive: bool) -> None:
    """Raise `UsageError` if both inclusive and exclusive values are requested."""
    if inclusive and exclusive:
        raise UsageError("--inclusive and --exclusive exclude each other", hint="give one of them")


def _every_parameter(
    ctx: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Add parameters whose sources only configuration files state."""
    names = {text.partition("=")[0] for text in given}
    ctx.meta[ASKED] = names if was_asked(ctx, option.name or "") else set()
    others = (ctx.default_map or {}).get(option.name or "", ())
    return (*given, *(text for text in others if text.partition("=")[0] not in names))


def _connected(ctx: click.Context, _option: click.Parameter, name: str | None) -> Executor | None:
    """Return the executor of a name; a rank of MPI that only works for another one ends here."""
    if name is None or ctx.resilient_parsing:
        return None
    from callpath_modeler.support.executors import ServedError, open_executor

    try:
        return ctx.with_resource(open_executor(name))
    except ServedError:
        ctx.exit()


STANDARD_INPUT = "callpath_modeler.standard_input"
"""Key of the context for the file that holds standard input."""


def with_standard_input(
    ctx: click.Context, _argument: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Replace ``-`` by a file with standard input.

    Raises
    ------
    UsageError
        If ``-`` is given twice.
    """
    if "-" not in given or ctx.resilient_parsing:
        return given
    if given.count("-") > 1 or STANDARD_INPUT in ctx.meta:
        raise UsageError("-: standard input can be read once", hint="give - once, and files else")

    path = ctx.meta[STANDARD_INPUT] = str(stored())
    return tuple(path if source == "-" else source for source in given)


def one_with_standard_input(
    ctx: click.Context, option: click.Parameter, given: Path | None
) -> Path | None:
    """Replace ``-`` by a file with standard input, as `with_standard_input`."""
    if given is None:
        return None
    return Path(*with_standard_input(ctx, option, (str(given),)))


EXPERIMENT = click.argument(
    "experiment", nargs=-1, required=True, metavar="EXP...", callback=with_standard_input
)
EXPERIMENT_OR_NONE = click.argument(
    "experiment", nargs=-1, metavar="EXP...", callback=with_standard_input
)
FORCE = output_option("--force", "Replace the file if it exists.")
FORCE_ALL = output_option("--force", "Replace files that exist.")


A_FILE = click.Path(readable=False, path_type=Path)
"""Files that cannot be read have their own message and exit status."""


RESULT = OutputPath()
"""Files of further results, besides that of ``-o``."""
JUNIT = output_option("--junit FILE", "Write JUnit XML as well.", type=RESULT)
HISTORY = OutputPath(is_history=True)
"""Files of histories that get records."""


def output_file(
    about: str = "Default: standard output.",
    metavar: str = "FILE",
    *,
    replaces: Callable[[Path], bool] | None = None,
) -> Callable[[F], F]:
    """Return the option for the output file; ``-`` is standard output.

    Parameters
    ----------
    about : help
    metavar : name in the help
    replaces : whether ``--force`` may replace a folder; None = no folder
    """
    kind = OutputPath(replaces)
    return output_option(f"-o, --output {metavar}", about, type=kind, callback=_no_dash)


def store_file() -> Callable[[F], F]:
    """Return the option for the store that a command writes."""
    about = "File of the result. Default: the program's name."
    return output_file(about, "NAME.cpm", replaces=_is_present_store)


def _is_present_store(path: Path) -> bool:
    from callpath_modeler.store import may_be_replaced

    return may_be_replaced(path)


def _no_dash(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    return None if path == Path("-") else path


_of_runs, _of_models = (functools.partial(option, group=group) for group in (RUNS, MODELS))


def _time_column(names: str) -> Callable[[F], F]:
    return _of_runs(
        f"{names} COLUMN",
        "Column of a table with the run time.",
        "time_column",
        describes=True,
        example='"wall time (s)"',
    )


_TIME_COLUMN = _time_column("--time, --time-column")
_LOAD = (
    _of_runs(
        "--where COND",
        "Conditions on runs, e.g. 'p>=64,n=30'. Repeat for more: all must hold.",
        cls=ConditionsOption,
        default="",
        written=LIST,
        example='["p>=64", "n=30"]',
    ),
    _of_runs(
        "--case NAME",
        "Case of runs that differ in words, e.g. 'quick/random'. Repeat for more words: all "
        "must hold.",
        multiple=True,
        example='["quick"]',
    ),
    _of_runs(
        "--ignore PATTERN",
        "Exclude call paths with their subtrees, e.g. '**/MPI_Init'.",
        multiple=True,
        example='["**/MPI_Init"]',
    ),
    _of_runs(
        "--hide PATTERN",
        "Fold call paths into their callers, e.g. '**/pthread_*'.",
        multiple=True,
        example='["**/pthread_*"]',
    ),
    _of_runs(
        "--fold",
        "Join: calls of a function by one caller; direct recursion; single callees with "
        "callers that take no time.",
        type=click.Choice(["call-sites", "recursion", "chains"]),
        multiple=True,
        example='["call-sites"]',
    ),
    _of_runs(
        "--locations",
        "Statistic over the values of processes. Default: mean.",
        type=click.Choice(["max", "mean", "median", "geomean", "min", "sum", "imbalance"]),
    ),
    _of_runs("--ranks COND", "Use these processes only, e.g. 'rank % 4 == 0' or 'rank > 0'."),
    _of_runs(
        "--split-ranks auto|COND",
        "Model groups of processes separately: auto finds them, or 'rank == 0'.",
        multiple=True,
    ),
    _of_runs(
        "--steps RANGE",
        "Use these steps of a loop only, e.g. '3-' without warm-up.",
    ),
    _of_runs(
        "--scaling",
        "Default: recognised.",
        describes=True,
        type=click.Choice(["weak", "strong"]),
        key=("experiment", "scaling"),
    ),
    _of_runs(
        "--param NAME[=SOURCE]",
        "Source of a parameter: name (or column; default), profile, processes, threads, "
        "nodes, metadata:KEY, column:TITLE, none.",
        "parameters",
        describes=True,
        multiple=True,
        callback=_every_parameter,
        key=("parameters",),
    ),
    _of_runs(
        "--unit METRIC=UNIT",
        "Unit of a metric whose profiles state none, e.g. time=us.",
        "units",
        describes=True,
        multiple=True,
        example='["time=us"]',
    ),
    _of_runs(
        "--drop COLUMN",
        "Column of a table that is not used.",
        describes=True,
        multiple=True,
        example='["comment"]',
    ),
    _TIME_COLUMN,
    _of_runs(
        "--repetition COLUMN",
        "Column of a table that tells repetitions apart.",
        describes=True,
        example='"trial"',
    ),
    _of_runs(
        "--define NAME=FORMULA",
        "Metric by a formula of others, e.g. 'ipc = instructions / cycles'.",
        describes=True,
        multiple=True,
        example='["ipc = instructions / cycles"]',
    ),
    _of_runs(
        "--name PATTERN",
        "Run names: 'app.p{p}.n{n}.r{rep}'.",
        "name_pattern",
        describes=True,
        key=("experiment", "name"),
    ),
    _of_runs("--reader NAME", "Reader, or FILE.py with a reader. Default: recognised."),
    _of_runs("--strict", "Stop at the first profile that cannot be used."),
)
_PRUNING = frozenset({"--ignore", "--hide"})
_JOBS = _of_runs(
    "-j, --jobs N",
    "Number of processes that read and model; 0: one for each processor.",
    type=WholeNumber(0),
    default=1,
)
_EXECUTOR = _of_runs(
    "--executor NAME",
    "Workers on other nodes instead: mpi, or dask:ADDRESS of a scheduler.",
    is_eager=True,
    callback=_connected,
)
_METRIC = (
    option("-m, --metric NAME", "Metric. Default: the run time.", describes=True, example='"time"'),
    option("-i, --inclusive", "Use inclusive values."),
    option("-e, --exclusive", "Use exclusive values. Default, except in call trees."),
)
_PREDICTED = call_option("--predicted", "Use predictions even if the target was measured.")
_SCALE = (
    option(
        "--target P", "Scale: a number, or inf for growth alone.", written=NUMBER, example="4096"
    ),
    option(
        "--at p=P,...",
        "Target by name, with values of other parameters.",
        written=TABLE,
        example="{ p = 4096 }",
    ),
)
_PAIR = call_option(
    "--pair P,Q",
    "Compare measured values at two scales, e.g. 8,128, without models. Repeat for more "
    "columns. With --target: columns beside the predictions.",
    "pairs",
    multiple=True,
)
ISO = call_option(
    "--iso E",
    "Problem sizes that keep this parallel efficiency, e.g. 0.8. With --at n=4096, also the "
    "largest p for this size.",
    type=DecimalNumber(0, 1, min_open=True, max_open=True),
)
_ASK = (*_SCALE, *_METRIC)
PARAMETER = _of_models("--parameter NAME", "Parameter to scale in. Default: p.")
AGGREGATE = _of_models(
    "--aggregate",
    "Statistic over repetitions. Only means of call paths add up to the mean run.",
    type=click.Choice(["mean", "median", "trimmed", "midrange", "first-quartile", "min"]),
    default="mean",
)
_FIT = (
    PARAMETER,
    _of_models(
        "--method",
        "Probabilities of all hypotheses, or one hypothesis by cross-validation.",
        type=click.Choice(["mixture", "classic"]),
        default="mixture",
    ),
    AGGREGATE,
    _of_models(
        "--confidence LEVEL",
        "Probability that a band holds the value.",
        type=DecimalNumber(0, 1, min_open=True, max_open=True),
        default=CONFIDENCE,
    ),
    _of_models(
        "--exponents LIST",
        "Exponents I, e.g. '0,1/4,1/2,1,3/2,2'.",
        written=LIST,
        example='["0", "1/2", "1"]',
    ),
    _of_models(
        "--exponential LIST",
        "Rates of 2^(rate x), e.g. '1/2,1', for parameters of algorithms. Default: none.",
        written=LIST,
    ),
    _of_models("--logs LIST", "Exponents J of log2, e.g. '0,1,2'.", written=LIST, example="[0, 1]"),
    _of_models(
        "--terms N",
        "Largest number of terms. Default: 2, the limit of mixture; classic: 5.",
        type=WholeNumber(1, 9),
    ),
    _of_models(
        "--folds N",
        "Folds of the classic cross-validation. Default: leave one out.",
        type=WholeNumber(2),
    ),
)


def load_options(command: F, *, has_time: bool = False) -> F:
    """Add the options that select and read runs; they arrive as ``load``.

    Parameters
    ----------
    command : the command
    has_time : whether the command has an option ``--time`` of its own
    """
    time = _time_column("--time-column")
    options = tuple(time if has_time and each is _TIME_COLUMN else each for each in _LOAD)
    return option_group(command, (*options, _JOBS, _EXECUTOR), "load", _make_load)


def fit_options(command: F) -> F:
    """Add the options of making models; they arrive as ``fitting``."""
    return option_group(command, _FIT, "fitting", _make_fit)


def study_options(command: F) -> F:
    """Add `load_options` and `fit_options`; they arrive as ``study``, with the sources."""
    return load_options(fit_options(_with_study(command)))


def question_options(command: F) -> F:
    """Add the options of the question; they arrive as ``question``."""
    return _asking(command, _ASK)


def model_options(command: F, *, has_time: bool = False) -> F:
    """Add the options of question and models; they arrive as ``question`` and ``study``.

    Parameters
    ----------
    command : the command
    has_time : whether the command has an option ``--time`` of its own
    """
    of_load = load_options(_with_study(command), has_time=has_time)
    return fit_options(_asking(of_load, (*_SCALE, _METRIC[0])))


def target_options(command: F) -> F:
    """Add `question_options`, ``predicted``: use models even at a measured target, and ``pair``."""
    return _asking(command, (*_ASK, _PREDICTED, _PAIR))


def metric_options(command: F) -> F:
    """Add ``metric``, ``inclusive`` and ``exclusive``."""
    return add_options(command, _METRIC)


def model_names() -> frozenset[str]:
    """Return the long names of `model_options`."""
    options = (*_SCALE, _METRIC[0], *_FIT)
    return frozenset(parameter_of(each).opts[-1] for each in options)


def shared_names() -> frozenset[str]:
    """Return the names of options that every command with an answer knows.

    They include ``--predicted``, which only commands with costs at a target know.
    """
    options = (*_ASK, _PREDICTED, _PAIR, *_LOAD, *_FIT)
    return frozenset(name for each in options for name in parameter_of(each).opts)


def _make_load(
    *,
    parameters: tuple[str, ...],
    units: tuple[str, ...],
    drop: tuple[str, ...],
    time_column: str | None,
    repetition: str | None,
    locations: str | None,
    scaling: str | None,
    ranks: str | None,
    split_ranks: tuple[str, ...],
    steps: str | None,
    strict: bool,
    jobs: int,
    executor: Executor | None,
    **of_runs: Any,
) -> LoadOptions:
    from callpath_modeler.profile.experiment import Scaling
    from callpath_modeler.profile.schema import Reduction
    from callpath_modeler.readers.assemble import ReadOptions
    from callpath_modeler.readers.base import StepRange
    from callpath_modeler.studies.loading import LoadOptions

    sources = {}
    for text in parameters:
        name, sign, source = text.partition("=")
        if not name.strip() or (sign and not source.strip()):
            raise UsageError(f"--param {text!r} is malformed", hint="e.g. --param p=name")
        sources[name] = source if sign else "name"
    columns = _columns(drop, time_column, repetition)
    sources = _without_replaced(sources, columns)
    path, beside = click.get_current_context().meta.get(BESIDE, ("", {}))
    # The user's own source of p has priority.
    states_scale = "--param p" in beside or ("--name" in beside and "p" not in sources)
    read = ReadOptions(
        locations=None if locations is None else Reduction(locations),
        parameter_sources=sources,
        scale_beside=path if states_scale else "",
        units=_units(units),
        columns=columns,
        scaling=None if scaling is None else Scaling(scaling),
        processes=_processes(ranks, split_ranks),
        steps=None if steps is None else StepRange.of(steps),
        strict=strict,
        jobs=jobs,
        executor=executor,
    )
    return LoadOptions(read, preset=_preset(), beside=beside, **of_runs)


def _processes(ranks: str | None, split: tuple[str, ...]) -> ProcessSelection | None:
    """Return the selected processes and their groups; None = all in one group."""
    if ranks is None and not split:
        return None
    from callpath_modeler.readers.process_groups import rank_condition
    from callpath_modeler.readers.process_selection import AUTO, ProcessSelection

    if AUTO in split and len(split) > 1:
        raise UsageError(
            "--split-ranks auto excludes conditions: it finds all groups",
            hint="give either auto or conditions",
        )
    chosen = None if ranks is None else rank_condition(ranks, "--ranks")
    if AUTO in split:
        return ProcessSelection(chosen, auto=True)
    return ProcessSelection(chosen, tuple(rank_condition(each, "--split-ranks") for each in split))


def _units(given: tuple[str, ...]) -> dict[str, str]:
    """Return the units that the user states, by metric."""
    units = {}
    for text in given:
        name, sign, unit = text.rpartition("=")
        if not (sign and name.strip() and unit.strip()):
            raise UsageError(f"--unit {text!r} is malformed", hint="e.g. --unit time=us")
        units[name.strip()] = unit.strip()
    return units


def _columns(drop: tuple[str, ...], time: str | None, repetition: str | None) -> ColumnChoices:
    """Return the roles of columns; those that a configuration file names may be missing."""
    from callpath_modeler.readers.base import ColumnChoices

    preset = _preset()
    names = {"--drop": "--drop", "--time-column": "--time", "--repetition": "--repetition"}
    if_there = frozenset(name for option, name in names.items() if option in preset)
    return ColumnChoices(drop, time or "", repetition or "", if_there=if_there, configured=if_there)


def _without_replaced(sources: dict[str, str], columns: ColumnChoices) -> dict[str, str]:
    """Return sources of parameters without columns whose role on the command line is another."""
    from callpath_modeler.readers.parameters import COLUMN

    asked = click.get_current_context().meta.get(ASKED, ())
    roles = {
        "--drop": columns.drop,
        "--time": (columns.time,),
        "--repetition": (columns.repetition,),
    }
    taken = {source for name, source in sources.items() if name in asked}
    taken |= {
        f"{COLUMN}{title}"
        for option, titles in roles.items()
        if option not in columns.configured
        for title in titles
    }
    return {
        name: source
        for name, source in sources.items()
        if name in asked or not source.startswith(COLUMN) or source not in taken
    }


def _preset() -> frozenset[str]:
    """Return the options that were not given on the command line.

    An environment variable that excludes call paths counts as given.
    """
    ctx, source = click.get_current_context(), click.core.ParameterSource
    here, there = {source.COMMANDLINE}, {source.COMMANDLINE, source.ENVIRONMENT}
    return frozenset(
        name
        for name, option in ((each.opts[-1], each.name or "") for each in ctx.command.params)
        if ctx.get_parameter_source(option) not in (there if name in _PRUNING else here)
    )


def _with_study(command: F) -> F:
    """Hand over a study of the sources in place of ``load`` and ``fitting``."""

    @functools.wraps(command)
    def wrapper(*args: Any, load: LoadOptions, fitting: FitOptions, **kwargs: Any) -> Any:
        from callpath_modeler.studies.study import Study

        ctx = click.get_current_context()
        sources, progress = kwargs.pop("experiment"), ctx.obj.progress("read")
        study = Study(sources, load, fitting, progress=progress)
        return command(*args, study=study, **kwargs)

    wrapped: Any = wrapper
    made: F = wrapped
    return made


def _asking(command: F, options: tuple[Callable[[F], F], ...]) -> F:
    """Add options whose names are fields of `Question`; they arrive as ``question``."""
    names = [str(parameter_of(each).name) for each in options]

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        from callpath_modeler.studies.question import Question

        given, ctx = {name: kwargs.pop(name) for name in names}, click.get_current_context()
        refuse_both(
            inclusive=given.get("inclusive", False), exclusive=given.pop("exclusive", False)
        )
        # A target of a configuration file is not the user's.
        is_asked = was_asked(ctx, "target") or was_asked(ctx, "at")
        if "expect" in kwargs and _PREDICTED in options:
            from callpath_modeler.cli.expectation_option import expected_costs_of

            given["expect"] = expected_costs_of(ctx)
            del kwargs["expect"]
        question = Question(**given, is_target_required=is_asked)
        return command(*args, question=question, **kwargs)

    wrapped: Any = wrapper
    made: F = add_options(wrapped, options)
    return made


def _make_fit(
    *,
    method: Method,
    exponents: str | None,
    exponential: str | None,
    logs: str | None,
    terms: int | None,
    **of_models: Any,
) -> FitOptions:
    from callpath_modeler.studies.pipeline import FitOptions

    # A command that only reads models has no such options.
    workers = click.get_current_context().params
    return FitOptions(
        method=method,
        space=_space(method, exponents, exponential, logs, terms),
        jobs=workers.get("jobs", 1),
        executor=workers.get("executor"),
        **of_models,
    )


def _space(
    method: Method,
    exponents: str | None,
    exponential: str | None,
    logs: str | None,
    terms: int | None,
) -> SearchSpace | None:
    """Return the requested space of hypotheses; None = the default of the method."""
    if (exponents, exponential, logs, terms) == (None,) * 4:
        return None
    from dataclasses import replace

    from callpath_modeler.modeling import SearchSpace, default_space
    from callpath_modeler.modeling.terms import as_exponent, as_power_of_log

    default = default_space(method)
    if method != "classic" and terms is not None and terms > default.max_terms:
        raise UsageError(
            f"--terms {terms}: the mixture method has models of up to {default.max_terms} terms",
            hint="--method classic refines term by term",
        )
    try:
        powers = default.logs if logs is None else logs.split(",")
        chosen_logs = tuple(map(as_power_of_log, powers))
        rates = tuple(as_exponent(rate) for rate in (exponential or "").split(",") if rate)
        most = terms or default.max_terms
        if exponents is not None:
            plain = SearchSpace.of(exponents.split(","), chosen_logs, most)
            return replace(plain, exponential=rates)
        return replace(default, logs=chosen_logs, max_terms=most, exponential=rates)
    except ValueError as cause:
        raise UsageError(
            f"invalid space of hypotheses: {cause}", hint="--exponents 0,1/2,1,2 --logs 0,1,2"
        ) from None
