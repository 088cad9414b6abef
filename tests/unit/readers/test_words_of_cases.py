"""Words in names and metadata that tell programs, inputs and machines apart."""

from __future__ import annotations

from itertools import product

import pytest

import case_series as cs
from callpath_modeler.errors import UsageError
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.readers.run_cases import words_of
from callpath_modeler.studies.loading import LoadOptions, load
from callpath_modeler.studies.pipeline import fit
from callpath_modeler.studies.study import Study
from cells import cells

CASES = {"bitonic/random", "bitonic/reverse", "merge/random", "merge/reverse"}


@pytest.fixture
def series(tmp_path):
    """Write the runs of two algorithms and two inputs as folded stacks."""

    def written(name, **kind):
        return cs.write_folded(tmp_path / "runs", cs.few(), name, **kind)

    return written


@pytest.mark.parametrize(
    "name",
    [
        "{a}-{i}-p{p}-r{r}",
        "p{p}_{a}.{i}.r{r}",
        "{a}/{i}/p{p}.r{r}",
        "{a}/p{p}/{i}.r{r}",
        "{a}/{a}-{i}-p{p}-r{r}",
        "2026-11-29-{a}-{i}-p{p}-r{r}",
    ],
)
@pytest.mark.parametrize("own_names", [False, True])
def test_words_in_names_of_files_and_folders_are_cases(series, name, own_names):
    experiment = load(series(name, own_names=own_names))
    assert {*experiment.cases} == CASES
    with pytest.raises(UsageError, match="2 cases of 'kind': bitonic, merge; 2 cases of 'kind2'"):
        fit(experiment)


@pytest.mark.parametrize(
    "case", ["merge/reverse", "reverse/merge", ("merge", "reverse"), "M*/rev*"]
)
def test_a_case_is_chosen_by_its_name_or_by_its_words(series, case):
    experiment = load(series("{a}-{i}-p{p}-r{r}"), LoadOptions(case=case))
    assert experiment.cases == ()
    assert len(experiment.runs) == 12
    assert {run.metadata["kind"] + run.metadata["kind2"] for run in experiment.runs} == {
        "mergereverse"
    }
    times = [
        run.times()["main", "sort"] for run in cs.runs(("merge",), ("reverse",), sizes=cs.SIZES[:1])
    ]
    rows = {experiment.tree.path(row): row for row in range(len(experiment.tree))}
    assert experiment.values()[rows["main/sort"]] == pytest.approx(
        [1000 * t for t in times], abs=0.5
    )


def test_an_unknown_case_is_refused_with_the_known_ones(series):
    folder = series("{a}-{i}-p{p}-r{r}")
    with pytest.raises(UsageError, match="no case 'heap'") as caught:
        load(folder, LoadOptions(case="heap"))
    assert "merge/random" in caught.value.hint
    with pytest.raises(UsageError, match="no case 'heap'") as caught:
        load(folder, LoadOptions(where="kind=merge,kind2=random", case="heap"))
    assert "omit --case" in caught.value.hint


def test_call_paths_of_other_cases_are_absent_and_not_zero(series):
    experiment = load(series("{a}-{i}-p{p}-r{r}", own_names=True))
    of_merge = [run.metadata["kind"] == "merge" for run in experiment.runs]
    rows = {experiment.tree.path(row): row for row in range(len(experiment.tree))}
    values = experiment.values()[rows["main/bitonic_sort"]]
    assert [value != value for value in values.tolist()] == of_merge  # noqa: PLR0124 - NaN
    one = load(series("{a}-{i}-p{p}-r{r}", own_names=True), LoadOptions(case="merge/random"))
    assert "main/bitonic_sort" not in {one.tree.path(row) for row in range(len(one.tree))}


def test_the_user_may_say_that_words_tell_no_cases_apart(series):
    folder = series("{a}-{i}-p{p}-r{r}")
    excluded = ReadOptions(parameter_sources={"kind": "none", "kind2": "none"})
    experiment = load(folder, LoadOptions(excluded))
    assert experiment.cases == ()
    assert max(run.repetition for run in experiment.runs) == 8


@cells(
    "names",
    [
        [f"app-p{p}-{letter}" for p in (2, 4, 8) for letter in "abc"],
        [f"app-p{p}" for p in (2, 4, 8)],
        [f"{word}-p{p}" for p, word in zip((2, 4, 8), ("one", "two", "three"), strict=True)],
        [f"p{p}-{word}" for p, word in zip((2, 4, 8, 16), ("small", "small", "large", "large"),
                                           strict=True)],
        [f"p{p}-{p}abcdef{r}9a{r}b{p}" for p in (2, 4, 8) for r in (1, 2)],
    ],
)  # fmt: skip
def test_other_words_are_no_cases(tmp_path, names):
    for name in names:
        (tmp_path / f"{name}.folded").write_text("main 7\nmain;f 3\n")
    assert load(tmp_path).cases == ()


