"""The runs behind what a user names: files, directories, manifests; parameters from names."""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import msgspec

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.printable import printable, shortened
from callpath_modeler.readers.base import Match
from callpath_modeler.readers.name_words import REPETITIONS
from callpath_modeler.readers.registry import Registry
from callpath_modeler.readers.tokens import NUMBER

MANIFEST = "runs.toml"
"""A file of this name in a directory says which runs there are and what their parameters were."""

# Where a run directory holds a profile of this stem, what lies beside it (summary.cubex,
# trace.cubex) was derived from the same run and measures other things.
_MAIN_STEM = "profile"
# A run that was measured once can leave both: the profile is small, and reading it is exact.
_TRACE, _PROFILE = ".otf2", ".cubex"


# Endings that say little of a content, or belong to formats that carry results from program to
# program: beside profiles of a measurement tool, such files were made from them.
_GENERAL = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".txt", ".extra-p",
            ".folded", ".collapsed", ".dat", ".log", ".out", ".result", ".yaml", ".yml", ".pkl",
            ".pickle")  # fmt: skip

_MOST_IN_A_NAME = 12
"""Parameters in a pattern of names: a number may end in two ways at a decimal point."""

_NAMED = 3
"""Files that one finding names."""

_Pattern = re.Pattern[str]


@dataclass(frozen=True, slots=True)
class RunFile:
    """One profile on disk and what a manifest, or a pattern of names, says of it.

    Attributes
    ----------
    path : the profile
    parameters : parameter values by name, as a manifest or a pattern states them
    repetition : number of the repetition, or None
    from_manifest : True if a manifest gave the parameters: they then count as they are
    from_pattern : True if a pattern of names says what the numbers of the name are
    names : the name of the profile without its ending, and those of the directories above it,
        the nearest first
    """

    path: Path
    parameters: Mapping[str, float] = field(default_factory=dict)
    repetition: int | None = None
    from_manifest: bool = False
    from_pattern: bool = False
    names: tuple[str, ...] = ()

    @property
    def components(self) -> tuple[str, ...]:
        """Return the names, by default those of the path."""
        if self.names:
            return self.names
        path = self.path.absolute()
        return (path.name, *(folder.name for folder in path.parents))

    @property
    def is_explicit(self) -> bool:
        """Tell whether the parameters are given, so that nothing is inferred from the name."""
        return self.from_pattern or (self.from_manifest and bool(self.parameters))


