"""Cases of golden outputs: command lines by name, in the TOML files of `cases/`.

A case is one command line, or several, one a line. Each is written as for a shell: variables of the
environment in front, `< FILE` for standard input; the word `cpmodel` is left out.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

from golden_files import EXPECTED

HERE = Path(__file__).parent
_TYPED = re.compile(r"'([^']*)'|(\S+)")


@dataclass(frozen=True)
class Step:
    """A command: its line, its words, variables of the environment, and standard input."""

    line: str
    words: tuple[str, ...]
    variables: dict[str, str]
    given: str | None

    @classmethod
    def of(cls, line: str) -> Step:
        words, variables, given = shlex.split(line), {}, None
        while words and words[0].partition("=")[0].isupper() and "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        if "<" in words:
            at = words.index("<")
            given = words[at + 1]
            del words[at : at + 2]
        return cls(line, tuple(words), variables, given)


@dataclass(frozen=True)
class Case:
    """A case: the kind of its input, its name, and its commands."""

    kind: str
    name: str
    steps: tuple[Step, ...]

    @property
    def file(self) -> Path:
        """The file with the golden output."""
        return EXPECTED / self.kind / f"{self.name}.txt"


def all_cases() -> list[Case]:
    """Return all cases, ordered as in their files."""
    found = []
    for path in sorted((HERE / "cases").glob("*.toml")):
        for name, lines in tomllib.loads(path.read_text("utf-8")).items():
            steps = tuple(Step.of(line) for line in lines.strip().splitlines())
            found.append(Case(path.stem, name, steps))
    return found


@dataclass(frozen=True)
class Session:
    """A session of the browser: its command, the size of the screen, and keys for each screen."""

    name: str
    step: Step
    size: tuple[int, int]
    keys: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def file(self) -> Path:
        """The file with the golden screens."""
        return EXPECTED / "screens" / f"{self.name}.txt"


def keys_of(words: str) -> tuple[str, ...]:
    """Return the keys of a line: names of keys, and typed text in quotes."""
    found = (part for typed, key in _TYPED.findall(words) for part in ([key] if key else typed))
    return tuple(found)


def all_sessions() -> list[Session]:
    """Return all sessions of the browser."""
    known = tomllib.loads((HERE / "sessions.toml").read_text("utf-8"))
    return [
        Session(
            name,
            Step.of(each["command"]),
            tuple(each["size"]),
            tuple((words, keys_of(words)) for words in each["keys"]),
        )
        for name, each in known.items()
    ]
