"""Hostile inputs cost no more than their size allows, and the fuzzer of costs finds such inputs."""

from __future__ import annotations

import gzip
import json
import mmap
import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from callpath_modeler.errors import InputError
from cells import cells
from fuzz import judge
from fuzz.cost import LARGEST, Cost, _Search, measure
from fuzz.forms import History, Single
from fuzz.growth import grown
from fuzz.targets import TARGETS, Target

TESTS = Path(__file__).resolve().parents[1]
ATTACKS = TESTS.parents[1] / "shared" / "data" / "attacks"
SLOW = 5
"""So many times the bound of processor time an input may take on a slow or busy machine."""


def records(number, row):
    return json.dumps([row(k) for k in range(number)]).encode()


def specification(processes, count, shape, numbers, partners):
    """Return a specification of one loop around one operation of all ranks."""
    ranks = list(range(processes))
    step = {"type": "step", "shape": 0, "ranks": ranks, "numbers": numbers, "partners": partners,
            "calling": 0.0}  # fmt: skip
    told = {
        "program": "", "processes": processes, "events": 0, "operations": processes * count,
        "programs": 1, "shapes": [{"comm": 0, "awaited": "chosen", "site": ["f"], **shape}],
        "communicators": [{"name": "W", "groups": [ranks]}],
        "body": [{"type": "loop", "count": count, "ranks": ranks, "body": [step]}],
        "left_out": {},
    }  # fmt: skip
    return json.dumps({"schema": 3, "specification": told}).encode()


def collective(processes, count):
    shape = {"kind": "collective", "name": "alltoall", "call": "MPI_Alltoall"}
    return specification(processes, count, shape, {"bytes": {"base": 10**6}}, {})


def long_list(field, item, number):
    """Return a history whose record has a list of many entries, which pack to few bytes."""
    members = History("h.db").members(TARGETS["history"].seeds()[0])
    first = msgspec.msgpack.decode(members["record/1"])
    del first[field]
    content = msgspec.msgpack.encode({**first, field: None})[:-1]
    content += b"\xdd" + number.to_bytes(4, "big") + item * number
    return History("h.db").packed({"record/1": members["record/1"], "record/2": content})


def of_predictions(field, number):
    """Return a history of a prediction with a list of many empty texts."""
    members = History("h.db").members(TARGETS["history"].seeds()[1])
    told = msgspec.msgpack.decode(members["prediction/1"])
    told[field] = [""] * number
    return History("h.db").packed({"prediction/1": msgspec.msgpack.encode(told)})


CSV = b"callpath,p,time\n"
HOSTILE = {
    "columns": ("tables-json", lambda: records(
        2500, lambda k: {"callpath": "a", "p": 2, f"k{k}": 1.5})),
    "lines": ("tables-json-lines", lambda: b"".join(
        b'{"callpath":"a","p":2,"k%d":1.5}\n' % k for k in range(2500))),
    "metrics": ("tables-json", lambda: records(
        270, lambda k: {"callpath": "a", "p": 2 + k, f"m{k} [s]": 1.5})),
    "cube": ("tables-json", lambda: records(
        158, lambda k: {"callpath": f"f{k}", "p": 2 + k, f"m{k} [s]": 1.5})),
    "runs": ("tables-json", lambda: records(
        1, lambda _: {"callpath": "a", "p": 2, "time": [1] * 7999})),
    "long name": ("tables-json", lambda: records(
        1, lambda _: {"callpath": "a" * 30_000, "p": 2, "time": [1] * 7900})),
    "titles": ("tables-csv", lambda: b"callpath,p,%s\n%s" % (
        b",".join(b"m%d [s]" % k for k in range(2900)),
        b"".join(b"f%d,2%s\n" % (k, b",1" * 2900) for k in range(8)))),
    "packed titles": ("tables-csv-packed", lambda: gzip.compress(b"callpath,p,%s\n%s" % (
        b",".join(b"m%d" % k for k in range(2900)), (b"f,2%s\n" % (b",1" * 2900)) * 200))),
    "packed lines": ("extrap-text", lambda: gzip.compress(
        b"PARAMETER p\nPOINTS 1 2 3 4 5\nREGION m\n%sREGION a\nREGION  b\nREGION a\n%s%s" % (
            b"DATA 9\n" * 5, b"DATA 1\n" * 5, b"REGION m\n" * 799_000))),
    "more packed lines": ("extrap-text", lambda: gzip.compress(
        b"PARAMETER p\nPOINTS 1 2 3 4 5\n%s" % (b"#\n" * 8_000_000))),
    "equal stacks": ("folded", lambda: gzip.compress(b"a 1\n" * 4_000_000)),
    "paths": ("tables-csv", lambda: CSV + b"".join(
        b"main/f%d,%d,1\n" % (k, k + 2) for k in range(1990))),
    "points": ("extrap-json", lambda: json.dumps({"parameters": ["p"], "measurements": {
        f"f{k}": {"time": [{"point": [k + 2], "values": [1.5]}]} for k in range(1500)}}).encode()),
    "loop": ("trace-replay", lambda: collective(2, 9_000_000)),
    "collectives": ("trace-replay", lambda: collective(1000, 110)),
    "told loop": ("trace-spec-json", lambda: collective(2, 9_000_000)),
    "factors": ("history", lambda: long_list("efficiency", b"\x90", 31 << 20)),
    "scales": ("history", lambda: long_list("scales", b"\x00", 31 << 20)),
    "names": ("history", lambda: long_list("callpaths", b"\xa0", 31 << 20)),
    "predicted": ("history", lambda: of_predictions("callpaths", 4 << 20)),
    "runs of a prediction": ("history", lambda: of_predictions("runs", 4 << 20)),
}  # fmt: skip
STORED = {
    "json-table-quadratic/k500.json": "tables-json",
    "json-table-quadratic/k1000.json": "tables-json",
    "json-table-quadratic/k1000.jsonl": "tables-json-lines",
    "json-table-quadratic/metrics800.json": "tables-json",
    "history-bomb/eff.db": "history",
    "small-spec-long-replay/mreplay.json": "trace-replay",
}


