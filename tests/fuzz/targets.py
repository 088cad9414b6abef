"""What the fuzzers call: one target per format and per language that users write.

A target takes any bytes. It returns True where they were read, False where a
`CallpathModelerError` refused them. Every other exception is a finding.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from callpath_modeler.errors import CallpathModelerError
from callpath_modeler.readers.base import Match, opened_runs
from callpath_modeler.readers.registry import load
from callpath_modeler.testing.checks import check_tree, check_values, read_all

LARGEST_SEED = 48 << 10
MOST_SEEDS = 40
_SIZE = 4

_T = TypeVar("_T")
Seeds = Callable[[Path], Sequence[bytes]]
"""Returns the inputs that a fuzzer begins with, from a folder of measured profiles."""


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to fuzz.

    Attributes
    ----------
    run : reads an input; True if it was read, False if it was refused
    seeds : returns the inputs to begin with
    framed : whether inputs are files or members one after another, each mutated by itself
    """

    run: Callable[[bytes], bool]
    seeds: Seeds
    framed: bool = False


def framed(parts: Sequence[bytes]) -> bytes:
    """Put parts together, each after its size."""
    return b"".join(len(part).to_bytes(_SIZE, "little") + part for part in parts)


def parts_of(data: bytes) -> list[bytes]:
    """Take parts apart; the last one may be shorter than its size."""
    parts = []
    while len(data) >= _SIZE:
        size = int.from_bytes(data[:_SIZE], "little")
        parts.append(data[_SIZE : _SIZE + size])
        data = data[_SIZE + size :]
    return parts


@contextmanager
def _folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="fuzz"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _is_read(reader_name: str, path: Path) -> bool:
    reader = load(reader_name)
    try:
        if reader.match(path) is Match.NO:
            return False
        with opened_runs(reader, path) as runs:
            for run in runs:
                check_tree(run.source.call_tree)
                for reduced in read_all(run.source).values():
                    check_values(reduced, len(run.source.call_tree))
                run.source.findings()
    except CallpathModelerError as error:
        assert error.hint, f"no hint: {error}"
        assert "\n" not in error.message, f"several lines: {error}"
        return False
    return True


def file_of(reader: str, name: str) -> Callable[[bytes], bool]:
    """Return a function that reads its input as a file of this name."""

    def run(data: bytes) -> bool:
        with _folder() as folder:
            path = folder / name
            path.write_bytes(data)
            return _is_read(reader, path)

    return run


def database_of(reader: str, main: str = "") -> Callable[[bytes], bool]:
    """Return a function that writes the files of a directory, and reads that.

    Parameters
    ----------
    main : the file of it that is opened; "" for the directory
    """

    def run(data: bytes) -> bool:
        parts = parts_of(data)
        with _folder() as folder:
            for name, content in zip(parts[::2], parts[1::2], strict=False):
                inner = Path(name.decode("latin-1").replace("\0", ""))
                if inner.is_absolute() or ".." in inner.parts or len(str(inner)) > 120:
                    continue
                path = folder / "d" / inner
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                except OSError:
                    continue
            return _is_read(reader, folder / "d" / main)

    return run


def _of_files(*patterns: str, skip: str = "attacks") -> Seeds:
    def seeds(data: Path) -> list[bytes]:
        paths = sorted(
            path
            for pattern in patterns
            for path in data.rglob(pattern)
            if path.is_file() and path.stat().st_size <= LARGEST_SEED
        )
        return [path.read_bytes() for path in _some(paths)]

    return seeds


def _of_folders(*patterns: str, largest: int = 4 * LARGEST_SEED) -> Seeds:
    """Return directories as seeds: names and contents of their files in turn."""

    def seeds(data: Path) -> list[bytes]:
        found = []
        homes = sorted({path.parent for pattern in patterns for path in data.rglob(pattern)})
        for home in homes:
            files = sorted(path for path in home.rglob("*") if path.is_file())
            if files and sum(path.stat().st_size for path in files) <= largest:
                named = ((str(path.relative_to(home)).encode(), path) for path in files)
                found.append(
                    framed([part for name, path in named for part in (name, path.read_bytes())])
                )
        return _some(found)

    return seeds


