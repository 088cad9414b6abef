"""Which values options have, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callpath_modeler.config import NAME, ConfigFile, Places
from callpath_modeler.report.formats import Cell, Table
from callpath_modeler.report.layout import aligned


@dataclass(frozen=True, slots=True)
class Told:
    """An option that can be configured.

    Attributes
    ----------
    setting : its name in a file, with the table where that is not ``[defaults]``
    value : as the command line writes it; None = the commands decide
    origin : file and line, variable or command line; None = it is the default
    """

    setting: str
    value: str | None
    origin: str | None


def configuration_text(told: Sequence[Told], places: Places) -> list[str]:
    """Return the lines of `cpmodel info --config`: files, what they set, and what is left."""
    lines = [*_files(places), ""]
    said = [("setting", "value", "from")]
    said += [(one.setting, one.value or "-", one.origin) for one in told if one.origin]
    lines += aligned(said) if len(said) > 1 else ["nothing is set"]
    defaults = [(one.setting, one.value or "-") for one in told if one.origin is None]
    return [*lines, "", *aligned([("not set", "default"), *defaults])]


def _files(places: Places) -> list[str]:
    """Return a line for each place where configuration is looked for; the first counts most."""
    there = {str(path) for path in places.files()}
    if places.named is not None:
        first = str(places.named)
    elif places.start is None:
        first = f"{NAME} above an experiment: none was given"
    else:
        first = str(places.found or f"{NAME} in or above {places.start}")
    files = [first, *(str(path) for path in (places.user, places.site) if path is not None)]
    marks = ["read" if file in there else "-" for file in files]
    return aligned([("file", ""), *zip(files, marks, strict=True)])


def configuration_table(told: Sequence[Told], files: Sequence[ConfigFile]) -> Table:
    """Return one row per option."""
    columns: dict[str, list[Cell]] = {
        "setting": [one.setting for one in told],
        "value": [one.value for one in told],
        "from": [one.origin or "default" for one in told],
    }
    read = [{"path": file.fingerprint.path, "sha256": file.fingerprint.sha256} for file in files]
    return Table(columns, {}, {"files": read})
