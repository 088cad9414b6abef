from __future__ import annotations

from pathlib import Path

import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import UsageError

TABLE = "p,callpath,time\n2,main,1\n4,main,2\n8,main,4\n"


def test_one_source_needs_no_list(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_text(TABLE)
    for source in (table, str(table), [table]):
        assert [run.parameters["p"] for run in cpm.load(source).runs] == [2, 4, 8]


@pytest.mark.parametrize("sources", ["", ["runs", ""]])
def test_an_empty_name_is_not_the_directory_one_is_in(sources: str | list[str]) -> None:
    with pytest.raises(UsageError, match="a name is empty"):
        cpm.load(sources)
