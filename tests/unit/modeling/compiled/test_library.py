"""Selection and build of the C library."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import InstallationError
from callpath_modeler.modeling.compiled import library, sources
from callpath_modeler.modeling.compiled.library import PROTOTYPES
from callpath_modeler.modeling.constants import evidence, hypotheses, outcome

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
    library.engine.cache_clear()
    yield paths
    library.engine.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with sources, a library of other sources, and a compiler."""
    (tmp_path / "one.c").touch()
    (tmp_path / "modeler-of-others-any.so").touch()
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER % "none")
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setattr("sysconfig.get_platform", lambda: "linux-x86_64")
    return tmp_path


def test_where_the_library_for_a_processor_is_damaged_the_general_one_serves(
    found: dict[str, Path], tmp_path: Path
) -> None:
    for kind in sources.PROCESSORS[1:]:
        found[kind] = tmp_path / kind
        found[kind].write_bytes(b"\x7fELF")
    assert library.engine().own_units


@pytest.mark.parametrize("content", [None, b"", b"\x7fELF", b"no library" * 1000])
def test_without_one_that_can_be_loaded_there_is_none(
    found: dict[str, Path], tmp_path: Path, content: bytes | None
) -> None:
    found["any"] = tmp_path / "any"
    if content is not None:
        found["any"].write_bytes(content)
    with pytest.raises(InstallationError):
        library.engine()


def test_each_processor_has_a_library_and_none_is_of_other_sources(folder: Path) -> None:
    build.compile_libraries(folder)
    assert set(folder.glob("*.so")) == set(sources.libraries(folder).values())


@pytest.mark.parametrize("kind", sources.PROCESSORS[1:])
def test_a_processor_that_a_compiler_does_not_know_gets_the_general_library(
    folder: Path, kind: str
) -> None:
    (folder / "compiler").write_text(COMPILER % kind)
    build.compile_libraries(folder)
    made = sources.libraries(folder)
    assert set(folder.glob("*.so")) == {made[each] for each in made if each != kind}


def test_a_compiler_that_fails_leaves_nothing(folder: Path) -> None:
    (folder / "compiler").write_text('#!/bin/sh\necho "no room" >&2; exit 1')
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build.compile_libraries(folder)
    assert caught.value.stderr == "no room\n"
    assert sorted(path.name for path in folder.iterdir()) == ["compiler", "one.c"]


def test_a_compiler_that_is_named_but_missing_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(FileNotFoundError, match="no-such-compiler"):
        build.compile_libraries(folder)


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Leave a path without programs, and no compiler in `$CC`."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return monkeypatch


def hook(target: str) -> Any:
    return build.CompiledHook(str(FOLDER), {}, None, None, str(FOLDER), target)


def test_only_a_wheel_without_a_compiler_asks_for_one(nothing: pytest.MonkeyPatch) -> None:
    assert hook("wheel").dependencies() == ["ziglang[or-install-a-C-compiler]>=0.13"]
    assert hook("sdist").dependencies() == []
    nothing.setenv("CC", "gcc -m64")
    assert hook("wheel").dependencies() == []


def test_without_a_compiler_the_build_says_what_to_do(nothing: pytest.MonkeyPatch) -> None:
    nothing.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(FileNotFoundError, match=r"^there is no C compiler; install one \(cc\)"):
        build.compiler()
    nothing.setattr("importlib.util.find_spec", lambda _: object())
    assert build.compiler()[1:4] == ["-m", "ziglang", "cc"]


def test_the_library_has_the_constants_of_python() -> None:
    lines = [line.split(" ", 2) for line in sources.header().splitlines()[2:]]
    assert {kind for kind, *_ in lines} == {"#define"}
    values = {name: value for _, name, value in lines}
    assert float(values["EVIDENCE_LOG_2PI"]) == evidence.LOG_2PI
    assert values["HYPOTHESES_FEWEST_FOR_PAIRS"] == str(hypotheses.FEWEST_FOR_PAIRS)
    tails = values["OUTCOME_TAILS"].strip("{}").split(", ")
    assert tuple(map(float, tails)) == outcome.TAILS
    text = "".join(path.read_text() for path in sources.sources(FOLDER))
    assert not [name for name in values if not re.search(rf"\b{name}\b", text)]


def test_a_library_with_other_constants_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(sources.libraries(FOLDER).values())
    other = sources.header().replace("0.025", "0.5") + "\n"
    monkeypatch.setattr(sources, "header", lambda: other)
    assert before.isdisjoint(sources.libraries(FOLDER).values())


C_TYPES = {
    "int64_t": "",
    "double": "double",
    "double *": "float64",
    "float *": "float32",
    "int64_t *": "int64",
    "int32_t *": "int32",
    "int16_t *": "int16",
    "int8_t *": "int8",
}


def test_the_declarations_are_those_of_the_sources() -> None:
    text = "".join(path.read_text() for path in FOLDER.glob("*.c"))
    found = {}
    for name, arguments in re.findall(r"^int64_t (\w+)\(([^)]*)\)\s*\{", text, re.MULTILINE):
        words = [" ".join(each.split()) for each in arguments.split(",") if each != "void"]
        parts = [re.fullmatch(r"(?:const )?(.*?)(\w+)", each) for each in words]
        found[name] = [(C_TYPES[part[1].strip()], part[2]) for part in parts if part]
    assert found.pop("processor") == []
    declared = {
        name: [
            (str(each.element or ("double" if each.number is ctypes.c_double else "")), each.name)
            for each in arguments
        ]
        for name, arguments in PROTOTYPES.items()
    }
    assert found == declared


@pytest.mark.parametrize(
    ("weight", "message"),
    [(np.ones((2, 4)), "weight has the shape"), (np.ones(6), "weight must have 2 axes")],
)
def test_the_door_refuses_shapes_that_c_would_misread(weight: FloatArray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        library.call("own_units", np.ones((2, 3)), weight)


def test_the_door_converts_what_c_reads_unless_numbers_would_change() -> None:
    centre, weight = np.array([[1, 2, 4], [3, 1, 2]]), np.ones((3, 2), dtype=np.float32).T
    values, unit = library.call("own_units", centre, weight)
    assert values.tolist() == (centre / centre.max(axis=1, keepdims=True)).tolist()
    assert unit.tolist() == [4, 3]
    with pytest.raises(TypeError, match="same_kind"):
        library.call("own_units", centre * 1j, weight)


@pytest.mark.parametrize("column", [np.zeros(4, dtype=np.float32), np.zeros(8)[::2]])
def test_the_door_copies_no_array_that_c_changes(column: FloatArray) -> None:
    ones = np.ones((4, 3))
    given = np.arange(4), ones, ones, ones[:, :1], ones, ones, np.zeros((4, 2), dtype=np.int16)
    with pytest.raises(ValueError, match="rss must be contiguous float64"):
        library.call("measure_quality", *given, column, *np.zeros((3, 4)))
