"""Options of tables, plots and histories."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import (
    MODELS,
    OUTPUT,
    F,
    WholeNumber,
    call_option,
    option,
    option_group,
    output_option,
)
from callpath_modeler.cli.options import A_FILE, FORCE, HISTORY, RESULT, output_file
from callpath_modeler.errors import UsageError
from callpath_modeler.report.layout import TextStyle

if TYPE_CHECKING:
    from rich.text import Text

    from callpath_modeler.analysis.answer import Ranking
    from callpath_modeler.analysis.verification import BandCalibration
    from callpath_modeler.report.plot import Drawing
    from callpath_modeler.report.table_formats import Table


TABLE = "table"
"""The text format."""
FORMATS = (TABLE, "csv", "tsv", "json", "jsonl", "markdown", "latex", "parquet")
FOR_PEOPLE = ("markdown", "latex")
"""Formats of tables that people read."""
ALL = "all"
"""Every column, or every row."""
HTML = "html"
"""A page, as a format of commands that can write one."""


class _NumberOrAll(WholeNumber):
    """A number of rows, or ``all``."""

    name = "number of rows, nor 'all'"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; for ``all``, a number that no table reaches."""
        return sys.maxsize if value == ALL else int(super().convert(value, param, ctx))


NUMBER_OF_ROWS = _NumberOrAll(1)

WIDE = option("--wide", "Full names, even on a narrow terminal.", group=OUTPUT)
_TABLE = (
    option(
        "-n, --top N",
        "Number of rows, or all; in a view, on every level. Default: rank fits the terminal; "
        "10 in other tables, files and pipes; else all.",
        type=NUMBER_OF_ROWS,
        group=OUTPUT,
    ),
    output_option(
        "--columns A,B",
        "Columns of files by name, or all. Default: all; markdown and latex have the columns of "
        "the table.",
    ),
    output_option("--no-header", "Omit the header row of csv and tsv."),
    WIDE,
)


def _output(formats: Sequence[str] = FORMATS) -> tuple[Callable[[F], F], ...]:
    form = output_option(
        "-f, --format",
        "Default: by the suffix of -o, else table.",
        "format_",
        type=click.Choice(formats),
    )
    return form, output_file("Write to a file."), FORCE


class OutputRequest(Struct, frozen=True):
    """Format and file of a result; rows and columns of a table.

    Attributes
    ----------
    format_ : name of the format; None = by the suffix of the file
    path : file; None = standard output
    force : True = replace an existing file
    has_page : True = the suffix html selects a page
    top : number of rows; None = the default of the command
    columns : names of columns of files, joined by commas, or all; None = the usual ones
    header : True = a header row in csv and tsv
    wide : True = full names at any width of the terminal
    """

    format_: str | None
    path: Path | None
    force: bool
    has_page: bool = False
    top: int | None = None
    columns: str | None = None
    header: bool = True
    wide: bool = False

    @property
    def form(self) -> str:
        """Name of the format; ``table`` is text for people.

        Raises
        ------
        UsageError
            If the suffix selects no format, or columns are requested for a text table.
        """
        is_page = self.format_ is None and self.path is not None and self.path.suffix == ".html"
        form = HTML if is_page and self.has_page else format_of(self.format_, self.path)
        if form in {TABLE, HTML} and self.columns is not None:
            what = "text tables" if form == TABLE else "pages"
            raise UsageError(
                f"--columns does not apply to {what}", hint="add -f csv, tsv, json or markdown"
            )
        return form

    @property
    def is_for_people(self) -> bool:
        """True if the format has the columns of the text table, with its titles and cells."""
        return self.form in FOR_PEOPLE and self.columns is None

    @property
    def is_open(self) -> bool:
        """True if the height of the terminal sets the number of rows."""
        return self.top is None and self.path is None and not self.wide

    @property
    def people_style(self) -> TextStyle:
        """Style of cells in Markdown and LaTeX, which writes growths as mathematics."""
        return TextStyle(full_names=self.wide, ascii_only=self.form == "latex")

    def style(self, console: Console) -> TextStyle:
        """Return the style of text: files and wide tables have no limit of width."""
        width = None if self.path is not None or self.wide else console.width
        return TextStyle(width=width, full_names=self.wide, ascii_only=console.ascii_only)

    def write(self, console: Console, content: str | bytes | Iterator[bytes]) -> None:
        """Write a result of any format."""
        console.write(content, self.path, overwrite=self.force)

    def write_pieces(self, console: Console, pieces: Iterable[str]) -> None:
        """Write pieces of text one by one."""
        console.write_pieces(pieces, self.path, overwrite=self.force)

    def write_lines(self, console: Console, lines: Sequence[Text | str]) -> None:
        """Write text; on a terminal, lines that are too wide are wrapped."""
        from rich.text import Text

        from callpath_modeler.report.layout import wrap

        if self.path is not None:
            self.write(console, "".join(console.dress(str(line)) + "\n" for line in lines))
            return
        for line in lines:
            whole = [line] if isinstance(line, Text) else wrap(console.dress(line), console.width)
            console.lines(whole)

    def write_table(self, console: Console, *contents: Table) -> None:
        """Write the requested columns of tables in the requested format.

        Only formats for people have several tables.

        Raises
        ------
        UsageError
            If there is no such column.
        """
        from callpath_modeler.cli.render import parquet, table_pieces

        if self.columns not in (None, ALL):
            contents = tuple(_picked(each, self.columns.split(",")) for each in contents)
        if self.form == "parquet":
            self.write(console, parquet(contents[0]))
        else:
            pieces = table_pieces(contents, self.form, header=self.header)
            self.write_pieces(console, pieces)


