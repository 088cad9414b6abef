"""cpmodel.toml: which configuration files there are, what they say, where values come from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from callpath_modeler.errors import UsageError
from callpath_modeler.fingerprints import Fingerprint
from callpath_modeler.toml.format import TomlFile, TomlFormat
from callpath_modeler.toml.positions import Place

NAME = "cpmodel.toml"
"""Name of the file that is looked for in the directories above an experiment."""

SITE = Path("/etc/cpmodel/config.toml")
"""What holds for everybody on a machine."""

EXPERIMENT, PARAMETERS, DEFAULTS = "experiment", "parameters", "defaults"
"""Names of the tables: what the runs are called, where parameters come from, options."""


class Naming(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may stand in ``[experiment]``; None = not said."""

    name: str = None  # type: ignore[assignment] # TOML cannot write None, so it is none to accept
    scaling: str = None  # type: ignore[assignment]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"origin": "from"}):
    """What may stand in ``[parameters]`` of one parameter."""

    origin: str


@dataclass(frozen=True, slots=True)
class ConfigPaths:
    """Where configuration is looked for.

    Attributes
    ----------
    named : the file that was named in place of the one above the experiment
    start : the experiment, above which one is looked for; None = there is none
    found : that one
    user, site : the files of the user and of the machine, whether or not they are there
    """

    named: Path | None
    start: Path | None
    found: Path | None
    user: Path | None
    site: Path

    def files(self) -> tuple[Path, ...]:
        """Return the files that there are, those that count most first."""
        first = (self.named or self.found,)
        return (*filter(None, first), *(p for p in (self.user, self.site) if p and _is_file(p)))


def config_paths(start: Path | None = None, named: Path | None = None) -> ConfigPaths:
    """Return where configuration is looked for.

    Parameters
    ----------
    start : profile or directory of the experiment
    named : a file in place of the one that is found above the experiment
    """
    found = None if start is None or named is not None else find_upwards(start)
    return ConfigPaths(named, start, found, _of_user(), SITE)


def find_upwards(start: Path) -> Path | None:
    """Return the nearest ``cpmodel.toml``: in a directory itself, or in one above it."""
    # What ".." is above of is known to the file system alone, where a link is on the way.
    place = start.resolve() if ".." in start.parts else Path(os.path.abspath(start))  # noqa: PTH100
    for folder in (place, *place.parents):
        if _is_file(folder / NAME):
            found = folder / NAME
            return found if start.is_absolute() else Path(os.path.relpath(found))
    return None


def _of_user() -> Path | None:
    home = os.environ.get("XDG_CONFIG_HOME", "")
    # The standard has a relative path ignored.
    folder = home if os.path.isabs(home) else os.path.expanduser("~/.config")  # noqa: PTH111, PTH117
    return None if folder.startswith("~") else Path(folder, "cpmodel", "config.toml")


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - one that may not be looked at is none, no error


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file that was read.

    Attributes
    ----------
    fingerprint : what it was when it was read
    written : what stands in it, and where
    rank : its number, 0 = the one that counts most
    """

    fingerprint: Fingerprint
    written: TomlFile[Any]
    rank: int

    def settings(self) -> Iterator[ConfiguredValue]:
        """Go through all values that stand in it."""
        document = self.written.document
        for table in (EXPERIMENT, DEFAULTS):
            for key, value in msgspec.structs.asdict(getattr(document, table)).items():
                if value is not None:
                    yield ConfiguredValue((table, key), value, self.rank, self.written)
        for name, source in document.parameters.items():
            yield ConfiguredValue((PARAMETERS, name), source.origin, self.rank, self.written)


@dataclass(frozen=True, slots=True)
class ConfiguredValue:
    """A value that a file gives.

    Attributes
    ----------
    place : table and key
    value : as TOML has it
    rank : of its file
    written : its file
    """

    place: Place
    value: Any
    rank: int
    written: TomlFile[Any]

    @property
    def origin(self) -> str:
        """File and line."""
        return f"{self.written.path}:{self.written.line(self.place)}"

    @property
    def folder(self) -> Path:
        """The directory of its file."""
        return Path(self.written.path).parent


def format_of(defaults: type[msgspec.Struct], examples: Mapping[str, str],
              homes: Mapping[str, str]) -> TomlFormat[Any]:  # fmt: skip
    """Return what configuration files may hold.

    Parameters
    ----------
    defaults : type of the table of options, whose fields are None where nothing is said
    examples, homes : how its keys are written; where other keys belong
    """
    document = msgspec.defstruct(
        "Document",
        [
            (EXPERIMENT, Naming, msgspec.field(default_factory=Naming)),
            (PARAMETERS, dict[str, Source], msgspec.field(default_factory=dict)),
            (DEFAULTS, defaults, msgspec.field(default_factory=defaults)),
        ],
        forbid_unknown_fields=True,
    )
    own = {
        EXPERIMENT: '[experiment], then name = "app.p{p}.n{n}.r{rep}"',
        PARAMETERS: '[parameters], then n = { from = "metadata:cells" }',
        DEFAULTS: '[defaults], then metric = "time"',
        "name": 'name = "app.p{p}.n{n}.r{rep}"',
        "scaling": 'scaling = "weak"',
        "from": 'from = "processes"',
    }
    return TomlFormat(document, {**examples, **own}, UsageError, homes)


def read(paths: Iterable[Path], form: TomlFormat[Any]) -> tuple[ConfigFile, ...]:
    """Read configuration files.

    Raises
    ------
    UsageError
        If one cannot be read, is not TOML, or holds what does not belong there; the message begins
        with file and line.
    """
    return tuple(_read(path, form, rank) for rank, path in enumerate(paths))


def _read(path: Path, form: TomlFormat[Any], rank: int) -> ConfigFile:
    try:
        content = path.read_bytes()
    except OSError as cause:
        raise UsageError(
            f"{path}: {cause.strerror}",
            hint="--config names a file in place of the cpmodel.toml that is found above the runs",
        ) from cause
    digest = hashlib.sha256(content).hexdigest()
    fingerprint = Fingerprint(str(path), len(content), digest)
    return ConfigFile(fingerprint, form.parse(content, str(path)), rank)


def merge_settings(files: Iterable[ConfigFile]) -> Mapping[Place, ConfiguredValue]:
    """Return every value that is given, each by the first file that does."""
    settings: dict[Place, ConfiguredValue] = {}
    for file in files:
        for setting in file.settings():
            settings.setdefault(setting.place, setting)
    return settings
