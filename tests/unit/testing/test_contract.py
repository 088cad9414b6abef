"""The contract detects faulty readers; the example plugin shows that a correct reader passes."""

from __future__ import annotations

import inspect
import os
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
import pytest
from cpmodel_timings import TimingsReader as Sound

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.profile.groups import LineCosts
from callpath_modeler.profile.schema import (
    DeclaredMetric,
    Extent,
    Metric,
    MetricStatus,
    Placement,
    Reduction,
    Region,
    Topology,
)
from callpath_modeler.readers.base import Match, Reduced, RunSource, ThreadSums, opened_runs
from callpath_modeler.testing import ReaderContract
from cells import cells

TEXT = "timings of app\nmain = 1 2\n  solve = 3 5\n" + "  f = 0.125 0.25\n" * 60
KNOWN = {("time", "main/solve"): 4.0}
HELD = []
TIME = Metric("time", "s")


class Changed:
    """A profile with some attributes replaced."""

    def __init__(self, sound, **changes):
        self.sound = sound
        vars(self).update(changes)

    def __getattr__(self, name):
        return getattr(self.sound, name)


def reader(**changes):
    """Return a reader class that differs from a correct one in these attributes."""
    return type("Broken", (Sound,), changes)


def profile(change):
    """Return a reader class whose profiles have the attributes from `change`."""

    class Broken(Sound):
        @contextmanager
        def open(self, path):
            with Sound.open(self, path) as sound:
                yield Changed(sound, **change(sound))

    return Broken


def reducing(change):
    """Return a reader class whose reduced values are modified by `change`."""

    def changes(sound):
        def reduce(metric, over_locations):
            return change(sound.reduce(metric, over_locations), over_locations)

        return {"reduce": reduce}

    return profile(changes)


def balanced(reduced, _):
    return replace(reduced, imbalance=np.ones(len(reduced.exclusive), np.float32))


def summing(change):
    """Return a reader class whose profiles sum values of threads as `change` does."""
    return profile(lambda sound: {"sums_of_threads": lambda *asked: change(sound, *asked)})


def wrapped_around(sound, _metric, group, groups):
    sums = np.zeros((groups, sound.seconds.shape[1]))
    np.add.at(sums, group, sound.seconds)
    return ThreadSums(sums, np.arange(sums.shape[1]))


def one_process_too_many(sound, *asked):
    right = sound.sums_of_threads(*asked)
    return ThreadSums(right.values, right.process + 1)


def cheaper_apart(sound):
    """Return the change of a profile whose separate calls cost half of the joined ones."""

    def halved(*asked):
        right = sound.reduce(*asked)
        return Reduced(right.exclusive / 2, right.total)

    return {"with_call_sites": lambda: Changed(sound, reduce=halved)}


def costly_line(sound):
    """Return the change of a profile in which one line costs more than its call path."""
    first = np.zeros(1, np.intp)

    def line_costs(*asked):
        own = np.nan_to_num(sound.reduce(*asked).exclusive)
        return LineCosts(first, first, first + 1, ("app.c",), own[:1] + own.sum())

    return {"line_costs": line_costs}


def placed(ranks, nodes, *topologies):
    """Return a reader class whose profiles state this placement of their two processes."""
    found = Placement(np.array(ranks), nodes, topologies)
    return profile(lambda _: {"placement": lambda: found})


def declaring(*metrics):
    return profile(lambda _: {"metrics": list(metrics)})


def named(name):
    def changes(sound):
        tree = sound.call_tree
        return {"call_tree": replace(tree, regions=(Region(name), *tree.regions[1:]))}

    return profile(changes)


class Keeps(Sound):
    @contextmanager
    def open(self, path):
        HELD.append(path.open())
        with Sound.open(self, path) as sound:
            yield sound


class Writes(Sound):
    @contextmanager
    def open(self, path):
        with Sound.open(self, path) as sound:
            yield sound
        path.write_text(TEXT + "\n")


class Leaks(Sound):
    @contextmanager
    def open(self, path):
        with Sound.open(self, path) as sound:
            if path.stat().st_size < len(TEXT):
                raise KeyError("end")
            yield sound


class Silent(Sound):
    @contextmanager
    def open(self, path):
        try:
            with Sound.open(self, path) as sound:
                yield sound
        except InputError:
            raise InputError("no good") from None


