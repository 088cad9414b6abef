"""Discovery of runs in files, directories and manifests, and parameters from patterns of names."""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.printable import printable, shortened
from callpath_modeler.readers.base import Match, Reader
from callpath_modeler.readers.registry import Registry, naming_the_reader
from callpath_modeler.readers.tokens import NUMBER, REPETITIONS
from callpath_modeler.support.toml import MOST_PARTS, line_of_deep_key

MANIFEST = "runs.toml"
"""Name of a file that lists the runs of its directory, and their parameters."""

UNLISTED = "CPM182"
"""Code of the finding about profiles that the list of runs in their directory does not name."""

# Other files next to a profile of this stem (summary.cubex, trace.cubex) are derived from the same
# run and contain other quantities.
_MAIN_STEM = "profile"
# One measurement can write both. The profile is small, and its values are exact.
_TRACE, _PROFILE = ".otf2", ".cubex"


# Endings of general formats, and of formats that exchange results between programs. Next to
# profiles of a measurement tool, such files are derived from the profiles.
_GENERAL = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".txt", ".extra-p",
            ".folded", ".collapsed", ".dat", ".log", ".out", ".result", ".yaml", ".yml", ".pkl",
            ".pickle", ".md", ".markdown")  # fmt: skip

_MOST_IN_A_NAME = 12
"""Maximum number of parameters in a pattern of names.

At a decimal point, a number can end in two ways, so the time of a match grows exponentially.
"""

_NAMED = 3
"""Maximum number of files that one finding names."""

_Pattern = re.Pattern[str]


class RunFile(Struct, frozen=True):
    """One profile on disk, with the parameters from a manifest or a pattern of names.

    Attributes
    ----------
    path : the profile
    parameters : values of parameters by name, from a manifest or a pattern
    repetition : number of the repetition, or None
    from_manifest : True if a manifest lists the run; its parameters are used unchanged
    from_pattern : True if a pattern of names determines the parameters
    names : name of the profile without its ending, then the names of the directories above it, the
        nearest first
    reader : name of the reader that recognises the contents; "" = not known
    """

    path: Path
    parameters: Mapping[str, float] = msgspec.field(default_factory=dict)
    repetition: int | None = None
    from_manifest: bool = False
    from_pattern: bool = False
    names: tuple[str, ...] = ()
    reader: str = ""

    @property
    def components(self) -> tuple[str, ...]:
        """The names, or by default the names in the path."""
        if self.names:
            return self.names
        path = self.path.absolute()
        return (path.name, *(folder.name for folder in path.parents))

    @property
    def is_explicit(self) -> bool:
        """True if the parameters are given, so that none is inferred from names."""
        return self.from_pattern or (self.from_manifest and bool(self.parameters))


