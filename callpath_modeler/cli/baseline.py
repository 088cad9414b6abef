"""`cpmodel baseline`: an expectation file from the models of an experiment."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.analysis.expectations.expectation import SCHEMA
from callpath_modeler.analysis.expectations.growth_check import Baseline, BaselineEntry
from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import NUMBER, OUTPUT, WholeNumber, option
from callpath_modeler.cli.options import (
    EXPERIMENT,
    FORCE,
    output_file,
    question_options,
    study_options,
)
from callpath_modeler.cli.view_options import parse_share
from callpath_modeler.errors import UsageError
from callpath_modeler.printable import in_one_line
from callpath_modeler.profile.omissions import REST, WHOLE, is_partial
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.headline import omissions
from callpath_modeler.units import (
    base_and_factor,
    counted,
    parameter_value,
    parse_quantity,
    percent,
    quantity,
    setting_text,
)

if TYPE_CHECKING:
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study


@click.command("baseline", cls=Configured, apart=("inclusive", "exclusive"))
@EXPERIMENT
@output_file(metavar="FILE.toml")
@FORCE
@option(
    "--cover SHARE",
    "Costliest call paths that have this share of the cost in total.",
    default="99%",
    written=NUMBER,
)
@option("-n, --top N", "Largest number of call paths.", type=WholeNumber(1), group=OUTPUT, key=None)
@option(
    "--margin SHARE",
    "Margin above the bands, because machines differ from day to day.",
    default="10%",
    written=NUMBER,
)
@question_options
@study_options
@click.pass_obj
def command(
    console: Console,
    *,
    output: Path | None,
    force: bool,
    cover: str,
    top: int | None,
    margin: str,
    question: Question,
    study: Study,
) -> None:
    """Write limits for later runs, derived from today's runs, as an expectation file.

    The limits are on growth and value of the whole program and of its costliest call paths. Values
    are at the largest measured scale, or at --target; with several parameters, use
    --at p=128,n=1e6.
    """
    from callpath_modeler.analysis.expectations.growth_check import BaselineSettings
    from callpath_modeler.studies.question import slice_findings

    if question.inclusive:
        raise UsageError(
            "--inclusive: limits are on exclusive values of call paths, and on the whole program",
            hint="inclusive = true in the file",
        )
    covered, allowed = parse_share(cover, "--cover"), parse_share(margin, "--margin")
    settings = BaselineSettings(cover=covered, most=top, margin=allowed)
    found = study.baseline(question, settings)
    fitted = found.fitted
    console.write(to_toml(found), output, overwrite=force)
    if output is not None:
        console.note(f"{output}: cpmodel check RUNS {output}")
    held = slice_findings(fitted.held, fitted.assumed)
    console.findings((*fitted.experiment.findings, *fitted.findings, *held))


_COLUMN = 44
"""Column in which comments start."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(baseline: Baseline) -> str:
    """Return an expectation file, the costliest call path first."""
    lines = [*_head(baseline)]
    for name, entry in zip(_names(baseline), baseline.entries, strict=True):
        lines += ["", "[[expect]]", f"name = {_text(name)}", *_expected(baseline, entry)]
    return "\n".join([*lines, *_others(baseline)]) + "\n"


def _head(baseline: Baseline) -> Iterator[str]:
    fitted, experiment = baseline.fitted, baseline.fitted.experiment
    first, last = (parameter_value(float(fitted.points[k])) for k in (0, -1))
    sure = f"{100 * fitted.models.confidence:g} %"
    name, runs = in_one_line(experiment.name, "?"), counted(len(experiment.runs), "run")
    yield f"# Limits for {name}, derived from {runs}"
    at = f", {setting_text(fitted.measured_at)}" if fitted.held else ""
    yield f"# at {fitted.parameter} = {first} to {last}{at}; written by `cpmodel baseline`."
    yield f"# growth: the fastest growth that these runs allow with {sure} confidence;"
    how = ("prediction", "measurement", "repetitions")[min(baseline.repetitions, 2)]
    yield f"# value: the upper limit of the band of its {how}, plus {percent(baseline.margin)},"
    yield "# or an exact count."
    for each in omissions(experiment):
        yield f"# {in_one_line(each, '?')}; use the same options with `cpmodel check`"
    yield f"schema = {SCHEMA}"
    values = fitted.at(baseline.target).items()
    target = ", ".join(f"{_key(name)} = {parameter_value(value)}" for name, value in values)
    yield f"target = {{ {target} }}"
    yield ""
    yield "[defaults]"
    yield f"metric = {_text(fitted.metric.name)}"
    yield f"confidence = {fitted.models.confidence:g}"
    yield _commented('unsure = "pass"', "only a change that is shown to be worse fails")


