"""Configuration files: their places, contents and origins, and the directories that may decide.

The author of the profiles may also have written the configuration file beside them. So this file
describes the data: names, parameters, units. Only the user decides about answers. The files of the
user and of the machine list the directories whose own files may decide as well.

A directory below a trusted one is not trusted. Users unpack profiles of others below their own
directories.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from callpath_modeler.errors import OutputError, UsageError
from callpath_modeler.support.atomic import Fingerprint, write_file
from callpath_modeler.support.toml import Place, TomlFile, TomlFormat, lines_of, text_in_toml

NAME = "cpmodel.toml"
"""Name of the configuration file in or above the directory of an experiment."""

SITE = Path("/etc/cpmodel/config.toml")
"""The configuration file of a machine, for all users."""

EXPERIMENT, PARAMETERS, DEFAULTS = "experiment", "parameters", "defaults"
"""Names of the tables: names of runs, sources of parameters, options."""

TRUST, DIRECTORIES = "trust", "directories"
"""Names of the table and the key with directories whose files may decide."""


class Naming(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[experiment]``; None = not set."""

    name: str = None  # type: ignore[assignment] # TOML has no None, so it cannot occur
    scaling: str = None  # type: ignore[assignment]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"origin": "from"}):
    """The entry of one parameter in the table ``[parameters]``."""

    origin: str


