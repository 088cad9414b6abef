"""Configuration files beside profiles in directories that the user does not trust."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler import config
from callpath_modeler.cli.settings import describes
from callpath_modeler.printable import shell_word, shortened

if TYPE_CHECKING:
    from callpath_modeler.cli.console import Console
    from callpath_modeler.config import ConfigFile, ConfigPaths, ConfiguredValue
    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.profile.omissions import Omission, OmissionKind


_LONGEST = 200
"""Largest number of characters of keys or values in a verdict; names of files may be longer."""


def untrusted_file(places: ConfigPaths, files: Sequence[ConfigFile]) -> ConfigFile | None:
    """Return the file above the experiment if the user does not trust it; None = there is none."""
    from callpath_modeler.trusted_directories import resolved, trusted_directories

    if places.found is None:
        return None
    beside, *own = files
    return None if resolved(places.found.parent) in trusted_directories(own) else beside


def refused_values(
    file: ConfigFile, options: Mapping[str, click.Option]
) -> tuple[ConfiguredValue, ...]:
    """Return the values of an untrusted file that decide."""
    known = ((each, options.get(str(each.place[1]))) for each in file.settings()
             if each.place[0] != config.PARAMETERS)  # fmt: skip
    decided = (each for each, option in known if option is not None and not describes(option))
    return (*decided, *filter(None, [file.trust()]))


def listed_keys(refused: Sequence[ConfiguredValue]) -> str:
    """Return the names of refused keys, separated by commas."""
    return ", ".join(str(each.place[-1]) for each in refused)


def from_file(kind: OmissionKind, what: str, path: str) -> Omission:
    """Return what a verdict says about keys of an untrusted file."""
    from callpath_modeler.profile.omissions import Omission

    said = f"{shortened(what, _LONGEST)} from {shortened(path, 5 * _LONGEST)}"
    return Omission(kind, condition=said)


def refusal(refused: Sequence[ConfiguredValue]) -> list[Finding]:
    """Return the finding about values that are not used; none if there are no such values."""
    from callpath_modeler.diagnostics import Finding

    if not refused:
        return []
    return [Finding("CPM181", refused[0].written.path, listed_keys(refused), len(refused))]


def _hidden(places: ConfigPaths, files: Sequence[ConfigFile]) -> Path | None:
    """Return the nearest trusted file above an untrusted one, which replaces it; None = none."""
    from callpath_modeler.trusted_directories import resolved, trusted_directories

    if places.found is None or untrusted_file(places, files) is None:
        return None
    trusted = trusted_directories(files[1:])
    above = Path(os.path.abspath(places.found.parent)).parents  # noqa: PTH100 - as in the search
    files_above = (folder / config.NAME for folder in above if resolved(folder) in trusted)
    return next((each for each in files_above if os.path.isfile(each)), None)  # noqa: PTH113


def note_untrusted(
    console: Console,
    places: ConfigPaths,
    files: Sequence[ConfigFile],
    refused: Sequence[ConfiguredValue],
) -> None:
    """Print which values of an untrusted file are not used, and which trusted file it replaces.

    Parameters
    ----------
    console : the console
    places : places of configuration files
    files : the files that were read
    refused : values of the untrusted file that decide
    """
    from callpath_modeler.diagnostics import summarise
    from callpath_modeler.trusted_directories import resolved

    hidden = _hidden(places, files)
    if hidden is not None:
        console.note(
            f"{hidden} is not used, although you trust it: {places.found} is nearer to the "
            f"profiles. To use it: cpmodel --config {shell_word(str(hidden))}"
        )
    heard = console.heard(refusal(refused))
    for line in summarise(heard):
        console.note(line)
    if heard:
        of_trust = [each for each in refused if each.place[0] == config.TRUST]
        if of_trust:
            console.note(
                f"{of_trust[0].origin}: [trust] counts in your own configuration file only"
            )
        if len(of_trust) < len(refused):
            folder = shell_word(resolved(refused[0].folder))
            console.note(f"after you have read the file: cpmodel trust {folder}")