class _ManifestRun(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    parameters: dict[str, float] = {}
    repetition: int | None = None


class _Manifest(msgspec.Struct, forbid_unknown_fields=True):
    schema: int
    run: list[_ManifestRun]


@dataclass(frozen=True, slots=True)
class _Remembering(Registry):
    """The readers, and the evidence for each path that was looked at."""

    seen: dict[Path, tuple[Reader | None, Match]] = field(default_factory=dict)
    endings: list[str] = field(default_factory=list)

    def surest(self, path: Path) -> tuple[Reader | None, Match]:
        """Return the reader with the strongest evidence, as `Registry.surest` does."""
        if path not in self.seen:
            # With slots, a dataclass has no `super()`.
            self.seen[path] = Registry.surest(self, path)
        return self.seen[path]

    def suffixes(self) -> tuple[str, ...]:
        """Return the endings of file names of all readers."""
        if not self.endings:
            self.endings.extend(Registry.suffixes(self))
        return tuple(self.endings)


def discover(
    sources: Sequence[Path],
    registry: Registry,
    *,
    name_pattern: str | None = None,
    findings: list[Finding] | None = None,
) -> list[RunFile]:
    """Return the profiles in `sources`, in a deterministic order.

    Parameters
    ----------
    sources : profiles, directories (searched to any depth), or manifests
    registry : readers that recognise profiles
    name_pattern : pattern of run names such as ``"app.p{p}.n{n}.r{rep}"``
    findings : list to which a finding is added for each directory with unrecognised files

    Raises
    ------
    InputError
        If a source does not exist, or if a directory contains no profile.
    UsageError
        If the pattern is malformed, or if it matches no run.
    """
    runs: list[RunFile] = []
    registry = _Remembering(registry.readers, registry.broken, registry.requested)
    pattern = None if name_pattern is None else _compiled(name_pattern)
    # Many files may be in one directory, which is looked at once.
    are_one: dict[tuple[Path, Reader | None], bool] = {}
    of_files: set[Path] = set()

    def is_of_one(file: Path) -> bool:
        key = file.parent, registry.match(file)
        if key not in are_one:
            are_one[key] = _is_one(file.parent, [file], registry)
        return are_one[key]

    for source in sources:
        if source.suffix.lower() == ".toml" and source.is_file():
            runs += _from_manifest(source, registry)
        elif source.is_dir() and registry.match(source) is None:
            runs += _in_directory(source, registry, pattern, findings)
        elif source.is_file() and is_of_one(source):
            if source.parent not in of_files:
                runs.append(_named(source.parent, registry, pattern))
            of_files.add(source.parent)
        else:
            runs.append(_named(source, registry, pattern))
    if name_pattern is not None:
        _require_matches(runs, name_pattern)
    return runs


def _require_matches(runs: Sequence[RunFile], pattern: str) -> None:
    named = [run for run in runs if not run.from_manifest]
    if named and not any(run.parameters or run.repetition is not None for run in named):
        raise UsageError(
            f"run name pattern {pattern!r} matches no run",
            hint="a pattern matches names of directories, or of files without their ending; "
            f"the first run is {named[0].path.absolute().parent.name}/{named[0].path.name}",
        )


def write_manifest(runs: Iterable[RunFile], directory: Path) -> str:
    """Return the text of a manifest of `runs`, with paths relative to `directory`.

    Raises
    ------
    InputError
        If a path is not valid UTF-8.
    """
    lines = ["schema = 1"]
    for run in runs:
        lines += ["", "[[run]]", f"path = {_toml(os.path.relpath(run.path, directory))}"]
        if run.repetition is not None:
            lines.append(f"repetition = {run.repetition}")
        if run.parameters:
            pairs = ", ".join(f"{_toml(k)} = {v!r}" for k, v in run.parameters.items())
            lines.append(f"parameters = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


def _toml(text: str) -> str:
    try:
        return msgspec.json.encode(text).decode()
    except UnicodeEncodeError as cause:
        raise InputError(f"{text}: the name is not valid UTF-8", hint="rename the run") from cause


def _in_directory(
    directory: Path,
    registry: _Remembering,
    pattern: _Pattern | None,
    findings: list[Finding] | None,
) -> list[RunFile]:
    if not os.access(directory, os.R_OK | os.X_OK):
        raise InputError(f"{directory}: no permission to read", hint="check its permissions")
    if (directory / MANIFEST).is_file():
        listed = _from_manifest(directory / MANIFEST, registry)
        if findings is not None:
            findings += _unlisted(directory, listed, registry)
        return listed
    return _searched(directory, registry, pattern, findings)


def _unlisted(
    directory: Path, listed: Sequence[RunFile], registry: _Remembering
) -> Iterator[Finding]:
    """Yield the finding about profiles that a directory's list of runs does not name."""
    try:
        found = [run.path for run in _searched(directory, registry, None, None)]
    except InputError:
        return  # the list names profiles elsewhere
    known = {os.path.realpath(run.path) for run in listed}
    others = [path for path in found if os.path.realpath(path) not in known]
    if others:
        yield Finding(UNLISTED, str(directory / MANIFEST), _names(directory, others), len(others))


def _searched(
    directory: Path,
    registry: _Remembering,
    pattern: _Pattern | None,
    findings: list[Finding] | None,
) -> list[RunFile]:
    """Return the profiles of a directory without its list of runs."""
    runs = []
    unknown: list[Path] = []
    folders: list[Path] = []
    endings = _telling(registry)
    for is_profile in (partial(_is_profile, endings), partial(_is_recognised, unknown)):
        folders.clear()
        for profiles in _walk(directory, registry, is_profile, folders):
            main = [path for path in profiles if path.name.split(".")[0].lower() == _MAIN_STEM]
            chosen = _without_traces(main or profiles)
            runs += [_named(path, registry, pattern) for path in chosen]
        if runs:
            break
    if findings is not None and unknown and runs:
        findings.append(_unrecognised(directory, unknown))
    # Raw data are opened as well, because the error of their reader explains how to convert them.
    known = {path for run in runs for path in (run.path, *run.path.parents)}
    runs += [
        _named(path, registry, pattern)
        for path in folders
        if path not in known
        and registry.match(path) is not None
        and not any(_is_made_of(run.path, path) for run in runs)
    ]
    if not runs:
        raise InputError(
            f"{directory}: no profiles in this directory",
            hint=f"searched for {' '.join(registry.suffixes())}, at any depth",
        )
    return runs


def _walk(
    directory: Path,
    registry: Registry,
    is_profile: Callable[[Path, Registry], bool],
    folders: list[Path],
) -> Iterator[list[Path]]:
    """Yield the profiles of each directory; all directories are added to `folders`."""
    closed: list[str] = []
    for folder, files in _folders(directory, closed):
        folders.append(folder)
        names = sorted(files, key=natural_order)
        profiles = [path for name in names if is_profile(path := folder / name, registry)]
        if profiles:
            yield [folder] if _is_one(folder, profiles, registry) else profiles
    # Opening a directory without read permission as a profile yields an error with its name.
    for name in closed:
        yield [Path(name)]


def _without_traces(paths: Sequence[Path]) -> Sequence[Path]:
    """Return paths without traces, if there are profiles of the same run."""
    if not any(path.name.lower().endswith(_PROFILE) for path in paths):
        return paths
    return [path for path in paths if not path.name.lower().endswith(_TRACE)]


def _is_one(folder: Path, files: Sequence[Path], registry: Registry) -> bool:
    """Return whether a directory is a single profile that consists of `files`."""
    reader = registry.match(files[0])
    if reader is None:
        return False
    # Most readers tell at once that they read no directories.
    with naming_the_reader(reader, folder):
        evidence = reader.match(folder)
    if evidence == Match.NO or registry.match(folder) is not reader:
        return False
    return all(registry.match(file) is reader for file in files[1:])


def _folders(directory: Path, closed: list[str] | None = None) -> Iterator[tuple[Path, list[str]]]:
    """Yield a directory and all directories below it, with the names of their files.

    Links to directories are followed, but no directory is visited twice. Hidden directories are
    skipped.

    Parameters
    ----------
    directory : where the search starts
    closed : list to which directories without read permission are added
    """
    seen = [Path(os.path.realpath(directory))]
    for folder, subfolders, files in os.walk(
        directory,
        followlinks=True,
        onerror=lambda error: None if closed is None else closed.append(error.filename),
    ):
        names = (name for name in subfolders if not name.startswith("."))
        subfolders[:] = [name for name in sorted(names, key=natural_order)
                         if _leads_on(Path(folder, name), seen)]  # fmt: skip
        yield Path(folder), files


def _leads_on(path: Path, seen: list[Path]) -> bool:
    """Return whether to search a directory, and record the target of a link.

    Parameters
    ----------
    path : the directory
    seen : directories that are searched; the first is the start of the search
    """
    if not path.is_symlink():
        return True
    place = Path(os.path.realpath(path))
    if seen[0].is_relative_to(place) or any(place.is_relative_to(known) for known in seen):
        return False
    seen.append(place)
    return True


def _is_made_of(profile: Path, raw: Path) -> bool:
    """Return whether a directory contains the raw data of a profile.

    The two are adjacent and differ in one word, such as ``hpctoolkit-app-measurements-17`` and
    ``hpctoolkit-app-database-17``.
    """
    if profile.parent != raw.parent:
        return False
    words, others = (re.split(r"[._-]", path.name) for path in (profile, raw))
    pairs = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
    return len(words) == len(others) and len(pairs) == 1 and "".join(pairs[0]).isalpha()


def _is_profile(endings: tuple[str, ...], path: Path, registry: Registry) -> bool:
    # The name is checked first, because a directory may contain thousands of other files.
    if not path.name.lower().endswith(endings):
        return False
    # A file with the name of a profile is reported, even if it cannot be read.
    if not path.is_file() or path.stat().st_size == 0 or not os.access(path, os.R_OK):
        return True
    return registry.match(path) is not None


def _is_recognised(unknown: list[Path], path: Path, registry: Registry) -> bool:
    """Return whether a reader recognises the content of a file; append it to `unknown` if not."""
    if not path.name.lower().endswith(registry.suffixes()):
        return False
    is_recognised = registry.surest(path)[1] is Match.CONTENT
    if not is_recognised:
        unknown.append(path)
    return is_recognised


def _unrecognised(directory: Path, files: Sequence[Path]) -> Finding:
    return Finding("CPM164", str(directory), _names(directory, files), len(files))


def _names(directory: Path, files: Sequence[Path]) -> str:
    names = ", ".join(str(path.relative_to(directory)) for path in files[:_NAMED])
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    return f"{names}{more}"


def _telling(registry: Registry) -> tuple[str, ...]:
    """Return the endings that identify a format."""
    return tuple(ending for ending in registry.suffixes() if ending not in _every_general())


def is_general(path: Path) -> bool:
    """Return whether the ending of a file is that of a general format, such as ``.csv``."""
    return path.name.lower().endswith(tuple(_every_general()))


def _every_general() -> set[str]:
    return {*_GENERAL, *(f"{ending}.gz" for ending in _GENERAL)}


def natural_order(name: str) -> tuple[tuple[int, float, str], ...]:
    """Return a sort key that puts ``p8`` before ``p64``."""
    parts = re.split(r"(\d+)", name)
    return tuple((0, float(part), "") if part.isdecimal() else (1, 0.0, part) for part in parts)


def _named(path: Path, registry: _Remembering, pattern: _Pattern | None) -> RunFile:
    """Return a run with its names, and with the parameters that a pattern finds in them."""
    lower = path.name.lower()
    endings = (end for end in registry.suffixes() if lower.endswith(end.lower()))
    ending = max(endings, key=len, default="")
    stem = path.name[: len(path.name) - len(ending)]
    # The first part is the root, whose name is empty.
    names = (stem, *path.absolute().parts[-2:0:-1], "")
    reader, evidence = registry.seen.get(path, (None, Match.NO))
    known = reader.name if reader is not None and evidence is Match.CONTENT else ""
    if pattern is None:
        return RunFile(path, names=names, reader=known)
    values = _matched(pattern, names)
    repetition = next((int(values[k]) for k in values if k in REPETITIONS), None)
    parameters = {k: v for k, v in values.items() if k not in REPETITIONS}
    return RunFile(path, parameters, repetition, from_pattern=True, names=names, reader=known)


def _matched(pattern: _Pattern, names: Sequence[str]) -> dict[str, float]:
    """Return the numbers that a pattern finds.

    A pattern without slashes is searched in the names of the directory and of the file. A pattern
    with slashes is searched in the end of the path, with and without the file.
    """
    texts = [names[1] if len(names) > 1 else "", names[0]]
    levels = pattern.pattern.count("/")
    if levels:
        texts = ["/".join(reversed(names[: levels + 1])), "/".join(reversed(names[1 : levels + 2]))]
    found: dict[str, float] = {}
    for text in texts:
        match = pattern.fullmatch(text) or pattern.search(text)
        if match is not None:
            found |= {k: float(v.replace(",", ".")) for k, v in match.groupdict().items()}
    return found


def _manifest(path: Path) -> _Manifest:
    text = path.read_bytes().decode()
    if (deep := line_of_deep_key(text)) is not None:
        raise ValueError(f"line {deep}: a key has at most {MOST_PARTS} parts")
    return msgspec.toml.decode(text, type=_Manifest)


def _from_manifest(path: Path, registry: _Remembering) -> list[RunFile]:
    try:
        manifest = _manifest(path)
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError, OSError) as cause:
        raise InputError(
            f"{path}: not a manifest of runs: {cause}",
            hint="`cpmodel info RUNS --write-manifest` writes one to start from",
        ) from cause
    if manifest.schema != 1:
        raise InputError(f"{path}: schema {manifest.schema} is not known", hint="write schema = 1")
    for run in manifest.run:
        if "\0" in run.path:
            raise InputError(f"{path}: a null byte in path {run.path!r}", hint="correct the path")
        _check_length(path, run.path)
        for name, value in run.parameters.items():
            if not math.isfinite(value):
                raise InputError(
                    f"{path}: {name} = {value} of {run.path} is not finite", hint="give a number"
                )
    return [
        structs.replace(
            _named(path.parent / run.path, registry, None),
            parameters={printable(name): value for name, value in run.parameters.items()},
            repetition=run.repetition,
            from_manifest=True,
        )
        for run in manifest.run
    ]


def _check_length(manifest: Path, name: str) -> None:
    """Raise `InputError` for a path that cannot exist; missing files are reported elsewhere."""
    try:
        (manifest.parent / name).stat()
    except OSError as cause:
        if cause.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise InputError(
                f"{manifest}: path {shortened(name)!r}: {cause.strerror}", hint="correct the path"
            ) from None
    except ValueError as cause:
        raise InputError(
            f"{manifest}: path {shortened(name)!r}: {cause}", hint="correct the path"
        ) from None


def _is_no_border(text: str) -> bool:
    """Return whether the text between two numbers could be part of either number."""
    return not text or text.isdecimal()


def _compiled(pattern: str) -> _Pattern:
    """Return the regular expression of a pattern such as ``"app.p{p}.r{rep}"``."""
    pieces = re.split(r"\{([A-Za-z]+)\}", pattern)
    names = pieces[1::2]
    if not names or len(set(names)) < len(names) or re.search(r"[{}]", "".join(pieces[::2])):
        raise UsageError(
            f"run name pattern {pattern!r} is malformed",
            hint="write each parameter once in braces, e.g. --name 'app.p{p}.n{n}.r{rep}'",
        )
    if len(names) > _MOST_IN_A_NAME or any(_is_no_border(piece) for piece in pieces[2:-1:2]):
        raise UsageError(
            f"run name pattern {shortened(pattern)!r} leaves open where numbers end",
            hint="put letters between numbers, e.g. 'app.p{p}.n{n}', and use at most "
            f"{_MOST_IN_A_NAME} numbers",
        )
    expression = "".join(
        re.escape(piece) if k % 2 == 0 else f"(?P<{piece}>{NUMBER})"
        for k, piece in enumerate(pieces)
    )
    return re.compile(expression)
