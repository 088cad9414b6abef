"""Values of options and their origins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from callpath_modeler.config import NAME, ConfigFile, ConfigPaths
from callpath_modeler.report.layout import GAP, aligned, wrap
from callpath_modeler.report.table_formats import Cell, Table


@dataclass(frozen=True, slots=True)
class OptionValue:
    """An option that can be configured.

    Attributes
    ----------
    setting : its name in a file, with the table unless that is ``[defaults]``
    value : its value in the syntax of the command line; None = each command has its own default
    origin : file and line, environment variable, or command line; None = the default
    """

    setting: str
    value: str | None
    origin: str | None


def configuration_text(
    values: Sequence[OptionValue],
    places: ConfigPaths,
    strangers: Mapping[str, str] | None = None,
    refused: Sequence[OptionValue] = (),
    width: int | None = None,
) -> list[Text]:
    """Return the lines of `cpmodel info --config`: files, configured options, other options.

    Parameters
    ----------
    values : the options
    places : directories with configuration files
    strangers : environment variables that look like options, with the nearest option
    refused : values of a file that is not trusted with them
    width : width in columns, longer lines are wrapped; None = unlimited
    """
    given = [(one.setting, one.origin, one.value or "-") for one in values if one.origin]
    defaults = [(one.setting, one.value or "-") for one in values if one.origin is None]
    blocks = [
        _files(places),
        [("setting", "from", "value"), *given] if given else [("nothing is set",)],
        [("not set", "default"), *defaults],
    ]
    if refused:
        rows = ((one.setting, one.origin or "-", one.value or "-") for one in refused)
        blocks.insert(2, [("not used", "from", "value"), *rows])
    if strangers:
        listed = (f"{name}; {hint}" if hint else name for name, hint in strangers.items())
        blocks.insert(2, [("variables that set nothing",), *((line,) for line in listed)])
    lines: list[Text] = []
    for block in blocks:
        # The last column may be long, so it continues on the next lines.
        *first, _ = zip(*block, strict=True)
        indent = " " * sum(max(map(len, column)) + GAP for column in first)
        lines += [Text()] if lines else []
        for line in aligned(block):
            fits = width is None or cell_len(line) <= width
            # Lists contain no blank at which a line could break.
            lines += wrap(line if fits else line.replace(",", ", "), width, indent=indent)
    return lines


def _files(places: ConfigPaths) -> list[tuple[str, ...]]:
    """Return a line for each place of a configuration file; the first has priority."""
    there = {str(path) for path in places.files()}
    if places.named is not None:
        first = str(places.named)
    elif places.start is None:
        first = f"{NAME} above an experiment: none was given"
    else:
        first = str(places.found or f"{NAME} in or above {places.start}")
    files = [first, *(str(path) for path in (places.user, places.site) if path is not None)]
    marks = ["yes" if file in there else "no" for file in files]
    return [("read", "file"), *zip(marks, files, strict=True)]


def configuration_table(
    values: Sequence[OptionValue],
    files: Sequence[ConfigFile],
    refused: Sequence[OptionValue] = (),
) -> Table:
    """Return a table with one row per option."""
    columns: dict[str, list[Cell]] = {
        "setting": [one.setting for one in values],
        "value": [one.value for one in values],
        "from": [one.origin or "default" for one in values],
    }
    read = [{"path": file.fingerprint.path, "sha256": file.fingerprint.sha256} for file in files]
    others = [{"setting": one.setting, "value": one.value, "from": one.origin} for one in refused]
    return Table(columns, {}, {"files": read, "not_used": others})
