"""Trusted directories: a configuration file in one of them may decide, not only describe.

The author of the profiles may also have written the configuration file beside them. So this file
describes the data: names, parameters, units. Only the user decides about answers. The files of the
user and of the machine list the directories whose own files may decide as well.

A directory below a trusted one is not trusted. Users unpack profiles of others below their own
directories.
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from callpath_modeler.atomic import write_file
from callpath_modeler.config import DIRECTORIES, TRUST, ConfigFile
from callpath_modeler.errors import OutputError, UsageError
from callpath_modeler.toml import lines_of


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
    value = "".join(f"    {json.dumps(each, ensure_ascii=False)},\n" for each in directories)
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
