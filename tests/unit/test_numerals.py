"""Numbers in files and options are those that people and tools write."""

from __future__ import annotations

import pytest

from callpath_modeler.cli.view_options import parse_share
from callpath_modeler.errors import CallpathModelerError
from callpath_modeler.modeling.terms import as_exponent
from callpath_modeler.studies.loading import load, parse_number
from callpath_modeler.units import (
    LONGEST,
    are_plain,
    decimal_of,
    fraction_of,
    parse_quantity,
    whole_of,
)
from cells import cells

NO_NUMBERS = ["1_000", "1" * 5000, "٣٢", "3²", "1٫5"]
READERS = {
    "number": decimal_of,
    "whole number": whole_of,
    "fraction": fraction_of,
    "target": lambda text: parse_number(text, "--target"),
    "share": lambda text: parse_share(text, "--share"),
    "exponent": as_exponent,
}
TABLES = {
    "a.csv": "callpath,p,time\nmain,{0},1\nmain,4,2\n",
    "b.csv": "callpath,p,time\nmain,2,{0}\nmain,4,2\n",
    "a.jsonl": '{{"params":{{"p":2}},"metric":"time","callpath":"main","value":"{0}"}}\n',
    "a.txt": "PARAMETER p\nPOINTS 2 4\nREGION a\nMETRIC time\nDATA {0}\nDATA 2\n",
    "a.folded": "main;f {0}\n",
    "a.cali": "__rec=node,id=8,attr=10,data=x\n__rec=ctx,ref=8,attr=9,data={0}\n",
}


@cells("text", NO_NUMBERS)
@cells("name", READERS)
def test_a_text_that_only_python_takes_for_a_number_is_refused(name, text):
    with pytest.raises((ValueError, CallpathModelerError)):
        READERS[name](text)
    assert not are_plain(["1", text])


@pytest.mark.parametrize("text", NO_NUMBERS[:3])
def test_a_quantity_with_such_a_number_is_refused(text):
    with pytest.raises(ValueError, match="is not a"):
        parse_quantity(f"{text} ms")


@cells("text", ["4096", "1e6", "-2.5", ".5", "inf", "0" * LONGEST])
def test_a_number_is_read(text):
    assert decimal_of(text) == float(text)
    assert are_plain(["1", text])


@cells("text", NO_NUMBERS[:3])
@cells("name", TABLES)
def test_a_table_with_such_a_number_is_refused_or_does_not_use_it(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(TABLES[name].format(text), encoding="utf-8")
    with pytest.raises(CallpathModelerError):
        load([path])