class Unpicklable(Sound):
    def __init__(self):
        self.opener = lambda path: path


class Random(Sound):
    @contextmanager
    def open(self, path):
        with Sound.open(self, path) as sound:
            noise = float.fromhex(os.urandom(4).hex())
            yield Changed(sound, metadata={"noise": str(noise)})


class Series(Sound):
    open = None

    @contextmanager
    def open_runs(self, path):
        with Sound().open(path) as sound:
            yield [RunSource(sound, {"p": 2.0}), RunSource(sound, {"p": 2.0})]


class Repeats(Sound):
    @contextmanager
    def open_runs(self, path):
        with Sound().open(path) as sound:
            yield [RunSource(sound, {"rep": 2.0})]


def matching(match):
    return type("Broken", (Sound,), {"match": lambda _, path: match(path)})


def by_name(path):
    return Match.NAME if path.suffix == ".timings" else Match.NO


def at_the_end(path):
    return Match.CONTENT if path.read_text().endswith("0.25\n") else Match.NO


def counting(_):
    calls = []

    def findings():
        calls.append(1)
        return [Finding("CPM103", "x", "y")] * len(calls)

    return {"findings": findings}


def nonsense(_):
    return {"findings": lambda: [Finding("nonsense", "x", "y")]}


def of_its_own_kind(_):
    class Text(str):
        __slots__ = ()

    return {"metadata": {"program": Text("app")}}


class Forgets(Sound):
    """A reader that forgets the last call path when workers share its profile."""

    @contextmanager
    def open_for(self, workers, path):  # noqa: ARG002
        with self.open(path) as sound:
            kept = np.arange(len(sound.call_tree)) < len(sound.call_tree) - 1

            def reduce(metric, how):
                reduced = sound.reduce(metric, how)
                return Reduced(reduced.exclusive * kept, reduced.total)

            yield Changed(sound, reduce=reduce)


def backwards(sound):
    tree = sound.call_tree
    return {"call_tree": replace(tree, parent=tree.parent[::-1])}


def all_metrics(sound):
    return {"reduce": lambda _, how: sound.reduce("time", how)}


def twice(reduced, _):
    return Reduced(reduced.exclusive * 2, reduced.total * 2)


def too_few(reduced, _):
    return Reduced(reduced.exclusive[1:], reduced.total)


def negative(reduced, _):
    return Reduced(-reduced.exclusive, reduced.total)


def inclusive(reduced, _):
    return Reduced(np.cumsum(reduced.exclusive), reduced.total)


def small_maximum(reduced, how):
    return Reduced(reduced.exclusive * (how is not Reduction.MAX), reduced.total)


def shortened(reduced, how):
    return replace(reduced, run_time=reduced.run_time * (1 + (how is Reduction.MAX)))


def large_sum(reduced, how):
    return Reduced(reduced.exclusive * (1 + (how is Reduction.SUM)), reduced.total)