class _ManifestRun(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    parameters: dict[str, float] = {}
    repetition: int | None = None


class _Manifest(msgspec.Struct, forbid_unknown_fields=True):
    schema: int
    run: list[_ManifestRun]


def discover(
    sources: Sequence[Path],
    registry: Registry,
    *,
    name_pattern: str | None = None,
    findings: list[Finding] | None = None,
) -> list[RunFile]:
    """Find the profiles that `sources` stand for, in a deterministic order.

    Parameters
    ----------
    sources : profiles, directories (searched to any depth), manifests
    registry : the readers that say what a profile is
    name_pattern : pattern of run names such as ``"app.p{p}.n{n}.r{rep}"``
    findings : takes in a finding for each directory with files that no reader recognises

    Raises
    ------
    InputError
        If a source does not exist, or a directory holds no profile.
    UsageError
        If the pattern is malformed, or fits no run.
    """
    runs: list[RunFile] = []
    pattern = None if name_pattern is None else _compiled(name_pattern)
    for source in sources:
        if source.suffix.lower() == ".toml" and source.is_file():
            runs += _from_manifest(source, registry)
        elif source.is_dir() and registry.match(source) is None:
            runs += _in_directory(source, registry, pattern, findings)
        elif source.is_file() and _is_one(source.parent, [source], registry):
            runs.append(_named(source.parent, registry, pattern))
        else:
            runs.append(_named(source, registry, pattern))
    if name_pattern is not None:
        _require_matches(runs, name_pattern)
    return runs


def _require_matches(runs: Sequence[RunFile], pattern: str) -> None:
    named = [run for run in runs if not run.from_manifest]
    if named and not any(run.parameters or run.repetition is not None for run in named):
        raise UsageError(
            f"run name pattern {pattern!r} fits no run",
            hint=f"names are those of directories, or of files without their ending; the first is "
            f"{named[0].path.absolute().parent.name}/{named[0].path.name}",
        )


def write_manifest(runs: Iterable[RunFile], directory: Path) -> str:
    """Return the text of a manifest for `runs`, with paths relative to `directory`."""
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
        raise InputError(f"{text}: the name is no UTF-8 text", hint="rename the run") from cause


def _in_directory(
    directory: Path,
    registry: Registry,
    pattern: _Pattern | None,
    findings: list[Finding] | None,
) -> list[RunFile]:
    if not os.access(directory, os.R_OK | os.X_OK):
        raise InputError(f"{directory}: may not be read", hint="check its permissions")
    if (directory / MANIFEST).is_file():
        return _from_manifest(directory / MANIFEST, registry)
    runs = []
    unknown: list[Path] = []
    for is_profile in (_is_profile, partial(_is_recognised, unknown)):
        for profiles in _walk(directory, registry, is_profile):
            main = [path for path in profiles if path.name.split(".")[0].lower() == _MAIN_STEM]
            chosen = _without_traces(main or profiles)
            runs += [_named(path, registry, pattern) for path in chosen]
        if runs:
            break
    if findings is not None and unknown and runs:
        findings.append(_unrecognised(directory, unknown))
    # What is no profile yet is opened all the same, to hear what is to be done about it.
    known = {path for run in runs for path in (run.path, *run.path.parents)}
    runs += [
        _named(path, registry, pattern)
        for path, _ in _folders(directory)
        if path not in known
        and registry.match(path) is not None
        and not any(_is_made_of(run.path, path) for run in runs)
    ]
    if not runs:
        raise InputError(
            f"{directory}: no profiles in this directory",
            hint=f"looked for {' '.join(registry.suffixes())}, to any depth",
        )
    return runs


def _walk(
    directory: Path, registry: Registry, is_profile: Callable[[Path, Registry], bool]
) -> Iterator[list[Path]]:
    closed: list[str] = []
    for folder, files in _folders(directory, closed):
        names = sorted(files, key=natural_order)
        profiles = [path for name in names if is_profile(path := folder / name, registry)]
        if profiles:
            yield [folder] if _is_one(folder, profiles, registry) else profiles
    # A directory that may not be read is left out by name, when it is opened as a profile.
    for name in closed:
        yield [Path(name)]


def _without_traces(paths: Sequence[Path]) -> Sequence[Path]:
    """Leave out the traces of runs that there are profiles of."""
    if not any(path.name.lower().endswith(_PROFILE) for path in paths):
        return paths
    return [path for path in paths if not path.name.lower().endswith(_TRACE)]


def _is_one(folder: Path, files: Sequence[Path], registry: Registry) -> bool:
    """Tell whether a directory is a single profile, of which `files` are parts."""
    reader = registry.match(folder)
    return reader is not None and all(registry.match(file) is reader for file in files)


def _folders(directory: Path, closed: list[str] | None = None) -> Iterator[tuple[Path, list[str]]]:
    """Go through a directory, all below it, and the names of the files there.

    Links to directories elsewhere are followed, each place once; hidden directories are not.

    Parameters
    ----------
    closed : takes in the directories that may not be read
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
    """Tell whether a directory is to be looked into, and note where a link leads.

    Parameters
    ----------
    seen : places that are looked through anyway, first the one where the search began
    """
    if not path.is_symlink():
        return True
    place = Path(os.path.realpath(path))
    if seen[0].is_relative_to(place) or any(place.is_relative_to(known) for known in seen):
        return False
    seen.append(place)
    return True


def _is_made_of(profile: Path, raw: Path) -> bool:
    """Tell whether a directory is what a tool measured of the run that `profile` is of.

    They lie side by side, and one word tells them apart: ``hpctoolkit-app-measurements-17`` and
    ``hpctoolkit-app-database-17``.
    """
    if profile.parent != raw.parent:
        return False
    words, others = (re.split(r"[._-]", path.name) for path in (profile, raw))
    pairs = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
    return len(words) == len(others) and len(pairs) == 1 and "".join(pairs[0]).isalpha()


def _is_profile(path: Path, registry: Registry) -> bool:
    # By name first: a directory may hold thousands of other files on a slow file system.
    if not path.name.lower().endswith(_telling(registry)):
        return False
    # What is named like a profile and cannot be one is to be named, not passed over.
    if not path.is_file() or path.stat().st_size == 0 or not os.access(path, os.R_OK):
        return True
    return registry.match(path) is not None


def _is_recognised(unknown: list[Path], path: Path, registry: Registry) -> bool:
    """Tell whether a reader recognises a file; add others with a known ending to `unknown`."""
    if not path.name.lower().endswith(registry.suffixes()):
        return False
    is_recognised = registry.surest(path)[1] is Match.CONTENT
    if not is_recognised:
        unknown.append(path)
    return is_recognised


def _unrecognised(directory: Path, files: Sequence[Path]) -> Finding:
    names = ", ".join(str(path.relative_to(directory)) for path in files[:_NAMED])
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    return Finding("CPM164", str(directory), f"{names}{more}", len(files))


def _telling(registry: Registry) -> tuple[str, ...]:
    """Return the endings that say of what format a file is."""
    general = {*_GENERAL, *(f"{ending}.gz" for ending in _GENERAL)}
    return tuple(ending for ending in registry.suffixes() if ending not in general)


def natural_order(name: str) -> tuple[tuple[int, float, str], ...]:
    """Return a sort key that puts ``p8`` before ``p64``."""
    parts = re.split(r"(\d+)", name)
    return tuple((0, float(part), "") if part.isdecimal() else (1, 0.0, part) for part in parts)


def _named(path: Path, registry: Registry, pattern: _Pattern | None) -> RunFile:
    """Return a run with its names, or with what the pattern finds in them."""
    lower = path.name.lower()
    endings = (end for end in registry.suffixes() if lower.endswith(end.lower()))
    ending = max(endings, key=len, default="")
    place = path.absolute()
    stem = path.name[: len(path.name) - len(ending)]
    names = (stem, *(folder.name for folder in place.parents))
    if pattern is None:
        return RunFile(path, names=names)
    values = _matched(pattern, names)
    repetition = next((int(values[k]) for k in values if k in REPETITIONS), None)
    parameters = {k: v for k, v in values.items() if k not in REPETITIONS}
    return RunFile(path, parameters, repetition, from_pattern=True, names=names)


def _matched(pattern: _Pattern, names: Sequence[str]) -> dict[str, float]:
    """Return what a pattern finds: in the path from above, or in the directory and the file."""
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


def _from_manifest(path: Path, registry: Registry) -> list[RunFile]:
    try:
        manifest = msgspec.toml.decode(path.read_bytes(), type=_Manifest)
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError, OSError) as cause:
        raise InputError(
            f"{path}: not a manifest of runs: {cause}",
            hint="`cpmodel info RUNS --write-manifest` writes one to start from",
        ) from cause
    if manifest.schema != 1:
        raise InputError(f"{path}: schema {manifest.schema} is not known", hint="schema = 1")
    for run in manifest.run:
        if "\0" in run.path:
            raise InputError(f"{path}: a null byte in path {run.path!r}", hint="mend the path")
        _check_length(path, run.path)
        for name, value in run.parameters.items():
            if not math.isfinite(value):
                raise InputError(f"{path}: {name} = {value} of {run.path}", hint="give a number")
    return [
        replace(
            _named(path.parent / run.path, registry, None),
            parameters={printable(name): value for name, value in run.parameters.items()},
            repetition=run.repetition,
            from_manifest=True,
        )
        for run in manifest.run
    ]


def _check_length(manifest: Path, name: str) -> None:
    """Refuse a path that no file can have; one that is not there is refused elsewhere."""
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
    """Tell whether what stands between two numbers could be a part of either."""
    return not text or text.isdecimal()


def _compiled(pattern: str) -> _Pattern:
    """Turn ``"app.p{p}.r{rep}"`` into an expression that finds the numbers in run names."""
    pieces = re.split(r"\{([A-Za-z]+)\}", pattern)
    names = pieces[1::2]
    if not names or len(set(names)) < len(names) or re.search(r"[{}]", "".join(pieces[::2])):
        raise UsageError(
            f"run name pattern {pattern!r} is malformed",
            hint="write each parameter once in braces, e.g. --name 'app.p{p}.n{n}.r{rep}'",
        )
    if len(names) > _MOST_IN_A_NAME or any(_is_no_border(piece) for piece in pieces[2:-1:2]):
        raise UsageError(
            f"run name pattern {shortened(pattern)!r} does not say where numbers end",
            hint=f"put letters between them, up to {_MOST_IN_A_NAME}, e.g. 'app.p{{p}}.n{{n}}'",
        )
    expression = "".join(
        re.escape(piece) if k % 2 == 0 else f"(?P<{piece}>{NUMBER})"
        for k, piece in enumerate(pieces)
    )
    return re.compile(expression)
