"""Runs of two machines, two builds or two inputs in one series get a finding."""

from __future__ import annotations

from callpath_modeler.profile.runs import Run
from callpath_modeler.profile.schema import Extent
from callpath_modeler.readers.run_cases import provenance_findings
from cells import cells


def series(*metadata, points=(2.0, 4.0)):
    """Return runs with these metadata, as many at each point."""
    return [
        Run(f"p{p:g}.r{k}", "fake", Extent(int(p)), {"p": p}, k, told)
        for p in points
        for k, told in enumerate(metadata, start=1)
    ]


def test_runs_that_tell_the_same_or_nothing_are_alike():
    told = {"machine": "machine A", "compiler": "gcc", "command line": "/bin/app -n 3"}
    assert provenance_findings(series(told, told, {})) == []
    assert provenance_findings(series({}, {})) == []


@cells("key", ["machine", "cluster", "compiler", "Compiler Version", "mpi"])
def test_machines_and_builds_are_named_with_how_many_runs_are_of_each(key):
    (found,) = provenance_findings(series({key: "old"}, {key: "new"}, {key: "new"}))
    assert (found.code, found.subject) == ("CPM131", key)
    assert found.message == "new in 4 runs (first p2.r2); old in 2 runs (first p2.r1)"


def test_machines_that_go_with_the_scale_differ_as_well():
    runs = series({"cluster": "A"}, points=(2.0,)) + series({"cluster": "B"}, points=(4.0,))
    assert [found.subject for found in provenance_findings(runs)] == ["cluster"]


def test_of_many_values_a_few_are_named():
    (found,) = provenance_findings(series(*({"machine": name} for name in "ABCDE")))
    assert found.message.endswith("; 2 more")


def test_arguments_may_change_with_the_scale_but_not_between_repetitions():
    runs = [
        run
        for p in (2, 4)
        for run in series({"command line": f"/a/app -px {p}"}, points=(float(p),))
    ]
    assert provenance_findings(runs) == []
    (found,) = provenance_findings(
        [*runs, *series({"command line": "/b/app -px 8"}, points=(4.0,))]
    )
    assert found.subject == "arguments at p = 4"
    assert "-px 4 in 1 run" in found.message
    assert "-px 8 in 1 run" in found.message


def test_programs_in_other_directories_were_called_alike():
    assert (
        provenance_findings(series({"cmdline": "[/a/app,-n,3]"}, {"cmdline": "[/b/app,-n,3]"}))
        == []
    )
    found = provenance_findings(series({"cmdline": "[/a/app,-n,3]"}, {"cmdline": "[/a/app]"}))
    assert [each.subject for each in found] == ["arguments at p = 2", "arguments at p = 4"]
    assert found[0].message == "-n 3 in 1 run (first p2.r1); none in 1 run (first p2.r2)"


def test_what_is_another_one_in_every_run_tells_no_two_kinds_apart():
    hosts = [{"machine": f"node {name}"} for name in ("a*b", "b*", "c*d")]
    assert provenance_findings(series(*hosts, points=(2.0,))) == []
    seeds = [{"command line": f"app --seed {k}"} for k in range(3)]
    assert provenance_findings(series(*seeds)) == []
    assert len(provenance_findings(series(*seeds[:2]))) == 2
