"""Source files of a program, for a view of the lines of a call path.

A profile names its source files, but it does not decide what is read. A name relative to the
profile is searched in the directory of the profile, and may not leave it. A replacement of the user
allows what is below its directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from callpath_modeler.errors import UsageError
from callpath_modeler.printable import printable

_LARGEST = 2_000_000
"""Size of the largest source file that is shown, in bytes."""
_COPIES = "src"
"""Directory of a database with copies of source files under their absolute names."""
_TABULATOR = 4


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Places of source files.

    Attributes
    ----------
    profiles : profiles, whose directories may contain copies of source files
    replaced : beginnings of names in profiles, and the directories that replace them
    known : text of files by name; a cache
    """

    profiles: Sequence[Path] = ()
    replaced: Sequence[tuple[str, Path]] = ()
    known: dict[str, Sequence[str]] = field(default_factory=dict)

    def lines(self, name: str) -> Sequence[str]:
        """Return the lines of a file that a profile names, safe for terminals; () = not found."""
        if name not in self.known:
            self.known[name] = next(filter(None, map(_text, self._places(name))), ())
        return self.known[name]

    def _places(self, name: str) -> Iterator[Path]:
        """Yield the files that may have this name, best first."""
        if not name or "\0" in name:
            return
        for old, new in self.replaced:
            if name.startswith(old.rstrip("/") + "/"):
                yield from _inside(new, name.removeprefix(old.rstrip("/")).lstrip("/"))
        folders = (path if path.is_dir() else path.parent for path in self.profiles)
        is_absolute = name.startswith("/")
        for folder in dict.fromkeys(folders):
            yield from _inside(folder / _COPIES if is_absolute else folder, name.lstrip("/"))
        if is_absolute:
            yield Path(name)
        else:
            yield from _inside(Path(), name)


def source_replacements(given: Iterable[str]) -> list[tuple[str, Path]]:
    """Return the replacements that a user states as ``OLD=NEW``.

    Raises
    ------
    UsageError
        If a text has another form.
    """
    found = []
    for text in given:
        old, sign, new = text.partition("=")
        if not (old.strip() and sign and new.strip()):
            raise UsageError(
                f"--source-path {text!r} is malformed",
                hint="e.g. --source-path /build/app=/home/me/app",
            )
        found.append((old.strip(), Path(new.strip()).expanduser()))
    return found


def _inside(folder: Path, name: str) -> Iterator[Path]:
    """Yield the file `name` in a directory, if neither dots nor links lead out of it."""
    try:
        path = (folder / name).resolve()
        if path.is_relative_to(folder.resolve()):
            yield path
    except (OSError, RuntimeError, ValueError):
        return  # a loop of links, or a name that is too long


def _text(path: Path) -> list[str]:
    """Return the lines of a file; [] = it is no readable file, or too large."""
    try:
        # Files of the kernel have no size, and reading some of them never ends.
        if not path.is_file() or not 0 < path.stat().st_size <= _LARGEST:
            return []
        text = path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return []
    return [printable(line.expandtabs(_TABULATOR)) for line in text.split("\n")]