DATA, DERIVED = MetricStatus.DATA, MetricStatus.DERIVED
BROKEN = [
    ("test_the_reader_says_what_it_is", reader(api_version=99)),
    ("test_the_reader_says_what_it_is", reader(description="")),
    ("test_the_reader_says_what_it_is", reader(suffixes=("*.timings",))),
    ("test_the_reader_can_be_sent_to_another_process", Unpicklable),
    ("test_a_profile_is_recognised", matching(lambda _: Match.NO)),
    ("test_a_profile_is_recognised_by_its_first_block", matching(at_the_end)),
    ("test_a_strange_file_is_not_taken", matching(lambda _: Match.NAME)),
    ("test_an_empty_file_is_not_taken_whatever_its_name", matching(by_name)),
    ("test_an_empty_directory_is_not_taken_whatever_its_name", matching(by_name)),
    ("test_what_is_not_there_is_not_taken", matching(by_name)),
    ("test_what_is_not_there_is_an_input_error", Silent),
    ("test_what_was_opened_is_closed", Keeps),
    ("test_a_profile_can_be_open_twice", Random),
    ("test_parts_for_workers_give_the_same_as_the_whole", Forgets),
    ("test_what_was_read_can_be_sent_to_another_process", profile(of_its_own_kind)),
    ("test_reading_again_gives_the_same", profile(counting)),
    ("test_reading_leaves_the_profile_alone", Writes),
    ("test_runs_differ_in_parameters_or_repetition", Series),
    ("test_parameters_are_numbers_with_names", Repeats),
    ("test_the_call_tree_is_in_preorder", profile(backwards)),
    ("test_names_of_regions_are_text_in_full", named("int main(int, char...")),
    ("test_names_of_regions_are_text_in_full", named("main ")),
    ("test_metrics_have_one_name_each", declaring(*[DeclaredMetric(TIME, DATA)] * 2)),
    ("test_units_are_base_units", declaring(DeclaredMetric(Metric("time", "ms"), DATA))),
    ("test_units_are_base_units", declaring(DeclaredMetric(Metric("visits", ""), DATA))),
    ("test_a_metric_that_cannot_be_read_says_why", declaring(DeclaredMetric(TIME, DERIVED))),
    ("test_the_extent_is_of_this_world", profile(lambda _: {"extent": Extent(-1)})),
    ("test_metadata_are_text", profile(lambda _: {"metadata": {"p": 2}})),
    ("test_findings_are_known_and_in_one_line", profile(nonsense)),
    ("test_known_values_are_read", reducing(twice)),
    ("test_there_is_one_value_per_call_path", reducing(too_few)),
    ("test_there_is_one_value_per_call_path", reducing(negative)),
    ("test_exclusive_values_add_up_to_the_total", reducing(inclusive)),
    ("test_the_run_time_is_that_of_the_slowest_process", reducing(shortened)),
    ("test_reductions_keep_their_order", reducing(small_maximum)),
    ("test_reductions_keep_their_order", reducing(large_sum)),
    ("test_an_imbalance_in_passing_is_the_one_asked_for", reducing(balanced)),
    ("test_sums_of_threads_agree_with_the_reductions", summing(wrapped_around)),
    ("test_sums_of_threads_agree_with_the_reductions", summing(one_process_too_many)),
    ("test_separate_calls_have_the_cost_of_joined_ones", profile(cheaper_apart)),
    ("test_lines_cost_no_more_than_their_call_paths", profile(costly_line)),
    ("test_every_process_has_a_rank_and_a_node", placed([1, 1], ("a", "a"))),
    ("test_every_process_has_a_rank_and_a_node", placed([0, -1], ("a", "a"))),
    ("test_every_process_has_a_rank_and_a_node", placed([0], ("a",))),
    ("test_every_process_has_a_rank_and_a_node", placed([0, 1], ("a",))),
    (
        "test_every_process_has_a_rank_and_a_node",
        placed([0, 1], ("", ""), Topology("grid", (2, 2), np.array([[0, 0], [2, 0]]))),
    ),
    ("test_an_unknown_metric_is_a_key_error", profile(all_metrics)),
    ("test_a_damaged_profile_is_read_or_refused", Leaks),
    ("test_a_damaged_profile_is_read_or_refused", Silent),
]


@cells(("test", "broken"), BROKEN)
def test_the_contract_finds_what_is_broken(tmp_path, test, broken):
    with pytest.raises((Exception, pytest.fail.Exception)):
        conduct(test, broken, tmp_path)


@cells("test", sorted({test for test, _ in BROKEN}))
def test_the_contract_finds_nothing_wrong_with_a_sound_reader(tmp_path, test):
    conduct(test, Sound, tmp_path)


def test_every_test_of_the_contract_is_shown_to_fail():
    tests = {name for name in dir(ReaderContract) if name.startswith("test_")}
    elsewhere = {
        "test_finding_the_reader_imports_nothing_heavy",
        "test_an_independent_reader_agrees",
    }
    assert {test for test, _ in BROKEN} | elsewhere == tests


def conduct(test, reader_class, directory):
    """Run one test of the contract, as pytest would, on a reader class."""
    contract = type("Contract", (ReaderContract,), {"reader_class": reader_class})()
    path = directory / "small.timings"
    path.write_text(TEXT)
    made = reader_class()
    given = {"reader": made, "profile": path, "known": KNOWN, "tmp_path": directory}
    method = getattr(contract, test)
    names = list(inspect.signature(method).parameters)
    with ExitStack() as stack:
        if "runs" in names:
            given["runs"] = stack.enter_context(opened_runs(made, path))
        method(**{name: given[name] for name in names})
