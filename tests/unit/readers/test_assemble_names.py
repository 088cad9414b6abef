"""Names of experiments whose profiles do not state their program."""

from __future__ import annotations

from pathlib import Path

import pytest

import callpath_modeler as cpm


@pytest.mark.parametrize(
    ("folder", "file", "name"),
    [
        ("p{p}.r1", "heat.csv", "heat"),
        (".", "p{p}.csv", "heat_runs"),
        (".", "app.p{p}.csv", "app"),
        (".", "p{p}.n7.csv", "heat_runs"),
    ],
)
def test_a_name_that_is_a_parameter_is_replaced_by_that_of_its_folder(
    tmp_path, folder, file, name
):  # fmt: skip
    for p in (2, 4, 8):
        path = tmp_path / "heat_runs" / folder.format(p=p) / file.format(p=p)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"callpath,time[s]\nmain,{p}\n")
    assert cpm.load([Path(tmp_path / "heat_runs")]).name == name
