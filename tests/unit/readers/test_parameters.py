from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.schema import Extent
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.parameters import settle_parameters as settle


@dataclass
class Read:
    file: RunFile
    extent: Extent
    stated: dict[str, float] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, float] = field(default_factory=dict)

    @property
    def name(self):
        return str(self.file.path)


def settle_parameters(runs, sources):
    settled = settle(runs, sources)
    return settled.parameters, settled.origins, settled.findings


def run(
    processes,
    *,
    threads=1,
    nodes=1,
    from_manifest=False,
    stated=None,
    metadata=None,
    **named,
):
    name = ".".join(f"{k}{v}" for k, v in named.items())
    told = named if from_manifest else {}
    file = RunFile(Path(f"app.{name}"), told, from_manifest=from_manifest, names=(f"app.{name}",))
    return Read(file, Extent(processes, threads, nodes), stated or {}, metadata or {})


def test_p_is_the_number_of_processes_in_the_profile():
    settled, origins, findings = settle_parameters([run(8), run(16)], {})
    assert settled == [{"p": 8}, {"p": 16}]
    assert origins == {"p": "processes"}
    assert findings == []


def test_a_disagreement_with_the_name_is_a_finding_and_the_profile_counts():
    settled, _, findings = settle_parameters([run(8, p=8), run(16, p=64)], {})
    assert settled[1] == {"p": 16}
    assert [f.code for f in findings] == ["CPM102"]
    assert "app.p64" in findings[0].subject
    assert "the profile is used" in findings[0].message


def test_a_manifest_wins_over_the_profile_and_the_disagreement_is_said():
    settled, _, findings = settle_parameters([run(16, p=64, from_manifest=True)], {})
    assert settled == [{"p": 64}]
    assert "the manifest is used" in findings[0].message


def test_the_user_may_have_p_from_the_name():
    settled, origins, findings = settle_parameters([run(1, p=64), run(1, p=128)], {"p": "name"})
    assert settled == [{"p": 64}, {"p": 128}]
    assert origins == {"p": "name"}
    assert findings == []


@pytest.mark.parametrize(("source", "value"), [("processes", 8), ("threads", 4), ("nodes", 2)])
def test_the_user_may_have_any_parameter_from_the_profile(source, value):
    settled, _, _ = settle_parameters([run(8, threads=4, nodes=2)], {"k": source})
    assert settled[0]["k"] == value


def test_threads_count_where_they_vary():
    settled, origins, _ = settle_parameters([run(8, threads=1), run(8, threads=4)], {})
    assert origins == {"p": "processes", "threads": "threads"}
    assert settled[1] == {"p": 8, "threads": 4}
    assert "threads" not in settle_parameters([run(8, threads=4)] * 2, {})[1]


def test_unknown_thread_counts_are_no_parameter():
    assert "threads" not in settle_parameters([run(8, threads=0), run(8, threads=4)], {})[1]


def test_parameters_besides_the_processes_come_from_the_name():
    settled, origins, _ = settle_parameters([run(8, n=30), run(16, n=60)], {})
    assert settled == [{"p": 8, "n": 30}, {"p": 16, "n": 60}]
    assert origins["n"] == "name"


def test_a_number_in_some_names_that_never_varies_is_no_parameter():
    settled, _, _ = settle_parameters([run(8, v=2), run(16)], {})
    assert settled == [{"p": 8}, {"p": 16}]


def test_a_parameter_that_a_name_lacks_is_a_usage_error():
    with pytest.raises(UsageError, match="no parameter 'n'") as caught:
        settle_parameters([run(8, n=30), run(16, n=60), run(32)], {})
    assert "runs.toml" in caught.value.hint


def test_an_unknown_source_is_a_usage_error():
    with pytest.raises(UsageError, match="'ranks'"):
        settle_parameters([run(8)], {"p": "ranks"})


def test_what_a_profile_states_counts_before_its_name():
    runs = [run(0, stated={"n": 5}, n=5), run(0, stated={"n": 6}, n=7)]
    settled, origins, findings = settle_parameters(runs, {})
    assert settled == [{"n": 5}, {"n": 6}]
    assert origins == {"n": "profile"}
    assert [f.code for f in findings] == ["CPM102"]


def test_a_manifest_counts_before_what_a_profile_states():
    runs = [run(0, stated={"n": 6}, n=7, from_manifest=True)]
    assert settle_parameters(runs, {})[0] == [{"n": 7}]


def test_without_a_number_of_processes_p_comes_from_the_name_or_not_at_all():
    settled, origins, _ = settle_parameters([run(0, p=8), run(0, p=16)], {})
    assert (settled, origins) == ([{"p": 8}, {"p": 16}], {"p": "name"})
    assert settle_parameters([run(0, s=8), run(0, s=16)], {})[1] == {"s": "name"}


def test_a_number_of_processes_that_one_run_lacks_is_a_usage_error():
    with pytest.raises(UsageError, match="no parameter 'p' in the profile or the name"):
        settle_parameters([run(8), run(0)], {})


def numbered(processes, ending, **named):
    name = "_".join(["app", f"{ending:.0f}", *(f"{k}{v:g}" for k, v in named.items())])
    return Read(RunFile(Path(name), names=(name,)), Extent(processes))


