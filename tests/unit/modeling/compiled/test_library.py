"""Selection and build of the C library."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from callpath_modeler.modeling.compiled import library, sources
from implementations import needs_library

build = pytest.importorskip("callpath_modeler.modeling.compiled.build", reason="needs hatchling")

FOLDER = Path(library.__file__).parent
COMPILER = """#!/bin/sh
case "$*" in *march=%s*) echo "no such processor" >&2; exit 1;; esac
while [ "$1" != -o ]; do shift; done
touch "$2"
"""


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Path]]:
    """Return the search path of libraries, which tests change."""
    paths = sources.libraries(FOLDER)
    monkeypatch.setattr(library, "libraries", lambda _: paths)
    library.reload()
    yield paths
    library.reload()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with sources, a library of other sources, and a compiler."""
    shutil.copy(FOLDER / "sources.py", tmp_path)
    (tmp_path / "one.c").touch()
    (tmp_path / "modeler-of-others-any.so").touch()
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER % "none")
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setattr("sysconfig.get_platform", lambda: "linux-x86_64")
    return tmp_path


@needs_library
def test_where_the_library_for_a_processor_is_damaged_the_general_one_serves(
    found: dict[str, Path], tmp_path: Path
) -> None:
    for kind in sources.PROCESSORS[1:]:
        found[kind] = tmp_path / kind
        found[kind].write_bytes(b"\x7fELF")
    assert library.compiled()


@pytest.mark.parametrize("content", [None, b"", b"\x7fELF", b"no library" * 1000])
def test_without_one_that_can_be_loaded_there_is_none(
    found: dict[str, Path], tmp_path: Path, content: bytes | None
) -> None:
    found["any"] = tmp_path / "any"
    if content is not None:
        found["any"].write_bytes(content)
    assert not library.compiled()


def test_each_processor_has_a_library_and_none_is_of_other_sources(folder: Path) -> None:
    build.compile_libraries(folder)
    assert set(folder.glob("*.so")) == set(sources.libraries(folder).values())


@pytest.mark.parametrize("kind", sources.PROCESSORS[1:])
def test_a_compiler_that_knows_not_all_processors_leaves_nothing(folder: Path, kind: str) -> None:
    (folder / "compiler").write_text(COMPILER % kind)
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build.compile_libraries(folder)
    assert caught.value.stderr == "no such processor\n"
    assert sorted(path.name for path in folder.iterdir()) == ["compiler", "one.c", "sources.py"]


def test_without_a_compiler_there_is_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(FileNotFoundError):
        build.compile_libraries(folder)
    assert not list(folder.glob("*.so"))
