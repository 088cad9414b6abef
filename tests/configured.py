"""Configuration files, and the settings that cpmodel reads from them."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def trust(*folders: Path) -> None:
    """Let the configuration files in these directories decide, as `cpmodel trust` does."""
    listed = ", ".join(f'"{folder.resolve()}"' for folder in folders)
    user = Path(os.environ["XDG_CONFIG_HOME"], "cpmodel", "config.toml")
    write(user, f"[trust]\ndirectories = [{listed}]\n")


def told(run, *words: object) -> dict[str, tuple[str, str]]:
    """Return value and origin of every setting, as `cpmodel info --config` lists them."""
    done = run(*words, "--config", "-f", "csv")
    assert done.status == 0, done.err
    return {row["setting"]: (row["value"], row["from"])
            for row in csv.DictReader(io.StringIO(done.out))}  # fmt: skip


def target(done) -> str:
    assert done.status == 0, done.err
    first = done.out.partition(" (")[0]
    return first[first.rindex("at p = ") :]