def test_names_count_where_profiles_hold_a_sample_of_the_processes():
    settled, origins, findings = settle_parameters([run(8, p=8), run(8, p=64), run(8, p=512)], {})
    assert [point["p"] for point in settled] == [8, 64, 512]
    assert origins == {"p": "name"}
    assert [(f.code, f.count) for f in findings] == [("CPM102", 3)]
    assert "each profile holds 8 processes: the names are used" in findings[0].message


def test_the_number_that_ends_a_name_is_p_where_nothing_else_varies():
    settled, origins, findings = settle_parameters([numbered(8, 8.0), numbered(8, 128.0)], {})
    assert settled == [{"p": 8}, {"p": 128}]
    assert origins == {"p": "name"}
    assert [f.code for f in findings] == ["CPM102"]


@pytest.mark.parametrize(
    "endings",
    [(1.0, 2.0, 3.0), (8.0, 9.0, 10.0, *range(11, 17)), (4711230.0, 4711234.0), (8.0, 8.0)],
    ids=["repetitions", "more", "jobs", "one"],
)
def test_numbers_at_the_end_of_names_are_no_processes_where_the_profile_states_them(endings):
    settled, origins, findings = settle_parameters([numbered(8, end) for end in endings], {})
    assert {point["p"] for point in settled} == {8}
    assert origins == {"p": "processes"}
    assert [found.code for found in findings] == ["CPM141"] * (len({*endings}) > 1)


def test_a_number_that_ends_a_name_with_parameters_is_no_p():
    settled, _, _ = settle_parameters([numbered(8, 8.0, n=1.0), numbered(8, 64.0, n=2.0)], {})
    assert [point["p"] for point in settled] == [8, 8]


def test_a_profile_that_varies_counts_before_the_number_that_ends_a_name():
    settled, origins, _ = settle_parameters([numbered(8, 16.0), numbered(16, 64.0)], {})
    assert settled == [{"p": 8}, {"p": 16}]
    assert origins == {"p": "processes"}


def test_where_threads_vary_the_processes_in_names_do_not_count():
    runs = [run(1, threads=1, p=1), run(1, threads=8, p=8)]
    settled, origins, _ = settle_parameters(runs, {})
    assert settled[1] == {"p": 1, "threads": 8}
    assert origins["p"] == "processes"


def test_threads_that_vary_with_the_scale_are_a_finding_and_no_parameter():
    runs = [run(8, threads=5, size=10), run(27, threads=2, size=10), run(64, threads=2, size=20)]
    settled, origins, findings = settle_parameters(runs, {})
    assert list(origins) == ["p", "size"]
    assert settled[0] == {"p": 8, "size": 10}
    assert [f.code for f in findings] == ["CPM131"]
    assert "2 at p = 27 64; 5 at p = 8" in findings[0].message


def test_threads_that_vary_on_their_own_are_a_parameter():
    runs = [run(p, threads=t) for p in (2, 4) for t in (1, 2)]
    settled, origins, findings = settle_parameters(runs, {})
    assert origins["threads"] == "threads"
    assert settled[1] == {"p": 2, "threads": 2}
    assert findings == []


def test_the_user_may_make_threads_a_parameter_though_they_vary_with_the_scale():
    runs = [run(8, threads=5), run(27, threads=2)]
    settled, _, findings = settle_parameters(runs, {"threads": "threads"})
    assert settled[0] == {"threads": 5, "p": 8}
    assert findings == []


def test_what_names_and_profiles_state_alike_is_one_parameter_under_its_name():
    runs = [run(p, size=s, stated={"problem_size": s}) for p in (8, 27) for s in (10, 20)]
    settled, origins, _ = settle_parameters(runs, {})
    assert origins == {"p": "processes", "size": "name"}
    assert settled[1] == {"p": 8, "size": 20}
    other = [run(8, size=10, stated={"problem_size": 30})]
    assert settle_parameters(other, {})[0] == [{"problem_size": 30, "p": 8, "size": 10}]


def test_the_user_may_have_a_parameter_from_the_metadata():
    runs = [run(8, metadata={"cells": n, "compiler": "gcc"}) for n in ("1000", "2e3")]
    settled, origins, _ = settle_parameters(runs, {"n": "metadata:cells"})
    assert [parameters["n"] for parameters in settled] == [1000, 2000]
    assert origins["n"] == "metadata:cells"
    with pytest.raises(UsageError, match="no 'sells' in its metadata") as caught:
        settle_parameters(runs, {"n": "metadata:sells"})
    assert caught.value.hint == "numbers in the metadata: cells"
    with pytest.raises(UsageError, match="compiler = 'gcc' is not a number"):
        settle_parameters(runs, {"n": "metadata:compiler"})


@pytest.mark.parametrize("source", ["name", "metadata:cores"])
def test_an_untrusted_file_states_p_only_where_no_profile_does(source):
    metadata = [{"cores": "4"}, {"cores": "8"}]
    bare = [run(0, p=4 * k, metadata=each) for k, each in enumerate(metadata, 1)]
    found = settle(bare, {"p": source}, "x/cpmodel.toml")
    assert [each["p"] for each in found.parameters] == [4, 8]
    assert found.origins["p"] == source
    assert found.findings == []
    counted = [run(16 * k, p=4 * k, metadata=each) for k, each in enumerate(metadata, 1)]
    found = settle(counted, {"p": source}, "x/cpmodel.toml")
    assert [each["p"] for each in found.parameters] == [16, 32]
    assert found.findings[0].code == "CPM183"
    assert settle(counted, {"p": source}).origins["p"] == source