def _expected(baseline: Baseline, entry: BaselineEntry) -> Iterator[str]:
    fitted = baseline.fitted
    parameter, unit = fitted.parameter, fitted.metric.unit
    if entry.row is not None:
        path = fitted.experiment.tree.path(entry.row) if entry.pattern.startswith("@") else ""
        share = "" if math.isnan(entry.share) else f"{percent(entry.share)} of the cost"
        comment = ", ".join(part for part in (path, share) if part)
        yield _commented(f"callpath = {_text(entry.pattern)}", comment)
    if entry.growth is None:
        yield "# no limit on growth: this call path has no model"
    elif entry.limit is None:
        yield "# no limit on growth: no law explains the measurements"
    else:
        today = f"today {entry.growth.text(parameter)}, {percent(entry.probability)} sure"
        yield _commented(f"growth = {_text(f'<= {entry.limit.text(parameter)}')}", today)
    bound = _bound(entry.bound, unit, exact=entry.bound == entry.value)
    now = f"today {quantity(entry.value, unit, ascii_only=True)}"
    if bound is None:
        yield f"# {now}: no bound, because its unit cannot be written"
    else:
        yield _commented(f"value = {_text(f'<= {bound}')}", now)


def _others(baseline: Baseline) -> Iterator[str]:
    bound = _bound(baseline.others, baseline.fitted.metric.unit) if baseline.others else None
    if bound is not None:
        yield from ("", "[[expect]]", 'name = "every other call path"')
        yield _commented("others = true", f"{counted(baseline.left, 'call path')} today")
        yield _commented("at_least = 0", "this includes new ones")
        yield f"value = {_text(f'<= {bound}')}"


def _bound(bound: float, unit: str, *, exact: bool = False) -> str | None:
    """Return a bound with its unit, rounded up to three digits, or in full if it is exact."""
    if exact:
        text = f"{bound:.12g} {unit if unit != '1' else ''}".strip()
    else:
        step = 10.0 ** (math.floor(math.log10(bound)) - 2)
        text = quantity(math.ceil(bound / step) * step, unit, ascii_only=True)
    try:
        understood = base_and_factor(parse_quantity(text)[1])[0] == unit
    except ValueError:
        understood = False
    return text if understood else None


def _names(baseline: Baseline) -> list[str]:
    """Return a name for each entry: the short function name, with an id if it is not unique."""
    tree = baseline.fitted.experiment.tree
    rows = [entry.row for entry in baseline.entries]
    # The whole program, if it is among them, comes first.
    is_part = is_partial(baseline.fitted.experiment.omissions)
    whole = [REST if is_part else WHOLE for row in rows if row is None]
    names = whole + tree.paths([row for row in rows if row is not None], short_name)
    count, ids = Counter(names), tree.ids()
    return [
        name if count[name] == 1 or row is None else f"{name} @{ids[row]}"
        for name, row in zip(names, rows, strict=True)
    ]


def _commented(text: str, comment: str) -> str:
    return f"{text:{_COLUMN}} # {in_one_line(comment, '?')}" if comment else text


def _text(text: str) -> str:
    """Return a text as TOML writes it; characters that UTF-8 cannot hold become question marks."""
    valid = text.encode("utf-8", "replace").decode()
    return json.dumps(valid, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)