def answer_writer(output: OutputRequest, console: Console) -> Callable[..., None]:
    """Return the function that writes an answer as text for people, or as a table.

    Its arguments are functions that return the text in a style, the table with all columns, and the
    tables of the text (None = there are none).

    Raises
    ------
    UsageError
        If the suffix selects no format, or columns are requested for a text table.
    """
    form = output.form

    def write(
        text: Callable[[TextStyle], Sequence[Text | str]],
        content: Callable[[], Table],
        of_text: Callable[[TextStyle], Sequence[Table]] | None = None,
    ) -> None:
        if form == TABLE:
            output.write_lines(console, text(output.style(console)))
        elif of_text is not None and output.is_for_people:
            output.write_table(console, *of_text(output.people_style))
        else:
            output.write_table(console, content())

    return write


def output_options(command: F) -> F:
    """Add the options for the output; they arrive as an `OutputRequest`, ``output``."""
    return option_group(command, _output(), "output", _make_output)


def table_options(command: F, output: Sequence[Callable[[F], F]] | None = None) -> F:
    """Add the options of a table and its output; they arrive as an `OutputRequest`, ``table``.

    Parameters
    ----------
    command : the command
    output : format, file and ``--force``; None = the usual ones
    """
    return option_group(command, (*_TABLE, *(output or _output())), "table", _make_table)


def table_or_page_options(command: F) -> F:
    """Add `table_options` of a command that can write a page."""
    options = (*_TABLE, *_output((*FORMATS, HTML)))
    return option_group(command, options, "table", partial(_make_table, has_page=True))


def _make_output(
    *, format_: str | None, output: Path | None, force: bool, has_page: bool = False, **rest: Any
) -> OutputRequest:
    return OutputRequest(format_, output, force, has_page, **rest)


def _make_table(*, no_header: bool, **rest: Any) -> OutputRequest:
    return _make_output(header=not no_header, **rest)


def _picked(content: Table, names: Sequence[str]) -> Table:
    for name in names:
        if name not in content.columns:
            raise UsageError(f"no column {name!r}", hint=f"columns: {', '.join(content.columns)}")
    return content.pick(list(names))


def format_of(format_: str | None, output: Path | None, formats: Sequence[str] = FORMATS) -> str:
    """Return the requested format, else the format of the file's suffix, else ``table``.

    Parameters
    ----------
    format_ : the requested format, or None
    output : the output file, or None
    formats : the known formats, for the error message

    Raises
    ------
    UsageError
        If the suffix is unknown.
    """
    if format_ is not None:
        return format_
    if output is None or not output.suffix:
        return "table"
    others = {".md": "markdown", ".tex": "latex", ".txt": "table"}
    endings = {**{f".{name}": name for name in FORMATS}, **others}
    if output.suffix not in endings:
        raise UsageError(
            f"{output}: the suffix {output.suffix!r} selects no format",
            hint=f"choose one with -f: {', '.join(formats)}",
        )
    return endings[output.suffix]