@pytest.mark.parametrize("broken", [[], ["heap/p4", "heap/p8"]])
@pytest.mark.parametrize("others", [["heap"], ["heap", "merge", "bubble", "shell"]])
def test_a_case_with_one_run_is_no_repetition_of_another(tmp_path, others, broken):
    runs = [f"quick/p{p}" for p in (4, 8, 16)] + [f"{word}/p16" for word in others]
    for name in (*runs, *broken):
        path = tmp_path / f"{name}.folded"
        path.parent.mkdir(exist_ok=True)
        path.write_text("broken\n" if name in broken else "main;f 3\n")
    experiment = load(tmp_path)
    assert {*experiment.cases} == {"quick", *others}
    assert {run.repetition for run in experiment.runs} == {1}
    one = load(tmp_path, LoadOptions(case="quick"))
    assert one.points("p").tolist() == [4, 8, 16]


def test_words_of_names_with_different_numbers_of_words_are_one_text():
    names = [[f"{word}-p{p}"] for p in (2, 4) for word in ("quick", "odd_even")]
    assert words_of(names) == [["quick", "odd_even"] * 2]
    names = [[f"p{p}", *([word] if word == "quick" else [word, "new"])]
             for p in (2, 4) for word in ("quick", "odd_even")]  # fmt: skip
    assert words_of(names) == [["quick", "new/odd/even"] * 2]


def test_entries_of_the_metadata_that_name_cases_are_cases(tmp_path):
    folder = cs.write_cali(tmp_path / "runs", cs.few(), "230711-163800_2063087_{x}")
    experiment = load(folder)
    assert {*experiment.cases} == {"/".join(reversed(case.split("/"))) for case in CASES}
    one = load(folder, LoadOptions(case="merge/random"))
    assert [parameter.name for parameter in one.parameters] == ["p"]
    assert one.constants == {"InputSize": 65536.0}


def test_runs_of_one_case_are_numbered_apart_from_those_of_others(tmp_path):
    folder = cs.write_tables(tmp_path / "runs", cs.few(), "{a}-{i}")
    experiment = load(folder)
    assert {*experiment.cases} == CASES
    assert max(run.repetition for run in experiment.runs) == 2


def write_stacks(file, milliseconds):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"main {milliseconds}\nmain;solve {2 * milliseconds}\n")


def test_a_number_that_tells_the_words_of_names_is_part_of_a_case(tmp_path):
    """Three programs of three teams were one program, whose parameter `team` was 6, 16 and 22."""
    folder = tmp_path / "runs"
    for number, program in enumerate(("team6_merge", "team16_bitonic", "team22_sample")):
        for p, n in product((2, 4, 8, 16), (100, 1000)):
            write_stacks(folder / program / f"p{p}.n{n}.folded", (1 + number) * n)
    experiment = load(folder)
    assert {*experiment.cases} == {"team6_merge", "team16_bitonic", "team22_sample"}
    assert [parameter.name for parameter in experiment.parameters] == ["p", "n"]
    stated = load(folder, LoadOptions(ReadOptions(parameter_sources={"team": "name"})))
    assert "team" in [parameter.name for parameter in stated.parameters]


def test_a_number_beside_words_that_vary_on_their_own_is_a_parameter(tmp_path):
    folder = tmp_path / "runs"
    for word, level, p in product(("quick", "merge"), (3, 5, 9), (2, 4, 8, 16)):
        write_stacks(folder / f"{word}_level{level}" / f"p{p}.folded", 100 * level)
    experiment = load(folder)
    assert {*experiment.cases} == {"quick", "merge"}
    assert [parameter.name for parameter in experiment.parameters] == ["p", "level"]


def test_a_study_has_one_study_for_each_case(series):
    folder = series("{a}-{i}-p{p}-r{r}")
    whole = load(folder)
    for study in (Study(folder), Study(whole)):
        assert "bitonic" in study._repr_html_()
        assert "Study" in repr(study)
        with pytest.raises(UsageError, match="2 cases of 'kind'"):
            study.experiment()
        cases = study.cases()
        assert {*cases} == CASES
        for name, one in cases.items():
            alone = Study(folder, LoadOptions(case=name)).ranking(target=256)
            assert one.ranking(target=256).total == alone.total