def _some(items: Sequence[_T]) -> list[_T]:
    step = max(1, -(-len(items) // MOST_SEEDS))
    return list(items[::step])


# Members of a CUBE archive: the definitions, and data and index of each metric.


def cube_members(data: bytes) -> bool:
    """Pack members into an archive with correct headers, rows compressed or not, and read it."""
    import cube_writer

    parts = parts_of(data)
    members = [
        (name.decode("latin-1").replace("\0", "")[:90] or "x", content)
        for name, content in zip(parts[::2], parts[1::2], strict=False)
    ]
    with _folder() as folder:
        try:
            path = cube_writer.pack(folder / "a.cubex", members)
        except UnicodeError:
            return False
        return _is_read("scorep", path)


def _cubes(_data: Path) -> list[bytes]:
    found = []
    for seed, variant in enumerate(_VARIANTS):
        members = _members(seed, **variant)
        found.append(
            framed([part for name, content in members for part in (name.encode(), content)])
        )
    return found


_VARIANTS: Sequence[Mapping[str, object]] = (
    {}, {"codec": "zlib"}, {"index": "dense"}, {"endian": ">"}, {"gz": True},
    {"codec": "zlib", "index": "dense", "endian": ">"},
)  # fmt: skip


def _members(seed: int, **variant: object) -> list[tuple[str, bytes]]:
    import cube_writer

    tree, metrics, machine = _measured(seed)
    return cube_writer.members_of(tree, metrics, machine, **variant)


def _measured(seed: int) -> tuple[object, list[object], object]:
    import cube_writer
    import numpy as np

    rng = np.random.default_rng(seed)
    tree = cube_writer.random_tree(12, seed=seed)
    machine = cube_writer.Machine([2, 1])
    time = rng.random((len(tree), machine.locations))
    visits = rng.integers(1, 9, (len(tree), machine.locations))
    metrics = [
        cube_writer.MetricToWrite("time", tree.subtree_sums(time), kind="INCLUSIVE", unit="sec"),
        cube_writer.MetricToWrite("visits", visits, dtype="UINT64"),
    ]
    return tree, metrics, machine


def _cubes3(_data: Path) -> list[bytes]:
    import cube_writer

    return [cube_writer.cube3(*_measured(seed)) for seed in range(3)]


# Archives of Extra-P: the document and the arrays beside it.


def experiment_members(data: bytes) -> bool:
    """Pack members into a zip archive with correct checksums, and read it as an experiment."""
    import zipfile

    parts = parts_of(data)
    with _folder() as folder:
        path = folder / "a.extra-p"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in dict.fromkeys(parts[::2]):
                content = parts[1::2][parts[::2].index(name) : parts[::2].index(name) + 1]
                if content:
                    archive.writestr(zipfile.ZipInfo(name.decode("latin-1")), content[0])
        return _is_read("extra-p", path)


def _experiments(data: Path) -> list[bytes]:
    import zipfile

    found = []
    for path in data.rglob("*.extra-p"):
        if path.stat().st_size <= LARGEST_SEED and "attacks" not in path.parts:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
                found.append(framed([x for n in names for x in (n.encode(), archive.read(n))]))
    return found


# What users write.

_MACHINE_TEXTS = ("invalid literal", "Exceeds the limit", "could not convert", "math domain")


def _refusable(read: Callable[[str], object]) -> Callable[[bytes], bool]:
    """Return a target that reads text, and is read or refused."""

    def run(data: bytes) -> bool:
        text = data.decode("utf-8", "surrogateescape")
        try:
            read(text)
        except (CallpathModelerError, ValueError) as error:
            # A `ValueError` is in words for people, and its caller makes an error of it.
            is_in_words = isinstance(error, CallpathModelerError)
            if not is_in_words and str(error).startswith(_MACHINE_TEXTS):
                raise
            return False
        return True

    return run


def _growth(text: str) -> None:
    from callpath_modeler.modeling.notation import parse_growth

    str(parse_growth(text).growth)


def _arithmetic(text: str) -> None:
    from callpath_modeler.analysis.expectations.expression import parse_comparison

    parse_comparison(text)


def _pattern(text: str) -> None:
    from callpath_modeler.profile.calltree import ROOT
    from callpath_modeler.profile.pattern import match
    from callpath_modeler.readers.records import tree_of_nodes

    tree, _ = tree_of_nodes([ROOT, 0, 1, 0], ["main", "solve<int>(a, b)", "a/b", "MPI_Send"])
    match(tree, text)


def _names(text: str) -> None:
    from callpath_modeler.readers.discover import natural_order, parameters_in

    natural_order(text)
    parameters_in(text)


def _numbers(text: str) -> None:
    from callpath_modeler.cli.options import _space
    from callpath_modeler.cli.viewing import parse_share
    from callpath_modeler.loading import parse_number
    from callpath_modeler.targets import target_of
    from callpath_modeler.units import parse_quantity

    kind, _, rest = text.partition(":")
    if kind == "quantity":
        parse_quantity(rest)
    elif kind == "share":
        parse_share(rest, "--min-share")
    elif kind == "target":
        target_of(parse_number(rest, "target"), rest)
    elif kind == "logs":
        _space("classic", None, None, rest, None)
    elif kind == "exponential":
        _space("classic", None, rest, None, None)
    else:
        _space("classic", rest, None, None, None)


def _toml(read: Callable[[Path], object], name: str) -> Callable[[bytes], bool]:
    def run(data: bytes) -> bool:
        with _folder() as folder:
            path = folder / name
            path.write_bytes(data)
            try:
                read(path)
            except CallpathModelerError as error:
                assert error.hint or error.message
                return False
        return True

    return run


def _expectations(path: Path) -> None:
    from callpath_modeler.analysis.expectations.reading import read

    read(path)


def _manifest(path: Path) -> None:
    from callpath_modeler.readers.discover import discover
    from callpath_modeler.readers.registry import Registry

    discover([path], Registry.of_installed())


def _config(path: Path) -> None:
    from callpath_modeler.cli.configured import FORMAT
    from callpath_modeler.config import read

    read([path], FORMAT)


def _texts(*texts: str) -> Seeds:
    return lambda _data: [text.encode() for text in texts]


TARGETS: Mapping[str, Target] = {
    "scorep": Target(
        file_of("scorep", "a.cubex"), _of_files("scorep/**/*.cubex", "third_party/**/*.cubex")
    ),
    "scorep-members": Target(cube_members, _cubes, framed=True),
    "cube3": Target(file_of("scorep", "a.cube"), _cubes3),
    "caliper": Target(file_of("caliper", "a.cali"), _of_files("**/*.cali")),
    "caliper-json": Target(
        file_of("caliper", "a.json"), _of_files("third_party/**/*.json", "reports/**/*.json")
    ),
    "hpctoolkit4": Target(database_of("hpctoolkit"), _of_folders("meta.db"), framed=True),
    "hpctoolkit2": Target(database_of("hpctoolkit"), _of_folders("experiment.xml"), framed=True),
    "otf2": Target(database_of("otf2", "traces.otf2"), _of_folders("traces.otf2"), framed=True),
    "csv": Target(file_of("tables", "a.csv"), _of_files("**/*.csv")),
    "jsonl": Target(file_of("tables", "a.jsonl"), _of_files("**/*.jsonl", "**/*.json")),
    "folded": Target(file_of("folded", "a.folded"), _of_files("**/*.folded")),
    "hatchet": Target(
        file_of("hatchet", "a.json"),
        _texts(
            '[{"frame": {"name": "main", "type": "function"}, "metrics": {"time (inc)": 2.0, "time": 1.0}, "children": [{"frame": {"name": "f"}, "metrics": {"time (inc)": 1.0, "time": 1.0}}]}]'
        ),
    ),
    "extra-p": Target(file_of("extra-p", "a.txt"), _of_files("third_party/**/*.txt", "**/*.json")),
    "extra-p-members": Target(experiment_members, _experiments, framed=True),
    "growth": Target(
        _refusable(_growth),
        _texts(
            "O(p^2 + p log p)", "2^(k/2)", "p^½ log2(p)^2", "k^3 2^k", "sqrt(p)", "p^(2/3)", "-p⁻²"
        ),
    ),
    "arithmetic": Target(
        _refusable(_arithmetic),
        _texts(
            "time <= 2 * base + 3 ms",
            "max(time, {main/**}) / 'n' >= 5%",
            "(a - b) * 1e3 < .5",
            "visits == visits",
        ),
    ),
    "pattern": Target(
        _refusable(_pattern),
        _texts("main/**/MPI_*", "{a,b}/c?", "@12", "solve<int>(*)", "a->b", "a\\/b", "**/**/**"),
    ),
    "names": Target(
        _refusable(_names), _texts("app.p64.n1e6.r1", "mm.x1000y1z1.r1", "scorep_8x4_sum")
    ),
    "numbers": Target(
        _refusable(_numbers),
        _texts(
            "quantity:16 900 ms",
            "share:1%",
            "target:4096",
            "logs:0,1,2",
            "exponents:0,1/2,1.5",
            "exponential:1/2",
        ),
    ),
    "expectations": Target(
        _toml(_expectations, "e.toml"),
        _texts(
            'schema = 1\ntarget = {p = 4096}\n[numbers]\nmem = "24 GB"\n[[expect]]\ncallpath = "main/**"\ngrowth = "O(log p)"\nat_most = "3 s"\n[[expect]]\nholds = "time <= 2 * mem"\n'
        ),
    ),
    "manifest": Target(
        _toml(_manifest, "runs.toml"),
        _texts(
            'schema = 1\n[[run]]\npath = "a.cubex"\nparameters = {p = 4, n = 1e3}\nrepetition = 1\n'
        ),
    ),
    "config": Target(
        _toml(_config, "cpmodel.toml"),
        _texts(
            '[defaults]\ntarget = "4096"\nconfidence = 0.9\nexponents = "0,1/2"\n[rank]\ntop = 3\n'
        ),
    ),
}