class Trust(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[trust]``, which only counts in the files of the user and of the machine."""

    directories: list[str] = []


class ConfigPaths(Struct, frozen=True):
    """Places of configuration files.

    Attributes
    ----------
    named : the file that replaces the one above the experiment
    start : the experiment, from which the search goes upwards; None = no experiment
    found : the file that was found above it
    user, site : the files of the user and of the machine, which need not exist
    """

    named: Path | None
    start: Path | None
    found: Path | None
    user: Path | None
    site: Path

    def files(self) -> tuple[Path, ...]:
        """Return the existing files in order of priority."""
        first = (self.named or self.found,)
        return (*filter(None, first), *(p for p in (self.user, self.site) if p and _is_file(p)))


def config_paths(start: Path | None = None, named: Path | None = None) -> ConfigPaths:
    """Return the places of configuration files.

    Parameters
    ----------
    start : profile or directory of the experiment
    named : a file that replaces the one above the experiment
    """
    found = None if start is None or named is not None else find_upwards(start)
    return ConfigPaths(named, start, found, _of_user(), SITE)


def find_upwards(start: Path) -> Path | None:
    """Return the nearest ``cpmodel.toml``, in the directory or above it."""
    # Only the file system can resolve ".." after a symbolic link.
    place = start.resolve() if ".." in start.parts else Path(os.path.abspath(start))  # noqa: PTH100
    for folder in (place, *place.parents):
        if _is_file(folder / NAME):
            found = folder / NAME
            return found if start.is_absolute() else Path(os.path.relpath(found))
    return None


def _of_user() -> Path | None:
    home = os.environ.get("XDG_CONFIG_HOME", "")
    # The standard ignores a relative path. With a relative HOME, data could hold the user's file.
    folder = home if os.path.isabs(home) else os.path.expanduser("~/.config")  # noqa: PTH111, PTH117
    return Path(folder, "cpmodel", "config.toml") if os.path.isabs(folder) else None  # noqa: PTH117


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - a file without permission is ignored


class ConfigFile(Struct, frozen=True):
    """A configuration file that was read.

    Attributes
    ----------
    fingerprint : size and hash of the file
    written : its content, with positions
    rank : its priority, 0 = highest
    """

    fingerprint: Fingerprint
    written: TomlFile[Any]
    rank: int

    def settings(self) -> Iterator[ConfiguredValue]:
        """Yield all values of the file."""
        document = self.written.document
        for table in (EXPERIMENT, DEFAULTS):
            for key, value in msgspec.structs.asdict(getattr(document, table)).items():
                if value is not None:
                    yield ConfiguredValue((table, key), value, self.rank, self.written)
        for name, source in document.parameters.items():
            yield ConfiguredValue((PARAMETERS, name), source.origin, self.rank, self.written)

    def trust(self) -> ConfiguredValue | None:
        """Return the list of trusted directories; None = the file has none."""
        place = (TRUST, DIRECTORIES)
        listed = self.written.document.trust.directories
        return ConfiguredValue(place, listed, self.rank, self.written) if listed else None


class ConfiguredValue(Struct, frozen=True):
    """A value from a file.

    Attributes
    ----------
    place : table and key
    value : the TOML value
    rank : priority of its file
    written : the content of its file
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
    """Return the allowed content of configuration files.

    Parameters
    ----------
    defaults : type of the table of options, whose fields are None by default
    examples : examples of keys
    homes : the right table of keys that are often misplaced
    """
    document = msgspec.defstruct(
        "Document",
        [
            (EXPERIMENT, Naming, msgspec.field(default_factory=Naming)),
            (PARAMETERS, dict[str, Source], msgspec.field(default_factory=dict)),
            (DEFAULTS, defaults, msgspec.field(default_factory=defaults)),
            (TRUST, Trust, msgspec.field(default_factory=Trust)),
        ],
        forbid_unknown_fields=True,
    )
    own = {
        EXPERIMENT: '[experiment], then name = "app.p{p}.n{n}.r{rep}"',
        PARAMETERS: '[parameters], then n = { from = "metadata:cells" }',
        DEFAULTS: '[defaults], then metric = "time"',
        TRUST: '[trust], then directories = ["/home/me/runs"]',
        DIRECTORIES: 'directories = ["/home/me/runs"]',
        "name": 'name = "app.p{p}.n{n}.r{rep}"',
        "scaling": 'scaling = "weak"',
        "from": 'from = "processes"',
    }
    return TomlFormat(document, {**examples, **own}, UsageError, homes)


def read(paths: Iterable[Path], form: TomlFormat[Any]) -> tuple[ConfigFile, ...]:
    """Return the contents of configuration files.

    Raises
    ------
    UsageError
        If a file cannot be read, is not TOML, or has invalid content; the message begins with file
        and line.
    """
    return tuple(_read(path, form, rank) for rank, path in enumerate(paths))


def _read(path: Path, form: TomlFormat[Any], rank: int) -> ConfigFile:
    try:
        content = path.read_bytes()
    except OSError as cause:
        raise UsageError(
            f"{path}: {cause.strerror}",
            hint="--config names a file that replaces the cpmodel.toml above the runs",
        ) from cause
    digest = hashlib.sha256(content).hexdigest()
    fingerprint = Fingerprint(str(path), len(content), digest)
    return ConfigFile(fingerprint, form.parse(content, str(path)), rank)


def merge_settings(values: Iterable[ConfiguredValue]) -> Mapping[Place, ConfiguredValue]:
    """Return every value that is set, each from the file with the highest priority.

    Parameters
    ----------
    values : values of all files; those of a file with higher priority come first
    """
    settings: dict[Place, ConfiguredValue] = {}
    for setting in values:
        settings.setdefault(setting.place, setting)
    return settings


def trusted_directories(files: Iterable[ConfigFile]) -> list[str]:
    """Return the resolved directories that files of user and machine list, without doubles."""
    listed = (entry for file in files for entry in file.written.document.trust.directories)
    known = (os.path.expanduser(entry) for entry in listed)  # noqa: PTH111 - never fails
    # A relative entry would move with the working directory.
    return [*dict.fromkeys(resolved(each) for each in known if Path(each).is_absolute())]


def resolved(folder: str | Path) -> str:
    """Return the absolute path of a directory without symbolic links."""
    return os.path.realpath(folder)


def change_directories(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Change the list of trusted directories in the file of the user, in one step.

    All other lines of the file stay the same. A missing file is created.

    Parameters
    ----------
    path : the file of the user, which is valid
    change : returns the new list for the present one

    Raises
    ------
    UsageError
        If the list is written in a form that cannot be edited.
    OutputError
        If the file cannot be written.
    """
    # Programs that keep such files in one place leave links to them.
    path = Path(os.path.realpath(path))
    try:
        text = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
        before = tomllib.loads(text)
        present = before.get(TRUST, {}).get(DIRECTORIES, [])
        after = change([*present])
        made = _edited(text, after)
        is_other = tomllib.loads(made) != {**before, TRUST: {DIRECTORIES: after}}
    except ValueError:
        is_other = True
    except OSError as cause:
        raise OutputError(f"{path}: {cause.strerror}", hint="check its permissions") from cause
    if is_other:
        raise UsageError(
            f"{path}: the list of trusted directories cannot be edited",
            hint=f"write it as [{TRUST}], then {DIRECTORIES} = [...] on lines of its own",
        )
    _write(path, made.encode())


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        write_file(path, content, overwrite=True)
        if mode is not None:
            path.chmod(mode)
    except OSError as cause:
        raise OutputError(f"{path}: {cause.strerror}", hint="check its permissions") from cause


def _edited(text: str, directories: Sequence[str]) -> str:
    """Return the text of a file with another list of directories."""
    known, lines = lines_of(text), text.splitlines(keepends=True)
    value = "".join(f"    {text_in_toml(each)},\n" for each in directories)
    new = f"{DIRECTORIES} = [\n{value}]\n"
    if (at := known.get((TRUST, DIRECTORIES))) is not None:
        end = _end_of_value(lines, at - 1)
        return "".join([*lines[: at - 1], new, *lines[end:]])
    if (at := known.get((TRUST,))) is not None:
        return "".join([*lines[:at], new, *lines[at:]])
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}[{TRUST}]\n{new}"


def _end_of_value(lines: Sequence[str], start: int) -> int:
    """Return the number of the line behind the value that begins in line `start`, from 0."""
    for end in range(start + 1, len(lines) + 1):
        try:
            if [*tomllib.loads("".join(lines[start:end]))] == [DIRECTORIES]:
                return end
        except tomllib.TOMLDecodeError:
            continue
    raise ValueError
