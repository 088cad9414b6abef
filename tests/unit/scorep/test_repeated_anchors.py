"""Repetitions with the same anchor are parsed once; another anchor is parsed."""

from __future__ import annotations

import pytest

from cpmodel_scorep import anchor
from cpmodel_scorep.tree import Latest

TEXT = b"""<?xml version="1.0" encoding="UTF-8"?>
<cube version="4.4"><attr key="run" value="one"/><metrics><metric id="0" type="EXCLUSIVE">
<disp_name>Time</disp_name><uniq_name>time</uniq_name><dtype>DOUBLE</dtype><uom>sec</uom><val></val>
<url></url><descr></descr></metric></metrics>
<program><region id="0" mod="" begin="-1" end="-1"><name>main</name><paradigm>user</paradigm>
<role>function</role><url></url><descr></descr></region>
<cnode id="0" calleeId="0"></cnode></program>
<system><systemtreenode Id="0"><name>machine</name><class>machine</class><descr></descr>
<locationgroup Id="0"><name>rank 0</name><rank>0</rank><type>process</type>
<location Id="0"><name>thread</name><rank>0</rank><type>thread</type></location></locationgroup>
</systemtreenode></system></cube>
"""


def test_the_same_bytes_have_the_same_definitions():
    latest = Latest()
    first, _ = anchor.parse(TEXT, "one", latest)
    again, repaired = anchor.parse(bytes(TEXT), "two", latest)
    assert again is first
    assert not repaired
    assert first.attributes["run"] == "one"


def test_other_bytes_are_parsed():
    latest = Latest()
    anchor.parse(TEXT, "one", latest)
    other, _ = anchor.parse(TEXT.replace(b'"one"', b'"two"'), "two", latest)
    assert other.attributes["run"] == "two"
    first, _ = anchor.parse(TEXT, "one", latest)
    assert first.attributes["run"] == "one"


@pytest.mark.parametrize("padding", [0, 2 << 20])
def test_large_anchors_are_not_kept(padding):
    raw = TEXT + b" " * padding
    latest = Latest()
    anchor.parse(raw, "one", latest)
    assert (latest.definitions(raw) is None) == bool(padding)
