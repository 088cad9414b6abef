"""Tables over cases and groups of runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from msgspec import Struct, structs
from rich.text import Text

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.uncertain import is_unknown
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import CallpathModelerError
from callpath_modeler.printable import printable, shell_words
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.columns import (
    band_text,
    band_title,
    mark_text,
    marks_cells,
    share_texts,
    value_titles,
)
from callpath_modeler.report.headline import at_text, beyond, culprit
from callpath_modeler.report.layout import DEFAULT_STYLE, Invocation, TextColumn, TextStyle
from callpath_modeler.report.model_formulas import growth_range_texts
from callpath_modeler.report.ranking_text import CALL_PATH
from callpath_modeler.report.table_formats import (
    Cell,
    Column,
    Table,
    definitions_json,
    shown_columns,
    table_of,
    text_table_of,
)
from callpath_modeler.units import counted, parameter_value, setting_text

GROUP = "group"
"""Column with the group of a row."""

_SIGNS = frozenset(",<>=!*?[")
"""Characters that a value in a condition cannot contain."""


def heading(name: str, value: str, ranking: Ranking, *, is_first: bool) -> list[str]:
    """Return the lines above the ranking of a group."""
    runs = counted(len(ranking.fitted.experiment.runs), "run")
    return [*([] if is_first else [""]), printable(f"{name} = {value} ({runs})")]


def of_group(invocation: Invocation, where: str, name: str, value: str) -> Invocation:
    """Return the command lines for one group, if a condition can select it.

    Parameters
    ----------
    invocation : command lines without conditions
    where : conditions that select the runs of all groups
    name : name of the metadata or parameter that groups runs
    value : its value in this group
    """
    is_plain = not _SIGNS & {*name, *value}
    told = ",".join([*filter(None, [where]), *([f"{name}={value}"] if is_plain else [])])
    words = shell_words(["--where", told]) if told else ""
    return replace(invocation, options=f"{invocation.options} {words}".strip())


def joined(tables: Mapping[str, Table], name: str) -> Table:
    """Return the tables of all groups as one table; the first column holds the group.

    The header fields of each table are in the JSON field ``groups``. Tables as a terminal shows
    them may have different columns.
    """
    first = next(iter(tables.values()))
    heads = None
    if first.heads is not None:
        tables = {value: _by_title(table) for value, table in tables.items()}
        heads = {GROUP: (name, False)}
        for table in tables.values():
            heads |= table.heads or {}
        # The names of lines stay the last column.
        heads[CALL_PATH] = heads.pop(CALL_PATH)
    titles = [*first.columns] if heads is None else [*heads][1:]
    columns: dict[str, list[Cell]] = {
        GROUP: [printable(value) for value, table in tables.items() for _ in range(len(table))],
        **{
            title: [
                cell
                for table in tables.values()
                for cell in table.columns.get(title, [""] * len(table))
            ]
            for title in titles
        },
    }
    groups = [{GROUP: value, **table.header} for value, table in tables.items()]
    return Table(columns, first.units, {"group_by": name, "groups": groups}, heads)


def _by_title(table: Table) -> Table:
    """Return a table as a terminal shows it with its titles as names of columns."""
    assert table.heads is not None
    columns = {title: table.columns[key] for key, (title, _) in table.heads.items()}
    return replace(table, columns=columns, heads={head[0]: head for head in table.heads.values()})


def of_groups(
    name: str | None, groups: Mapping[str, tuple[Ranking, Sequence[Finding]]]
) -> list[Finding]:
    """Return the findings of all groups, as `labelled`."""
    return labelled(
        (f"{name} = {value}", ranking.fitted.experiment, findings)
        for value, (ranking, findings) in groups.items()
    )


def labelled(parts: Iterable[tuple[str, Experiment, Sequence[Finding]]]) -> list[Finding]:
    """Return the findings of all parts of a series.

    A finding has the label of its part, unless it is about a file or occurs in every part.
    """
    known = [*parts]
    shared = set.intersection(*({*findings} for _, _, findings in known))
    told = []
    for label, experiment, findings in known:
        sources = [run.source for run in experiment.runs]
        for finding in findings:
            is_of_file = any(source.startswith(finding.subject) for source in sources)
            if len(known) > 1 and finding not in shared and not is_of_file:
                told.append(structs.replace(finding, message=f"{label}: {finding.message}"))
            else:
                told.append(finding)
    return [*dict.fromkeys(told)]


CASE, CASE_GROUP = "case", "group"
_MOST_FAILURES = 5
"""Largest number of cases without an answer that are named."""
_MOST_RIVALS = 3
"""Largest number of cases that are named where it is not known which is the costliest one."""


class CaseAnswer(Struct, frozen=True, eq=False):
    """The answer for one case.

    Attributes
    ----------
    group : value of the group of runs; "" = there are no groups
    name : name of the case; "" = the group has one case
    experiment : the runs of the case
    found : the ranking, or the error in its place
    row : the call path to name; -1 = none
    findings : findings about the case
    """

    group: str
    name: str
    experiment: Experiment
    found: Ranking | CallpathModelerError
    row: int = -1
    findings: Sequence[Finding] = ()

    @property
    def ranking(self) -> Ranking | None:
        """The ranking, or None."""
        return self.found if isinstance(self.found, Ranking) else None

    @property
    def error(self) -> str:
        """Message of the error in place of a ranking; "" = no error."""
        return self.found.message if isinstance(self.found, CallpathModelerError) else ""

    @property
    def callpath(self) -> str | None:
        """The call path to name, or None."""
        return self.experiment.tree.path(self.row) if self.row >= 0 else None

    @property
    def value(self) -> tuple[float, float, float]:
        """The cost of the program at the target with its band; NaN = not known."""
        ranking = self.ranking
        if ranking is None or not np.isfinite(ranking.target):
            return (np.nan,) * 3
        if ranking.fitted.metric.additive:
            value, low, high = ranking.program_total
            return float(value), float(low), float(high)
        of_row = ranking.value, ranking.low, ranking.high
        return tuple(float(each[self.row]) for each in of_row)  # type: ignore[return-value]

    @property
    def at_largest(self) -> float:
        """The measured cost of the program at the largest scale; NaN = not known."""
        ranking = self.ranking
        if ranking is None:
            return np.nan
        whole = ranking.fitted.metric.additive
        return float(ranking.program_at_largest if whole else ranking.at_largest[self.row])

    @property
    def trust(self) -> int:
        """Marks of trust of `value`; -1 = no band."""
        ranking = self.ranking
        if ranking is None or not np.isfinite(ranking.target):
            return -1
        whole = ranking.fitted.metric.additive
        return int(ranking.program_trust if whole else ranking.trust[self.row])

    @property
    def is_measured(self) -> bool:
        """True if `value` was measured."""
        return self.ranking is not None and self.ranking.repetitions > 0

    @property
    def is_unknown(self) -> bool:
        """True if only the band of `value` is stated: its prediction has few marks."""
        return not self.is_measured and is_unknown(self.trust)

    @property
    def band(self) -> tuple[float, float]:
        """The band of `value`; twice the value if it has none."""
        value, low, high = self.value
        return (value, value) if np.isnan(low) or np.isnan(high) else (low, high)

    @property
    def has_share(self) -> bool:
        """True if the call path to name has a share of the cost of the program."""
        return self.ranking is not None and self.row >= 0 and self.ranking.fitted.metric.additive

    @property
    def share(self) -> float | None:
        """The share of the call path to name at the target; None = not known."""
        return float(self.ranking.share[self.row]) if self.ranking and self.has_share else None

    @property
    def order(self) -> tuple[float, ...]:
        """Sort key of the growth of the call path to name; () = not known."""
        ranking = self.ranking
        if ranking is None or self.row < 0 or ranking.fitted.is_measured_only:
            return ()
        leader = int(ranking.leader[self.row])
        return ranking.fitted.models.growth(leader).order if leader >= 0 else ()

    def growth(self, *, pretty: bool = False) -> str:
        """Return the growth of the call path to name; "" = not known."""
        ranking = self.ranking
        if ranking is None or self.row < 0 or ranking.fitted.is_measured_only:
            return ""
        return growth_range_texts(ranking, np.array([self.row]), pretty=pretty)[0]


def answer_of(
    group: str,
    name: str,
    experiment: Experiment,
    found: Ranking | CallpathModelerError,
    rows: Sequence[int] | None = None,
    findings: Sequence[Finding] = (),
) -> CaseAnswer:
    """Return the answer for one case, which names the first call path of a ranking.

    Parameters
    ----------
    group, name, experiment, found, findings : as in `CaseAnswer`
    rows : call paths to choose from, in order; None = all
    """
    row = -1
    if isinstance(found, Ranking) and len(found.order):
        row = culprit(found) if rows is None else next(iter(rows), -1)
    return CaseAnswer(group, name, experiment, found, row, findings)


def in_order(answers: Sequence[CaseAnswer]) -> list[CaseAnswer]:
    """Return the answers in the order of the cost at the target, the largest first.

    At infinity, the growth decides. Groups stay in their order. Cases without an
    answer come last.
    """
    groups = [*dict.fromkeys(each.group for each in answers)]

    def key(each: CaseAnswer) -> tuple[int, bool, float, tuple[float, ...]]:
        value = np.nan_to_num(each.value[0])
        growth = tuple(-part for part in each.order)
        return groups.index(each.group), each.ranking is None, -value, growth

    return sorted(answers, key=key)


class ShownCases(Struct, frozen=True, eq=False):
    """The table over cases.

    Attributes
    ----------
    answers : cases in order, at least one
    group_by : name of the groups; None = there are none
    top : number of cases to show; None = all
    """

    answers: Sequence[CaseAnswer]
    group_by: str | None = None
    top: int | None = None

    @property
    def shown(self) -> Sequence[CaseAnswer]:
        """The cases with lines."""
        return self.answers[: self.top]

    def text(
        self, style: TextStyle, invocation: Invocation, command: str = "rank"
    ) -> list[Text | str]:
        """Return the answer, the table, and how to choose a case.

        Parameters
        ----------
        style : width, length of names, and characters of text
        invocation : command lines for the same experiment
        command : command that the last line proposes for one case
        """
        answers = self.answers
        columns, paths = self._text_columns(style)
        more = len(answers) - len(paths)
        footer = [f"{counted(more, 'more case')}: -n all"] * bool(more)
        first = next((each for each in answers if not each.error), answers[0])
        footer += [*_failures(answers), _next(first, self.group_by, invocation, command)]
        body = style.table(columns, [[path] for path in paths])
        return [*style.answer([_headline(answers, style)], [_context(answers)], body, footer, "")]

    def table(self) -> Table:
        """Return the table for files, in SI base units."""
        header = {"group_by": self.group_by} if self.group_by else {}
        whole = {**header, "cases": len(self.shown), **definitions_json(self.shown[0].experiment)}
        return table_of(self._columns(DEFAULT_STYLE), whole)

    def text_tables(self, style: TextStyle) -> list[Table]:
        """Return the table of `text`."""
        return [text_table_of(*self._text_columns(style))]

    def _text_columns(self, style: TextStyle) -> tuple[list[TextColumn], list[str]]:
        """Return the columns before the call path, without empty ones, and the call paths."""
        columns = shown_columns(self._columns(style), style)
        filled = [each for each in columns if not {*each.cells} <= {"", "-"}]
        return filled, [_path(each, style) for each in self.shown]

    def _columns(self, style: TextStyle) -> list[Column[None]]:
        answers = self.shown
        known = [each.ranking for each in answers if each.ranking is not None]
        scales = [_scales(each, differing(answers)) for each in answers]
        titles = {value_titles(each) for each in known}
        largest, target = titles.pop() if len(titles) == 1 else ("largest run", "target")
        is_measured = all(each.repetitions or each.fitted.is_measured_only for each in known)
        if is_measured and all(each.target == each.fitted.points[-1] for each in known):
            largest = ""
        is_finite = any(np.isfinite(each.target) for each in known[:1])
        has_models = not all(each.fitted.is_measured_only for each in known)
        units = {each.fitted.metric.unit for each in known}
        unit = (units.pop() if len(units) == 1 else "") or None

        def of_each(number: Callable[[Ranking], Cell]) -> list[Cell]:
            return [None if each.ranking is None else number(each.ranking) for each in answers]

        def amounts(values: Sequence[float]) -> list[str]:
            return [
                _amount(each, value, style) for each, value in zip(answers, values, strict=True)
            ]

        at_largest = [each.at_largest for each in answers]
        value, low, high = ([each.value[k] for each in answers] for k in range(3))
        bands = [_band(each, style) for each in answers]
        band = band_title(known[0]) if is_finite else ""
        names = [printable(each.name) for each in answers]
        groups = [printable(each.group) for each in answers]
        runs = [len(each.experiment.runs) for each in answers]
        counts = of_each(lambda each: len(each.fitted.points))
        of_scales = "scales" * (len({*scales}) > 1)
        trust, shares = (
            marks_cells(each.trust for each in answers),
            [each.share for each in answers],
        )
        growths = [each.growth() or None for each in answers]
        pretty = [each.growth(pretty=not style.ascii_only) for each in answers]
        columns: list[Column[None]] = [
            Column(CASE_GROUP, groups, printable(self.group_by or ""), right=False),
            Column(CASE, names, CASE, right=False),
            Column("runs", runs, "runs", droppable=4),
            Column("metric", of_each(lambda each: each.fitted.metric.name)),
            Column("parameter", of_each(lambda each: each.fitted.parameter)),
            Column("scales", counts, of_scales, text=scales, right=False, droppable=3),
            Column("smallest", of_each(lambda each: float(each.fitted.points[0]))),
            Column("largest", of_each(lambda each: float(each.fitted.points[-1]))),
            Column("target", of_each(lambda each: each.target)),
            Column(
                "value_at_largest",
                at_largest,
                largest,
                None,
                unit,
                amounts(at_largest),
                droppable=2,
            ),
            Column("value_at_target", value, target * is_finite, None, unit, amounts(value)),
            Column("low", low, band, unit=unit, text=bands, droppable=5),
            Column("high", high, unit=unit),
            Column("trust", trust, "trust" * (is_finite and has_models), mark_text),
            Column("callpath", [each.callpath for each in answers]),
            Column(
                "share_at_target",
                shares,
                "share" * is_finite,
                text=[*map(_shares, answers)],
                droppable=6,
            ),
            Column("growth", growths, "growth", text=pretty, right=False, droppable=1),
            Column("error", [each.error or None for each in answers]),
        ]
        return columns if self.group_by else columns[1:]


def findings_of(answers: Sequence[CaseAnswer]) -> list[Finding]:
    """Return the findings of all cases with the names of their cases."""
    return labelled((_named(each), each.experiment, each.findings) for each in answers)


def _amount(answer: CaseAnswer, value: float, style: TextStyle) -> str:
    ranking = answer.ranking
    if ranking is None or np.isnan(value):
        return "-"
    return style.amount(value, ranking.fitted.metric.unit)


def _band(answer: CaseAnswer, style: TextStyle) -> str:
    ranking = answer.ranking
    if ranking is None:
        return "-"
    return band_text(*answer.value[1:], ranking.fitted.metric.unit, style=style)


def _shares(answer: CaseAnswer) -> str:
    ranking = answer.ranking
    if ranking is None or not answer.has_share:
        return "-"
    before = [float(np.nan_to_num(ranking.share_at_largest[answer.row]))]
    return share_texts(ranking, before, [float(ranking.share[answer.row])])[0]


def _path(answer: CaseAnswer, style: TextStyle) -> str:
    if answer.row < 0:
        return ""
    names = answer.experiment.tree.names(answer.row)
    return "/".join(names if style.full_names else map(short_name, names))


def _scales(answer: CaseAnswer, constants: Collection[str]) -> str:
    """Return the scales of a case, and some constants: ``p = 2 … 64 (6), n = 1000``."""
    experiment = answer.experiment
    varying = (
        f"{each.name} = {parameter_value(each.values[0])} … {parameter_value(each.values[-1])} "
        f"({len(each.values)})"
        for each in experiment.parameters
    )
    fixed = {name: value for name, value in experiment.constants.items() if name in constants}
    return ", ".join([*varying, *([setting_text(fixed)] if fixed else [])])


def _headline(answers: Sequence[CaseAnswer], style: TextStyle) -> str:
    """Return the sentence that answers: the costliest case, and the cheapest one.

    It names a case only if the band of its cost is apart from those of all other cases.
    """
    count = counted(len(answers), "case")
    known = [each for each in answers if not np.isnan(each.value[0])]
    if not known:
        return f"{count} at {_target(answers)}: costs have no bound, so only growth is known."
    at = {at_text(each.ranking.fitted, each.ranking.target) for each in known if each.ranking}
    if len(at) > 1:
        return f"{count} at different scales; each line has its own target."
    if len(known) == 1:
        return f"At {at.pop()}, {_named(known[0])} has {_stated(known[0], style)}."
    ordered = sorted(known, key=lambda each: -each.value[0])
    most, least = (_rivals(ends[0], ends) for ends in (ordered, ordered[::-1]))
    ranking = ordered[0].ranking
    assert ranking is not None, "its value is known"
    metric = ranking.fitted.metric
    if metric.is_time:
        words = f"takes longest of {count}", f"which of {count} takes longest", "is the fastest"
    else:
        what = f"has the largest value of {count} ({metric.name})"
        which = f"which of {count} has the largest value ({metric.name})"
        words = what, which, "has the smallest"
    first = _winner(most, words[0], words[1], style)
    if {*map(_named, most)} == {*map(_named, least)}:
        return f"At {at.pop()}, {first}."
    last = _winner(least, words[2], f"which {words[2]}", style)
    return f"At {at.pop()}, {first}. {last[0].upper() if len(least) > 1 else last[0]}{last[1:]}."


def _rivals(first: CaseAnswer, answers: Sequence[CaseAnswer]) -> list[CaseAnswer]:
    """Return the cases that may be in the place of the first one, which is among them.

    Measured costs have an order. A prediction may be in the place of another case if their bands
    overlap.
    """
    return [
        each
        for each in answers
        if each is first
        or (not (first.is_measured and each.is_measured) and _overlap(first.band, each.band))
    ]


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _winner(rivals: Sequence[CaseAnswer], is_it: str, which: str, style: TextStyle) -> str:
    """Return a clause that names the first of the rivals, or says that it is not known."""
    first = rivals[0]
    if len(rivals) == 1:
        probably = "probably " * first.is_unknown
        return f"{_named(first)} {probably}{is_it}: {_stated(first, style)}"
    named = [f"{_named(each)} {_range(each, style)}" for each in rivals[:_MOST_RIVALS]]
    more = len(rivals) - len(named)
    named += [f"{more} more"] * (more > 0)
    return f"it is not known {which}: {' or '.join(named)}"


def _stated(answer: CaseAnswer, style: TextStyle) -> str:
    """Return the cost at the target; only its band if the prediction has few marks."""
    return _range(answer, style) if answer.is_unknown else _amount(answer, answer.value[0], style)


def _range(answer: CaseAnswer, style: TextStyle) -> str:
    """Return the band of the cost at the target, or the cost if it has none."""
    low, high = answer.band
    if answer.ranking is None or low == high:
        return _amount(answer, low, style)
    return style.interval(low, high, answer.ranking.fitted.metric.unit)


def _target(answers: Sequence[CaseAnswer]) -> str:
    known = [each.ranking for each in answers if each.ranking is not None]
    return at_text(known[0].fitted, known[0].target) if known else "any scale"


def _named(answer: CaseAnswer) -> str:
    return "/".join(printable(each) for each in (answer.group, answer.name) if each)


def _context(answers: Sequence[CaseAnswer]) -> str:
    """Return one line about the runs of all cases: metric, number, target and scales."""
    known = [each.ranking for each in answers if each.ranking is not None]
    told = [counted(sum(len(each.experiment.runs) for each in answers), "run")]
    if known:
        metric, experiment = known[0].fitted.metric, known[0].fitted.experiment
        told.insert(0, f"{metric.name}, {experiment.reduction.words}")
        if not known[0].fitted.is_measured_only and np.isfinite(known[0].target):
            told += [*dict.fromkeys(beyond(each.fitted, each.target) for each in known)][:1]
    scales = {_scales(each, differing(answers)) for each in answers}
    return " · ".join([*told, *(scales if len(scales) == 1 else ())])


def differing(answers: Sequence[CaseAnswer]) -> frozenset[str]:
    """Return the names of constants that are not the same in all cases."""
    values: dict[str, set[float | None]] = {}
    for name in {name for each in answers for name in each.experiment.constants}:
        values[name] = {each.experiment.constants.get(name) for each in answers}
    return frozenset(name for name, found in values.items() if len(found) > 1)


def _failures(answers: Sequence[CaseAnswer]) -> list[str]:
    """Return the reasons why cases have no answer."""
    failed = [f"{_named(each)}: {each.error}" for each in answers if each.error]
    more = len(failed) - _MOST_FAILURES
    return failed[:_MOST_FAILURES] + [f"{more} more without an answer"] * (more > 0)


def _next(answer: CaseAnswer, group_by: str | None, invocation: Invocation, command: str) -> str:
    """Return the command for one case."""
    if group_by is not None:
        invocation = of_group(invocation, "", group_by, answer.group)
    return invocation.hint(command, shell_words(["--case", answer.name]) if answer.name else "")
