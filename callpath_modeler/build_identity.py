"""Identity of the build of this package: its version, its commit, and a digest of its sources.

Stores, shards and workers carry it. Two builds with the same sources give the same results, even if
only one of them has a commit. So the digest decides whether two builds are the same.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

DISTRIBUTION = "callpath-modeler"
_SOURCES = frozenset({".py", ".c", ".h"})
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_DIGITS = 8
_MOST_IN_A_FILE = 4_096


@cache
def build_identity() -> str:
    """Return the version, the commit if it is known, and the digest of the sources.

    The sources are read once in a process, and only in commands that need the identity.
    """
    version = "unknown"
    with suppress(PackageNotFoundError):
        version = distribution(DISTRIBUTION).version
    commit = _commit(Path(__file__).parents[1])
    of_commit = f" (commit {commit[:_DIGITS]})" if commit else ""
    return f"{version}{of_commit}, sources {_digest_of_sources()}"


def same_build(one: str, other: str) -> bool:
    """Return whether two identities are of the same sources."""
    return one.rpartition(" ")[2] == other.rpartition(" ")[2]


def _digest_of_sources() -> str:
    """Return a digest of the sources of this package and of its plugins."""
    found = hashlib.blake2b(digest_size=_DIGITS // 2)
    for package, folder in sorted(_packages().items()):
        for path in sorted(folder.rglob("*")):
            if path.suffix in _SOURCES:
                found.update(f"{package}/{path.relative_to(folder).as_posix()}\0".encode())
                found.update(hashlib.blake2b(path.read_bytes()).digest())
    return found.hexdigest()


def _packages() -> dict[str, Path]:
    """Return the folders of this package and its plugins, by name."""
    names = {__name__.partition(".")[0]}
    with suppress(PackageNotFoundError):
        points = distribution(DISTRIBUTION).entry_points
        names |= {point.module.partition(".")[0] for point in points}
    specs = {name: find_spec(name) for name in names}
    return {name: Path(spec.origin).parent for name, spec in specs.items() if spec and spec.origin}


def _commit(root: Path) -> str:
    """Return the commit of a checkout of git, or "" if there is none."""
    with suppress(OSError, UnicodeDecodeError):
        home = root / ".git"
        if home.is_file():  # a further worktree
            home = root / _text(home).removeprefix("gitdir:").strip()
        head = _text(home / "HEAD")
        if not head.startswith("ref:"):
            return head if _COMMIT.fullmatch(head) else ""
        name = head.removeprefix("ref:").strip()
        if ".." in name:
            return ""
        shared = home / _text(home / "commondir") if (home / "commondir").exists() else home
        for folder in (home, shared):
            if (folder / name).is_file():
                found = _text(folder / name)
                return found if _COMMIT.fullmatch(found) else ""
        return _packed(shared / "packed-refs", name)
    return ""


def _packed(path: Path, name: str) -> str:
    for line in path.read_text(encoding="utf-8").splitlines():
        commit, _, named = line.partition(" ")
        if named == name and _COMMIT.fullmatch(commit):
            return commit
    return ""


def _text(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(_MOST_IN_A_FILE).strip()
