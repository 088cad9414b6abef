from __future__ import annotations

import re
from pathlib import Path

from callpath_modeler.readers import registry


def test_every_reader_of_ours_is_held_to_the_contract():
    here = Path(__file__).parent
    text = "".join(path.read_text() for path in here.glob("test_*_contract.py"))
    held = set(re.findall(r"reader_class = (\w+)", text))
    ours = [e for e in registry.offered() if e.package == registry.OURS]
    assert {entry.value.rpartition(":")[2] for entry in ours} <= held
