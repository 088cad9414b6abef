"""Databases of version 2 with runs of several scales, as metrics ``256/WALLCLOCK (us)``."""

from __future__ import annotations

import pytest

from callpath_modeler.profile.schema import Reduction
from callpath_modeler.studies import loading

XML = """<?xml version="1.0"?>
<HPCToolkitExperiment version="2.0">
<Header n="flash"><Info/></Header>
<SecCallPathProfile i="0" n="flash">
<SecHeader>
  <MetricTable>{metrics}</MetricTable>
  <LoadModuleTable><LoadModule i="2" n="/bin/flash"/></LoadModuleTable>
  <FileTable><File i="10" n="flash.F90"/></FileTable>
  <ProcedureTable><Procedure i="20" n="flash"/><Procedure i="21" n="evolve"/></ProcedureTable>
</SecHeader>
<SecCallPathProfileData>
<PF i="1" s="1" l="1" lm="2" f="10" n="20"><S i="2" s="2" l="3">{flash}</S>
 <C i="3" s="3" l="5"><PF i="4" s="4" l="50" lm="2" f="10" n="21">
  <S i="5" s="5" l="51">{evolve}</S></PF></C>
</PF>
</SecCallPathProfileData>
</SecCallPathProfile>
</HPCToolkitExperiment>
"""


@pytest.fixture
def database(tmp_path):
    """Return the function that writes a database with metrics of some names."""

    def write(names):
        metrics = "".join(f'<Metric i="{k}" n="{name}"/>' for k, name in enumerate(names))
        values = [
            "".join(f'<M n="{k}" v="{(k + 1) * own * 1e6}"/>' for k in range(len(names)))
            for own in (1, 8)
        ]
        folder = tmp_path / "flash"
        folder.mkdir()
        text = XML.format(metrics=metrics, flash=values[0], evolve=values[1])
        (folder / "experiment.xml").write_text(text)
        return loading.load([folder])

    return write


def test_each_scale_is_a_run_with_the_values_of_a_process(database):
    experiment = database(["256/WALLCLOCK (us)", "1024/WALLCLOCK (us)", "8192/WALLCLOCK (us)"])
    assert [run.parameters for run in experiment.runs] == [{"p": 256}, {"p": 1024}, {"p": 8192}]
    assert experiment.values("WALLCLOCK").tolist() == [[1, 2, 3], [8, 16, 24]]
    assert experiment.reduction is Reduction.MEAN


def test_metrics_that_are_called_sums_are_sums(database):
    experiment = database(["256/WALLCLOCK (us):Sum", "8192/WALLCLOCK (us):Sum"])
    assert [run.parameters["p"] for run in experiment.runs] == [256, 8192]
    assert experiment.reduction is Reduction.SUM


@pytest.mark.parametrize(
    "names",
    [["256/WALLCLOCK (us)"], ["256/WALLCLOCK (us)", "CYCLES"], ["a/WALLCLOCK (us)", "b/CYCLES"]],
)
def test_other_metrics_are_those_of_one_run(database, names):
    experiment = database(names)
    assert len(experiment.runs) == 1
