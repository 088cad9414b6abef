"""The answers of all commands to one question, held against each other."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.units import quantity

BOUNDS = {"value": "<= 1e12 {}", "excess": "<= 1e12", "loss": "<= 1e12 {}", "growth": "<= O(p^9)"}
TAGS = re.compile(r"<(style|script)\b.*?</\1>|<[^>]*>", re.DOTALL)


def words_of(page):
    """Return the text of an HTML page, with single spaces."""
    return " ".join(html.unescape(TAGS.sub("", page)).split())


def near(number):
    return pytest.approx(number, rel=1e-9, abs=1e-9)


class Commands:
    """The answers of all commands to questions about one series.

    Parameters
    ----------
    run : function that runs a command in this process
    source : the runs
    models : their models, or measured values
    tmp_path : a folder for files
    words : options that all commands need
    """

    def __init__(self, run, source, models, tmp_path, words=()):
        self.run, self.source, self.models, self.words = run, source, models, words
        self.tmp_path = tmp_path
        self.runs, self.unit = models.experiment, models.metric.unit
        # Only means over repetitions of call paths add up to those of the program.
        self.is_mean = models.models.aggregate == "mean"

    def said(self, command, *words):
        done = self.run(command, *words, *self.words)
        assert done.status == 0, done.err
        return done.out

    def asked(self, command, *words):
        return json.loads(self.said(command, *words, "-f", "json"))

    def check(self, target):
        """Check that all commands state the same at one target, and that parts add up to it.

        Returns
        -------
        dict
            The ranking.
        """
        at = ("--target", repr(target))
        ranking = self.asked("rank", self.source, *at)
        self.rows_add_up(ranking)
        self.is_in_the_range_of_runs(ranking, target)
        viewed = self.asked("views", self.source, *at)
        for field in ("run_time", "total", "imbalance", "excess", "basis", "repetitions"):
            assert viewed[field] == ranking[field], field
        if not self.models.is_measured_only:
            self.is_checked(ranking, at)
            self.is_the_base_of_limits(ranking, at)
        self.is_compared(ranking, at)
        self.has_the_excess_work_of_scales(ranking, target)
        self.is_browsed(ranking, target)
        ranked, views = (
            self.said(each, self.source, *at).split(").")[0] for each in ("rank", "views")
        )
        assert ranked == views
        page = self.tmp_path / "page.html"
        self.said("report", self.source, *at, "-o", page, "--force")
        assert " ".join(ranked.split()) in words_of(page.read_text())
        return ranking

    def stated(self, ranking):
        """Return the stated cost of the program with its ends, in the unit of the call paths."""
        if ranking["run_time"] is None:
            return [ranking["total"][end] for end in ("at_target", "low", "high")]
        by = ranking["target"] if ranking["locations"] == "sum" else 1
        ends = [ranking["run_time"][end] for end in ("at_target", "low", "high")]
        return [None if end is None else by * end for end in ends]

    def rows_add_up(self, ranking):
        whole = self.stated(ranking)[0]
        imbalance = 0.0
        if ranking["imbalance"] is not None:
            imbalance = ranking["imbalance"]["at_target"]

        def added(name):
            return np.nansum(np.array([row[name] for row in ranking["rows"]], float))

        assert added("value_at_target") + imbalance == near(whole)
        assert added("share_at_target") + imbalance / whole == near(1)
        if ranking["locations"] != "max" and self.is_mean:
            assert imbalance >= -1e-9 * whole
            assert max(row["share_at_target"] or 0.0 for row in ranking["rows"]) <= 1 + 1e-9
        excess = ranking["excess"]
        if excess is not None:
            assert added("excess_exclusive") + excess["imbalance"] == near(excess["program"])
        if excess is not None and ranking["run_time"] is not None:
            base = ranking["run_time"]["measured"][0]
            factor = ranking["base"] / ranking["target"] if self.runs.scaling == "strong" else 1
            expected = factor * base / ranking["run_time"]["at_target"]
            assert excess["program"] == near(1 - expected)

    def totals_of_runs(self, target):
        """Return the costs of the program in the runs of a target, as they were read."""
        name, parameter = self.models.metric.name, self.models.parameter
        line = self.models.line
        if line.columns[name].run_time is None:
            here = line.settings([parameter])[:, 0] == target
            return np.nansum(line.columns[name].exclusive[:, here], axis=0)
        scales, totals = line.of_program(name).by_point(name, parameter)
        here = totals[0, scales == target]
        return here[~np.isnan(here)]

    def is_in_the_range_of_runs(self, ranking, target):
        here = self.totals_of_runs(target)
        assert ranking["repetitions"] == len(here)
        assert ranking["basis"] == ("measured" if len(here) else "predicted")
        if ranking["run_time"] is None:
            value = ranking["total"]["at_target"]
        else:
            assert ranking["run_time"]["repetitions"] == len(here)
            value = ranking["run_time"]["at_target"]
        if len(here) and self.is_mean:
            assert here.min() * (1 - 1e-9) <= value <= here.max() * (1 + 1e-9)

    def is_checked(self, ranking, at):
        first, limits = ranking["rows"][0], self.tmp_path / "limits.toml"
        unit = "" if self.unit == "1" else self.unit
        lines = ["schema = 1", "[defaults]", f'metric = "{self.models.metric.name}"']
        for kind, bound in BOUNDS.items():
            for name, where in (("all", ""), ("one", f'callpath = "{first["id"]}"')):
                told = bound.format(unit).strip().replace("p^", f"{self.models.parameter}^")
                lines += ["[[expect]]", f'name = "{name} {kind}"', where, f'{kind} = "{told}"']
        limits.write_text("\n".join(lines))
        rows = self.asked("check", self.source, limits, *at)["rows"]
        found = {row["name"]: row for row in rows}
        whole, one = found["all value"], found["one value"]
        stated = self.stated(ranking)
        per_process = ranking["target"] if ranking["locations"] == "sum" else 1
        assert whole["basis"] == one["basis"] == ranking["basis"]
        # The run time of a check is that of one process.
        by = per_process if ranking["run_time"] is not None else 1
        assert whole["value"] * by == near(stated[0])
        assert one["value"] == near(first["value_at_target"])
        if ranking["basis"] == "measured":
            ends = [first["value_at_target"], first["low"], first["high"]]
            assert [one["value"], one["low"], one["high"]] == near_or_none(ends)
        ends = [whole[end] if whole[end] is None else by * whole[end] for end in ("low", "high")]
        assert ends == near_or_none(stated[1:])
        if ranking["excess"] is not None:
            assert found["all excess"]["value"] == near(ranking["excess"]["program"])
            assert found["one excess"]["value"] == near(first["excess_exclusive"])
            assert found["one loss"]["value"] == near(first["loss"])
            lost = ranking["excess"]["program"] * stated[0] / per_process
            assert found["all loss"]["value"] == near(lost)
        assert found["one growth"]["growth"] == first["growth"]

    def is_compared(self, ranking, at):
        source = (self.source, self.source)
        compared = self.asked("diff", *source, *(() if self.models.is_measured_only else at))
        if self.models.is_measured_only:
            if ranking["target"] == compared["scale"]:
                self.is_same(ranking, compared, "at_scale")
            return
        assert compared["basis"] == ranking["basis"]
        self.is_same(ranking, compared, "at_target")

    def is_same(self, ranking, compared, where):
        whole = compared["total"][where]
        by = ranking["target"] if ranking["locations"] == "sum" else 1
        by = by if ranking["run_time"] is not None else 1
        assert whole["base"] * by == whole["new"] * by == near(self.stated(ranking)[0])
        values = {row["id"]: row["value_at_target"] for row in ranking["rows"]}
        for row in compared["rows"]:
            if row[f"base_{where}"] is not None:
                assert row[f"base_{where}"] == near(values[row["id"]])

    def is_the_base_of_limits(self, ranking, at):
        tables = self.said("baseline", self.source, *at).split("[[expect]]")
        value = self.stated(ranking)[0]
        if ranking["locations"] == "sum" and ranking["run_time"] is not None:
            value = ranking["run_time"]["at_target"]
        assert f"# today {quantity(value, self.unit, ascii_only=True)}" in tables[1]
        first = quantity(ranking["rows"][0]["value_at_target"], self.unit, ascii_only=True)
        assert f"# today {first}" in tables[2]

    def has_the_excess_work_of_scales(self, ranking, target):
        if ranking["excess"] is None or target <= ranking["base"]:
            return
        pair = f"{ranking['base']!r},{target!r}"
        how = ("--pair", pair) if ranking["repetitions"] else ("--target", repr(target))
        found = self.asked("excess", self.source, *how)
        last = found["pairs"][-1]
        assert last["excess"] == near(ranking["excess"]["program"])
        assert last["imbalance"] == near(ranking["excess"]["imbalance"])
        by = target if ranking["locations"] == "sum" else 1
        assert last["total_at_scale"] * by == near(self.stated(ranking)[0])

    def is_browsed(self, ranking, target):
        first = answer_at(AnswerInputs(self.models), target, bands=False)
        found = (first.program_total, first.with_bands().program_total)
        stated = self.stated(ranking)
        assert found[0][0] == near(stated[0])
        assert list(found[1]) == near_or_none(stated)
        if self.models.metric.additive:
            assert cpm.rank(self.models, target).program_total[0] == near(stated[0])


def near_or_none(numbers):
    """Return numbers to compare with; None = a number that is not known."""
    known = [None if each is None or np.isnan(each) else each for each in numbers]
    return [Unknown() if each is None else near(each) for each in known]


class Unknown:
    """Equal to None and to NaN."""

    def __eq__(self, other):
        return other is None or bool(np.isnan(other))

    __hash__ = None
