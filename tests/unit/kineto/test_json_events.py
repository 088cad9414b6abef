"""Traces as text: blocks of events, damaged text, and hostile files."""

from __future__ import annotations

import gzip
import json
import random

import pytest

from callpath_modeler.errors import InputError
from cpmodel_kineto.json_events import EventFile

EVENT = '{"ph": "X", "name": "%s", "ts": 1.5, "dur": 2}'


def read(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    file = EventFile(path)
    return [event for block in file.blocks() for event in block.events], file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.json"


def test_all_events_of_many_blocks_are_read_in_order(path):
    random.seed(1)
    names = [f"f{k} }}, {{ " + "x" * random.randrange(3000) for k in range(2000)]
    events = [
        {"ph": "X", "name": n, "ts": k, "dur": 1, "args": {"nested": [{"a": [{}]}, {}], "s": '"}'}}
        for k, n in enumerate(names)
    ]
    for indent, packed in ((None, False), (2, True)):
        text = json.dumps({"a": {"b": [1]}, "traceEvents": events, "z": 1}, indent=indent).encode()
        found, _ = read(path, gzip.compress(text) if packed else text)
        assert [each.name for each in found] == names
        assert [each.ts for each in found] == list(range(2000))


def test_entries_before_and_after_the_events_are_kept(path):
    events, info = EVENT % "a", '{"rank": 3}'
    text = f'{{"schemaVersion": 1, "traceEvents": [{events}], "distributedInfo": {info}}}'
    found, file = read(path, text)
    assert len(found) == 1
    assert file.entries == {"schemaVersion": b"1", "distributedInfo": b'{"rank": 3}'}


@pytest.mark.parametrize(
    ("text", "names", "mended", "damaged"),
    [
        (f"[{EVENT % 'a'}, {EVENT % 'b'},]", ["a", "b"], 0, 0),
        (f"[{EVENT % 'a'},\n", ["a"], 0, 0),
        (f"[{EVENT % 'a'}\n", ["a"], 0, 0),
        ("\ufeff[" + EVENT % "a" + "]", ["a"], 0, 0),
        ('[{"ph": "X", "name": "\\ud83d x"}]', ["\ufffd x"], 1, 0),
        ('[{"ph": "X", "name": "C:\\Users"}]', ["C:\\Users"], 1, 0),
        ('[{"ph": "X", "name": "a\nb"}]', ["a\nb"], 1, 0),
        ('[{"ph": "X", "name": "a", "args": {"x": NaN, "y": -inf}}]', ["a"], 1, 0),
        ('[{"ph": "X", "name": "a", "ts": "12.5"}]', ["a"], 1, 0),
        ('[{"ph": "X", "name": "a", "ts": 1e999}, ' + EVENT % "b" + "]", ["b"], 0, 1),
        ('[{"ph": "X", "name": "a", "args": 3}, ' + EVENT % "b" + "]", ["b"], 0, 1),
        ('[{"a": ' + "[" * 100_000 + "]" * 100_000 + "}, " + EVENT % "b" + "]", ["b"], 0, 1),
        ('{"traceEvents": "none"}', [], 0, 0),
        ('{"traceEvents": []}', [], 0, 0),
    ],
)
def test_damaged_text_is_mended_or_counted(path, text, names, mended, damaged):
    found, file = read(path, text)
    assert [each.name for each in found] == names
    assert (file.mended, file.damaged) == (mended, damaged)


def test_invalid_utf_8_in_a_name_is_replaced(path):
    found, file = read(path, b'[{"ph": "X", "name": "a\xff"}]')
    assert [each.name for each in found] == ["a\ufffd"]
    assert file.mended == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends too early"),
        ("{", "ends too early"),
        ('{"traceEvents": [' + EVENT % "a", "ends too early"),
        (f'{{"traceEvents": [{EVENT % "a"}]', "ends too early"),
        (f"[{EVENT % 'a'}, " + EVENT[:20], "ends too early"),
        ("[1]", "no event"),
        ("hello", "no trace in JSON"),
        ('{1: "a"}', "an entry has no name"),
        ('{"a": ' + "[" * 100_000, "ends too early"),
        ('[{"name": "' + "x" * (17 << 20), "an event of more than 16 MiB"),
        ('{"a": "' + '\\"' * (9 << 20), "an entry of more than 16 MiB"),
    ],
)
def test_a_file_that_is_no_whole_trace_is_refused(path, text, message):
    with pytest.raises(InputError, match=message):
        read(path, text)


def test_a_damaged_gzip_file_is_refused(path):
    content = gzip.compress(f"[{EVENT % 'a'}]".encode())
    with pytest.raises(InputError, match="cannot be read"):
        read(path, content[:-10])


def test_a_file_that_unpacks_to_too_much_is_refused(path):
    content = gzip.compress(b'{"a": "' + b"x" * (40 << 20))
    with pytest.raises(InputError, match="MiB"):
        read(path, content)