@pytest.fixture(scope="module")
def costs(tmp_path_factory):
    """Measure all inputs, each in a process of its own."""
    folder = tmp_path_factory.mktemp("costs")
    pairs = {}
    for number, (name, (target, make)) in enumerate(HOSTILE.items()):
        path = folder / str(number)
        path.write_bytes(make())
        pairs[name] = f"{target}={path}"
    if ATTACKS.is_dir():
        pairs |= {name: f"{target}={ATTACKS / name}" for name, target in STORED.items()}
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.cost", "--measure", *pairs.values()],
        cwd=TESTS, capture_output=True, text=True, check=True, timeout=judge.HUNG,
    )  # fmt: skip
    found = [Cost(**json.loads(line)) for line in done.stdout.splitlines()]
    return dict(zip(pairs, found, strict=True))


@pytest.mark.parametrize("name", [*HOSTILE, *STORED])
def test_a_hostile_input_costs_no_more_than_its_size_allows(costs, name):
    if name not in costs:
        pytest.skip("../shared is absent")
    cost = costs[name]
    assert cost.status == 0
    assert cost.memory <= judge.MEMORY
    assert cost.shares[0] <= SLOW


def test_an_input_that_takes_all_memory_is_stopped_and_counts_as_beyond_its_bounds(tmp_path):
    def read(_path):
        bytearray(1 << 40)

    cost = measure(Target("greedy", Single("a"), read, lambda: [b"a"]), b"a", tmp_path)
    assert cost.status != 0
    assert not cost.is_within


def test_the_search_keeps_the_inputs_whose_costs_grow(tmp_path):
    def read(path):
        lines = path.read_text("latin-1").splitlines()
        # Each pair of lines takes memory, as in a table of rows times columns. These are new pages,
        # because a process that ran other tests may have as much free memory already.
        # They are more than the text of a large input with one line takes.
        size = min(64 * len(lines) ** 2, 1 << 28)
        with mmap.mmap(-1, size) as held:
            held.write(bytes(size))
        raise InputError(f"{size} bytes", hint="fewer lines")

    seed = b"a,1\nb,2\n"
    target = Target("quadratic", Single("a.csv"), read, lambda: [seed])
    search = _Search(target, tmp_path / "home", seed=3)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    search._take(seed, scratch)
    before = search.most[1]
    for _ in range(60):
        search._take(search._next(), scratch)
    assert search.most[1].memory > before.memory + (1 << 20)
    costliest = max(search.kept[1])[2]
    assert costliest.count(b"\n") > seed.count(b"\n")


@cells("name", ["tables-json", "tables-csv", "history", "trace-replay", "store"])
def test_grown_inputs_are_no_larger_than_asked_and_the_same_each_time(name):
    target = TARGETS[name]
    seed = target.seeds()[0]
    made = [grown(target.form, seed, random.Random(k), LARGEST) for k in range(60)]
    assert all(len(content) <= max(LARGEST, len(seed)) for content in made)
    assert len({*made}) > 20
    assert max(map(len, made)) > len(seed)
    assert grown(target.form, seed, random.Random(7), LARGEST) == made[7]


def test_mutated_histories_and_specifications_stay_valid_where_that_can_be():
    target = TARGETS["trace-replay"]
    file = json.loads(target.seeds()[0])
    file["specification"]["body"] *= 3
    packed = target.form.packed({"": json.dumps(file).encode()})
    told = json.loads(packed)["specification"]
    assert told["operations"] == 3 * json.loads(target.seeds()[0])["specification"]["operations"]
    history = TARGETS["history"]
    members = history.form.members(history.seeds()[0])
    again = history.form.members(history.form.packed(members))
    assert again == members
