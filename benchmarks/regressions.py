"""Rates of passed and caught runs of expectations, over many seeds.

The runs of the sample profiles are copied with fresh noise on every value. The costliest
computation is made constant over all scales. A planted regression lets it grow as p^(1/2) from the
smallest scale on, or makes it 50 % slower at every scale. The output of `cpmodel baseline` for one
copy is checked with another copy.

The machine of the sample profiles was overloaded, so repetitions vary by a quarter. A slowdown of
50 % cannot be detected in such noise. For this table, each repetition is therefore the mean of its
scale, with less noise added.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from results import Table

from callpath_modeler import Experiment, fit, load
from callpath_modeler.analysis.expectations.clauses import interpret
from callpath_modeler.analysis.expectations.expectation import Expectations, parse
from callpath_modeler.analysis.expectations.growth_check import baseline
from callpath_modeler.analysis.expectations.judge import Judge
from callpath_modeler.modeling import centre
from callpath_modeler.report.exports import to_toml

SAMPLES = Path(__file__).resolve().parents[1] / "sample_profiles"
PROGRAMS = ("lulesh", "snap")
SEEDS = 200
NOISE = 0.03
NOTES = f"""\
The values of the sample profiles are multiplied by a normal factor of {NOISE:.0%}, for {SEEDS}
pairs of copies. The output of `cpmodel baseline` (95 %, margin 10 %) for one copy of a pair is
checked with the other copy. *passed*: copies of the unchanged program without a failure. *caught*:
copies with a failure, if the costliest computation grows as p^(1/2) instead of being constant.
*named*: copies in which this call path is among the failures."""

NOISES = (0.01, 0.05, 0.1, 0.2)
SLOWDOWNS = 20
SLOWER = 1.5
SLOWER_NOTES = f"""\
The method is that of the table before, with {SLOWDOWNS} pairs of copies, but each repetition is the
mean of its scale times a normal factor of the noise. *passed*: copies of the unchanged program
without a failure. *named*: copies in which the costliest computation takes {SLOWER} times as long
at every scale and is among the failures. Bounds apply to the largest scale, which was repeated, so
repetitions decide."""


@dataclass(frozen=True, slots=True)
class Program:
    """A series of runs in which one call path has the same cost at all scales.

    Attributes
    ----------
    flat : the runs
    row : the constant call path
    """

    flat: Experiment
    row: int

    @classmethod
    def sample(cls, name: str) -> Program:
        """Return a sample series with its costliest computation made constant."""
        experiment = load([SAMPLES / name])
        values = experiment.columns["time"].exclusive.copy()
        tree = experiment.tree
        computes = np.array([region.paradigm == "compiler" for region in tree.regions])
        row = int(np.argmax(np.where(computes[tree.region], np.nansum(values, axis=1), 0.0)))
        values[row] = np.nanmean(values[row])
        return cls(_with(experiment, values), row)

    def growing(self) -> Experiment:
        """Return the runs with growth in the constant call path."""
        scale = np.array([run.parameters["p"] for run in self.flat.runs])
        return self._times(np.sqrt(scale / scale.min()))

    def slower(self) -> Experiment:
        """Return the runs with the constant call path slower at every scale."""
        return self._times(np.full(len(self.flat.runs), SLOWER))

    def without_noise(self) -> Program:
        """Return the runs with each repetition replaced by the mean of its scale."""
        values = self.flat.columns["time"].exclusive.copy()
        for runs in self.flat.runs_by_setting().values():
            values[:, runs] = centre(values[:, None, runs], "mean")
        return Program(_with(self.flat, values), self.row)

    def _times(self, factor: np.ndarray) -> Experiment:
        values = self.flat.columns["time"].exclusive.copy()
        values[self.row] *= factor
        return _with(self.flat, values)


def _with(experiment: Experiment, exclusive: np.ndarray) -> Experiment:
    # No expectation uses the run time, and its model takes a third of the time of a fit.
    values = replace(experiment.columns["time"], exclusive=exclusive, run_time=None)
    return replace(experiment, columns={"time": values})


def copied(experiment: Experiment, seed: int, noise: float = NOISE) -> Experiment:
    """Return an experiment with fresh normal noise on every value."""
    exclusive = experiment.columns["time"].exclusive
    factor = 1 + noise * np.random.default_rng(seed).standard_normal(exclusive.shape)
    return _with(experiment, exclusive * np.maximum(factor, 0.0))


def expectations_of(experiment: Experiment) -> Expectations:
    """Return the expectations that `cpmodel baseline` writes."""
    return interpret(parse(to_toml(baseline(fit(experiment, "time"))), "baseline.toml"))


def failures(expected: Expectations, experiment: Experiment) -> set[int | None]:
    """Return the call paths of failed expectations; None = the whole program."""
    fitted = fit(experiment, "time")
    outcomes = Judge(expected, lambda _: fitted).outcomes()
    return {j.worst for o in outcomes if o.failed for j in o.judgements}


def rows(seeds: int = SEEDS) -> list[tuple[str, int, int, int]]:
    """Return the program, the rate of passed copies, and those of caught and named regressions."""
    found = []
    for name in PROGRAMS:
        program = Program.sample(name)
        passed = caught = named = 0
        for seed in range(seeds):
            expected = expectations_of(copied(program.flat, seeds + seed))
            passed += not failures(expected, copied(program.flat, seed))
            failed = failures(expected, copied(program.growing(), seed))
            caught += bool(failed)
            named += program.row in failed
        found.append((name, passed, caught, named))
        print(*found[-1], flush=True)
    return found


def table(_: Path) -> Table:
    """Return the table."""
    lines = [(name, *(f"{number} of {SEEDS}" for number in numbers)) for name, *numbers in rows()]
    return Table(("program", "passed", "caught", "named"), lines, range(1, 4))


def slowdowns(_: Path) -> Table:
    """Return the table of slowdowns at all scales."""
    lines = []
    for name, noise in itertools.product(PROGRAMS, NOISES):
        program, passed, named = Program.sample(name).without_noise(), 0, 0
        for seed in range(SLOWDOWNS):
            expected = expectations_of(copied(program.flat, SLOWDOWNS + seed, noise))
            passed += not failures(expected, copied(program.flat, seed, noise))
            named += program.row in failures(expected, copied(program.slower(), seed, noise))
        told = (f"{number} of {SLOWDOWNS}" for number in (passed, named))
        lines.append((name, f"{noise:.0%}", *told))
    return Table(("program", "noise", "passed", "named"), lines, range(1, 4))