def _checked(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a plot that cannot be written before anything is read."""
    if path is not None:
        from callpath_modeler.report.model_plot import format_of_plot, require_matplotlib

        format_of_plot(path)
        require_matplotlib()
        _import_matplotlib()
    return path


def _import_matplotlib() -> None:
    """Import matplotlib, so that a file ``matplotlibrc`` of the working directory sets nothing.

    Such a file may be one of a folder of profiles that somebody else made. Only the import reads
    it, and there is no setting that prevents that.
    """
    is_there, ours = Path("matplotlibrc").exists(), Path(__file__).parent
    with contextlib.chdir(ours) if is_there else contextlib.nullcontext():
        import matplotlib as mpl  # noqa: F401 - for its effect


PLOT = output_option(
    "--plot FILE",
    "Draw it as well: FILE ends in .pdf, .svg or .png.",
    type=RESULT,
    callback=_checked,
)


def write_plot(console: Console, drawing: Drawing, path: Path, *, force: bool) -> None:
    """Write a plot to a file."""
    from callpath_modeler.report.model_plot import format_of_plot
    from callpath_modeler.report.plot import file_of

    console.write(file_of(drawing, format_of_plot(path)), path, overwrite=force)


STORE, HISTORY_TO_WRITE = (
    click.argument("store", type=kind, metavar="STORE") for kind in (A_FILE, HISTORY)
)
LABELS = output_option(
    "--label KEY=VALUE",
    "A label of the runs in a history, e.g. machine=A. It also selects the records to read.",
    "labels",
    multiple=True,
)


def labels_of(given: tuple[str, ...]) -> dict[str, str]:
    """Return the labels of ``--label KEY=VALUE`` by key."""
    labels: dict[str, str] = {}
    for text in given:
        key, sign, value = (part.strip() for part in text.partition("="))
        if not (key and sign and value) or len(text) > 1_000:
            raise UsageError(f"--label {text[:60]!r} is malformed", hint="e.g. --label machine=A")
        if labels.setdefault(key, value) != value:
            raise UsageError(f"--label {key} is given twice", hint="give one value for each key")
    return labels


class BandCorrection(Struct, frozen=True):
    """Correction of the bands of a ranking by a history.

    Attributes
    ----------
    ranking : the ranking with corrected bands; None = as it was
    calibration : scores of earlier predictions; None = nothing was asked
    sentence : what was corrected, and on how many predictions it rests
    """

    ranking: Ranking | None = None
    calibration: BandCalibration | None = None
    sentence: str = ""


class HistoryRequest(Struct, frozen=True):
    """Histories that keep the predictions of a command, or correct them.

    Attributes
    ----------
    remember : history that keeps the predictions; None = none
    calibrated : history whose scores correct bands; None = none
    labels : labels of the predictions, and of the scores
    """

    remember: Path | None
    calibrated: Path | None
    labels: Mapping[str, str]

    @property
    def stores(self) -> dict[str, Path | None]:
        """Histories by option."""
        return {"--remember": self.remember, "--calibrated": self.calibrated}

    def applied(self, console: Console, ranking: Ranking) -> BandCorrection:
        """Keep the predictions of a ranking, and return their correction.

        A history keeps the bands of the models. So no correction is corrected again.

        Raises
        ------
        UsageError
            If there are no predictions at the target.
        InputError, OutputError
            If a history cannot be read or written.
        """
        if self.remember is not None:
            self._remember(console, ranking, self.remember)
        return BandCorrection() if self.calibrated is None else self._of(ranking, self.calibrated)

    def _remember(self, console: Console, ranking: Ranking, store: Path) -> None:
        from callpath_modeler.history.predictions import remember
        from callpath_modeler.history.run_records import prediction_of
        from callpath_modeler.units import counted

        record = prediction_of(ranking, time.time(), self.labels)
        is_new = remember(store, record)
        said = "remembered" if is_new else "in the history already"
        console.note(f"{store}: {counted(len(record.callpaths), 'prediction')}: {said}")

    def _of(self, ranking: Ranking, store: Path) -> BandCorrection:
        from callpath_modeler.history.predictions import outcomes, predictions, recalibrated, scored
        from callpath_modeler.report.scores import calibration_sentence

        if ranking.repetitions or math.isinf(ranking.target):
            raise UsageError(
                "--calibrated needs prediction bands, but values at this target have none",
                hint="a finite target beyond the runs, or --predicted",
            )
        fitted = ranking.fitted
        remembered = [
            each
            for each in predictions(store)
            if (each.metric, each.level) == (fitted.metric.name, fitted.models.confidence)
        ]
        found = scored(remembered, outcomes(store), labels=self.labels)
        return BandCorrection(
            recalibrated(ranking, found.calibration.factor),
            found.calibration,
            calibration_sentence(found, store),
        )


def history_options(command: F) -> F:
    """Add options that keep and correct predictions; they arrive as ``history``."""
    options = (
        output_option(
            "--remember STORE",
            "Keep the predictions in a history, for `cpmodel score`.",
            type=HISTORY,
        ),
        call_option(
            "--calibrated STORE",
            "Correct the widths of bands by the scored predictions of a history.",
            type=A_FILE,
            group=MODELS,
        ),
        LABELS,
    )
    return option_group(command, options, "history", _make_history)


def _make_history(
    *, remember: Path | None, calibrated: Path | None, labels: tuple[str, ...]
) -> HistoryRequest:
    return HistoryRequest(remember, calibrated, labels_of(labels))
