"""Specifications as JSON: round trips, and errors for invalid ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from callpath_modeler.errors import InputError
from cells import cells
from communication import recorded, untimed
from cpmodel_commspec.checking import differences
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.exchange import read_json, to_json


@pytest.fixture(scope="module")
def told(all_kinds):
    return specify(recorded(all_kinds))


def test_what_is_written_is_read(told, tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(to_json(told))
    assert read_json(path) == told


def changed(told, *keys, to):
    document = json.loads(to_json(told))
    place = document["specification"]
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = to
    return json.dumps(document)


@cells(
    ("keys", "to", "words"),
    [
        (["processes"], 3, "unknown rank"),
        (["operations"], 10**9, "operations are not"),
        (["body", 0, "shape"], 999, "unknown shape"),
        (["body", 0, "shape"], -1, "unknown shape"),
        (["body", 0, "ranks"], [2, 1], "ranks out of order"),
        (["body", 0, "ranks"], [], "unknown rank"),
        (["body", 0, "numbers"], {"bytes": {}}, "other numbers"),
        (["body", 0, "surplus"], 1, "surplus"),
        (["body", 1, "count"], 0, "without rounds"),
        (["body", 1, "body", 0, "partners"], {}, "other partners"),
        (["body", 1, "body", 0, "partners", "peer", "dimensions"], [3], "torus"),
        (["body", 1, "body", 0, "numbers", "tag"], {"axes": [5], "sizes": [6]}, "table"),
        (["body", 1, "body", 0, "numbers", "tag"], {"steps": [1, 1]}, "table"),
        (["shapes", 0, "comm"], 7, "unknown communicator"),
        (["communicators", 0, "groups"], [[0, 0]], "twice"),
        (["communicators", 0, "groups"], [[9]], "unknown ranks"),
        (["program"], 7, "program"),
    ],
)
def test_what_makes_no_sense_is_refused(told, keys, to, words, tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(changed(told, *keys, to=to))
    with pytest.raises(InputError, match=words) as refused:
        read_json(path)
    assert refused.value.hint


def compute(counts, means, least=0.0, most=1.0, ranks=(0, 1, 2, 3)):
    seconds = {"counts": counts, "means": means, "least": least, "most": most}
    return {"key": 2, "usual": [{"ranks": ranks, "seconds": seconds}]}


@cells(
    ("to", "words"),
    [
        (compute([4], [-1e-9]), "impossible time"),
        (compute([4], [1.0], most=1e300), "impossible time"),
        (compute([4], [2.0]), "times out of order"),
        (compute([2, 2], [0.5, 0.25]), "times out of order"),
        (compute([4, 0], [0.5, 0.6]), "empty bin"),
        (compute([4], [0.5, 0.6]), "other sizes"),
        (compute([5], [0.5]), "other rounds"),
        (compute([8], [0.5]), "other rounds"),
        (compute([3], [0.5], ranks=[0, 1, 2]), "other ranks"),
        (compute([5], [0.5], ranks=[0, 1, 2, 3, 3]), "other ranks"),
        (compute([4], [0.5], ranks=[3, 2, 1, 0]), "ranks out of order"),
        ({"key": 2}, "other ranks"),
        ({**compute([4], [0.5]), "key": 0}, "key"),
        ({**compute([4], [0.5]), "key": -2}, "key"),
        ({**compute([4], [0.5]), "key": 3}, "key"),
        ({**compute([4], [0.5]), "key": 2**70}, "specification"),
        ({**compute([4], [0.5]), "first": compute([4], [0.5])["usual"]}, "first rounds"),
        (compute([4], ["1"]), "float"),
    ],
)
@cells("place", [["ending"], ["body", 0, "computing"]])
def test_computation_that_cannot_be_is_refused(told, to, words, place, tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(changed(told, *place, to=compute([4], [0.5])))
    assert read_json(path).ending is not None
    path.write_text(changed(told, *place, to=to))
    with pytest.raises(InputError, match=words):
        read_json(path)


@cells("seconds", ["-1", "1e300", "1e999", "NaN", "Infinity", "null"])
def test_an_impossible_run_time_is_refused(told, seconds, tmp_path):
    path = tmp_path / "spec.json"
    text = to_json(msgspec.structs.replace(told, seconds=123.5))
    path.write_text(text.replace("123.5", seconds))
    with pytest.raises(InputError, match="no specification"):
        read_json(path)


def test_a_specification_without_times_is_read(all_kinds, tmp_path):
    told = specify(untimed(recorded(all_kinds)))
    path = tmp_path / "spec.json"
    document = json.loads(to_json(told))
    for name in ("ending", "seconds"):
        del document["specification"][name]
    path.write_text(json.dumps({**document, "schema": 2}))
    assert read_json(path) == told
    assert not told.computing_of_rank(1).any()


@cells("content", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"schema": 9}', b"[" * 9999])
def test_what_is_no_specification_is_refused(content, tmp_path):
    path = tmp_path / "spec.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no specification"):
        read_json(path)


def test_a_schema_of_tomorrow_is_refused(told, tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(to_json(told).replace('"schema":3', '"schema":4'))
    with pytest.raises(InputError, match="schema 4 is not 3"):
        read_json(path)


@cells("column", range(5))
def test_any_number_that_differs_is_found(told, all_kinds, column):
    found = recorded(all_kinds)
    values = found.ranks[2].values.copy()
    values[40, column] += 1
    ranks = [*found.ranks[:2], replace(found.ranks[2], values=values), found.ranks[3]]
    (line,) = differences(told, replace(found, ranks=tuple(ranks)))
    assert line.startswith("rank 2, operation 41 of ")


def test_another_order_is_found(told, all_kinds):
    found = recorded(all_kinds)
    first = found.ranks[0]
    turned = replace(first, shapes=first.shapes[::-1].copy(), values=first.values[::-1].copy())
    lines = list(differences(told, replace(found, ranks=(turned, *found.ranks[1:]))))
    assert len(lines) == 1
    assert "in the specification" in lines[0]


def test_another_number_of_ranks_is_found(told, all_kinds):
    found = recorded(all_kinds)
    assert list(differences(told, replace(found, ranks=found.ranks[:3]))) == [
        "4 ranks in the specification, 3 in the trace"
    ]


def test_other_groups_are_found(told, all_kinds):
    found = recorded(all_kinds)
    world, halves, alone = found.communicators
    other = halves.__class__("low", ((0, 1), (2, 3)))
    assert list(differences(told, replace(found, communicators=(world, other, alone))))


def test_names_and_places_do_not_count(told, all_kinds):
    found = recorded(all_kinds)
    renamed = tuple(one.__class__("x", one.groups) for one in found.communicators)
    assert not list(differences(told, replace(found, communicators=renamed)))


@cells(
    ("name", "reason"),
    [
        ("ranks-without-end", "10000000000000 ranks are too many"),
        ("operations-beyond-numbers", "there are too many rounds"),
        ("operations-that-wrap", "there are too many rounds"),
        ("empty-loop", "there are too many rounds"),
        ("loops-in-loops", "loops lie in each other too deeply"),
    ],
)
def test_what_would_fill_the_memory_is_refused_before(name, reason):
    path = Path(__file__).parents[2] / "fuzz" / "regressions" / "trace-check" / name
    with pytest.raises(InputError) as caught:
        read_json(path)
    assert caught.value.message == f"{path}: no specification: {reason}"
