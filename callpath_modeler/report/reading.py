"""How sources are read: layout, roles of columns and numbers, and the settings that state them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from callpath_modeler import config
from callpath_modeler.printable import printable, shell_word
from callpath_modeler.profile.experiment import TOLD_SCALINGS, Experiment
from callpath_modeler.profile.runs import NO_VALUE, RunNumber, case_keys
from callpath_modeler.readers.base import NUMBER_OF_REPETITION, ColumnRole, TableReading
from callpath_modeler.readers.inference import NUMBERS_REPETITIONS
from callpath_modeler.report.info import (
    Row,
    column_rows,
    number_rows,
    origin_words,
    parameter_rows,
)
from callpath_modeler.report.layout import aligned
from callpath_modeler.report.table_formats import Table
from callpath_modeler.units import counted, parameter_value

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LISTS = frozenset({"drop", "unit"})
_MOST_CASES = 8

Setting = tuple[str, ...]
"""Table, key and value of ``cpmodel.toml``."""


class SourceReading:
    """How sources are read.

    Parameters
    ----------
    experiments : the runs of each case, by its name; a single case has the name ""
    table : a table among the sources, and how it is read; None = there is none
    files : number of files
    """

    def __init__(
        self,
        experiments: Mapping[str, Experiment],
        table: tuple[Path, TableReading] | None,
        files: int,
    ) -> None:
        self.experiments = experiments
        self.table = None if table is None else table[1]
        self.files = files

    @property
    def first(self) -> Experiment:
        """The runs of the first case."""
        return next(iter(self.experiments.values()))

    @property
    def columns(self) -> Sequence[ColumnRole]:
        """The roles of the columns, if a table is among the sources."""
        return () if self.table is None else self.table.columns

    def layout(self) -> list[tuple[str, str]]:
        """Return the properties of the layout, with their values."""
        return [] if self.table is None else [*self.table.layout]

    def properties(self) -> list[Row]:
        """Return cases, repetitions, units and scaling: what they are, why, and their option."""
        scalings = {(str(each.scaling), each.scaling_reason) for each in self.experiments.values()}
        kind, reason = scalings.pop() if len(scalings) == 1 else ("differs between cases", "")
        assumed = {} if self.table is None else self.table.assumed
        return [
            ("", "read as", "because", "change it with"),
            ("cases", *self._cases()),
            ("repetitions", *self._repetitions()),
            *(
                (f"unit of {printable(name)}", unit, "assumed: no title or cell states one",
                 f"--unit {shell_word(f'{printable(name)}=ms')}")
                for name, unit in assumed.items()
            ),
            ("scaling", kind, reason, _other_scalings(kind)),
        ]  # fmt: skip

    def _cases(self) -> Row:
        names = [name for name in self.experiments if name]
        if not names:
            return "none", "no words tell runs of one scale apart", ""
        keys = ", ".join(case_keys(self.first.findings)) or self._keys_of_cases()
        more = f", and {len(names) - _MOST_CASES} more" if len(names) > _MOST_CASES else ""
        shown = ", ".join(printable(name) or NO_VALUE for name in names[:_MOST_CASES])
        reason = f"{keys or 'words'} tell runs of one scale apart: {shown}{more}"
        return str(len(names)), reason, f"--case {shell_word(names[0])}"

    def _keys_of_cases(self) -> str:
        return ", ".join(role.title for role in self.columns if role.use == "case")

    def _repetitions(self) -> Row:
        settings = (each.runs_by_setting().values() for each in self.experiments.values())
        counts = {len(runs) for of_case in settings for runs in of_case}
        least, most = min(counts), max(counts)
        number = str(least) if least == most else f"{least} to {most}"
        told = next((role for role in self.columns if role.use == NUMBER_OF_REPETITION), None)
        in_names = next((n for n in self.first.numbers if _is_repetition(n)), None)
        if told is not None:
            return f"{number} of each scale", f"column {told.title}: {told.reason}", told.option
        if in_names is not None:
            reason = f"{in_names.name} in {in_names.place} {in_names.reason}"
            option = f"--param {shell_word(in_names.name)}=name"
            return f"{number} of each scale", reason, option
        if most == 1:
            return "none", "each scale was run once", ""
        return f"{number} of each scale", "runs of one scale without other differences", ""

    def settings(self) -> list[Setting]:
        """Return the settings that state what was found, so that nothing is inferred."""
        found = [role.setting for role in self.columns if role.setting]
        known = {(table, key) for table, key, _ in found if table == config.PARAMETERS}
        parameters = [(p.name, p.origin) for p in self.first.parameters]
        names = {name for name, _ in parameters}
        for name, origin in parameters:
            if (config.PARAMETERS, name) not in known and (self.table is None or origin == "name"):
                found.append((config.PARAMETERS, name, origin))
        for number in self.first.numbers:
            is_open = " " in number.values and not _is_repetition(number)
            if is_open and number.name not in names and _is_name(number.name):
                found.append((config.PARAMETERS, number.name, "none"))
        if self.table is not None:
            units = (f"{name}={unit}" for name, unit in self.table.assumed.items())
            found += [(config.DEFAULTS, "unit", each) for each in units]
        kinds = {each.scaling for each in self.experiments.values()}
        if len(kinds) == 1 and kinds <= {*TOLD_SCALINGS}:
            found.append((config.EXPERIMENT, "scaling", str(next(iter(kinds)))))
        return found

    def configuration(self) -> str:
        """Return the text of a ``cpmodel.toml`` with the settings."""
        lines = []
        settings = self.settings()
        for table in (config.EXPERIMENT, config.PARAMETERS, config.DEFAULTS):
            mine = [(key, value) for of, key, value in settings if of == table]
            lines += ["", f"[{table}]"] if mine else []
            for key in dict.fromkeys(key for key, _ in mine):
                values = [value for each, value in mine if each == key]
                name = key if _BARE.fullmatch(key) else _quoted(key)
                text = ", ".join(map(_quoted, values))
                if table == config.PARAMETERS:
                    text = f"{{ from = {text} }}"
                lines.append(f"{name} = {f'[{text}]' if key in _LISTS else text}")
        return "\n".join(lines[1:]) + "\n" if lines else ""


def _other_scalings(kind: str) -> str:
    """Return the options that choose another kind of scaling."""
    return ", ".join(f"--scaling {each}" for each in TOLD_SCALINGS if each != kind)


def _is_repetition(number: RunNumber) -> bool:
    return number.reason.startswith(NUMBERS_REPETITIONS)


def _is_name(name: str) -> bool:
    """Return whether a number in names stands beside a word."""
    return name != "number"


def _quoted(text: str) -> str:
    """Return a text in quotes, as TOML has it."""
    encoded = msgspec.json.encode(text.encode(errors="replace").decode()).decode()
    return encoded.replace("\x7f", "\\u007f")


def reading_text(reading: SourceReading, source: str) -> list[str]:
    """Return the lines of `cpmodel info --explain`.

    Parameters
    ----------
    reading : how the sources are read
    source : name of the table, for the first line; "" = there is none
    """
    lines: list[str] = []
    if source:
        others = f", the first of {reading.files} files" if reading.files > 1 else ""
        lines += [f"table {printable(source)}{others}", ""]
    if reading.layout():
        lines += [*aligned([("layout", ""), *reading.layout()]), ""]
    if reading.columns:
        lines += [*aligned(column_rows(reading.columns)), ""]
    if reading.first.numbers:
        lines += [*aligned(number_rows(reading.first)), ""]
    lines += [*aligned(parameter_rows(reading.first)), "", *aligned(reading.properties()), ""]
    text = reading.configuration()
    if text:
        lines += ["# as cpmodel.toml beside the data:", *text.splitlines()]
    return lines


def reading_table(reading: SourceReading) -> Table:
    """Return one row per column, with all other decisions in the header."""
    roles = reading.columns
    _, *properties = reading.properties()
    names = ("name", "read_as", "because", "change_with")
    header = {
        "layout": dict(reading.layout()),
        "numbers": [
            {"name": n.name, "values": n.values, "in": n.place, "understood_as": n.reason}
            for n in reading.first.numbers
        ],
        "parameters": [
            {
                "name": p.name,
                "values": [parameter_value(value) for value in p.values],
                "from": origin_words(p.origin),
            }
            for p in reading.first.parameters
        ],
        "properties": [dict(zip(names, row, strict=True)) for row in properties],
        "files": counted(reading.files, "file"),
        "cpmodel_toml": reading.configuration(),
    }
    return Table(
        {
            "column": [role.title for role in roles],
            "used_as": [role.use for role in roles],
            "because": [role.reason for role in roles],
            "change_with": [role.option for role in roles],
        },
        {},
        header,
    )
