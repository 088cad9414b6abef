"""Browse generated models of many call paths by keys, and print the cost of the start and of keys.

    python browse_ours.py CALL_PATHS FILE.cpm

If the store is missing, the program fits some hundred models and assigns one to every call path.
"""

import asyncio
import gc
import json
import sys
import time
from pathlib import Path

import numpy as np

SCALES = (8, 16, 32, 64, 128)
FITTED = 500
KEYS = {
    "down": ["down"],
    "hot path": ["H"],
    "double the target": ["right_square_bracket"],
    "bottom-up": ["2"],
    "bottom-up: down": ["down"],
    "bottom-up: open": ["l"],
    "bottom-up: double the target": ["right_square_bracket"],
    "flat": ["3"],
    "flat: sort": ["s"],
    "flat: show what is small": ["full_stop"],
    "flat: page down": ["pagedown"],
    "top-down": ["1"],
    "open all": ["home", "E"],
    "opened: double the target": ["right_square_bracket"],
    "opened: down": ["down"],
}
"""Sequences of keys; the last key of each is timed."""


def make(count: int, path: Path) -> None:
    from trees import tree_of

    from callpath_modeler import store
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.profile.experiment import Experiment, Scaling
    from callpath_modeler.profile.groups import MetricValues
    from callpath_modeler.profile.runs import Run, split_parameters
    from callpath_modeler.profile.schema import Extent, Metric, Reduction
    from callpath_modeler.studies import pipeline

    def experiment(size: int, cost: np.ndarray) -> Experiment:
        metric = Metric("time", "s")
        runs = tuple(Run(f"p{p}", "none", Extent(p), {"p": float(p)}, 1) for p in SCALES)
        varying, constants = split_parameters(runs, {"p": "name"})
        values = {"time": MetricValues(metric, cost, cost.sum(axis=0))}
        return Experiment("generated", tree_of(size, np.random.default_rng(2)), runs, varying,
                          constants, values, {"time": ""}, Reduction.MEAN, Scaling.WEAK, "as told",
                          ())  # fmt: skip

    rng = np.random.default_rng(1)
    growth = rng.choice([0, 0.5, 1], (FITTED, 1), p=[0.7, 0.2, 0.1])
    cost = rng.exponential(size=(FITTED, 1)) * (1 + 0.2 * np.array(SCALES, float) ** growth)
    cost *= rng.normal(1, 0.02, cost.shape)
    few = pipeline.fit(experiment(FITTED, cost))
    rows = rng.integers(0, FITTED, count)
    many = Fitted(experiment(count, cost[rows]), few.metric, few.parameter, few.points,
                  few.measured[rows], few.models.take(rows), few.settings, ())  # fmt: skip
    store.write([many], path)


def private() -> int:
    """Return the private memory of this process in bytes."""
    status = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in status if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


def main() -> None:
    count, path = int(sys.argv[1]), Path(sys.argv[2])
    if not path.exists():
        make(count, path)
        print(json.dumps({}))
        return
    gc.set_threshold(10_000)  # as `cpmodel` does
    from callpath_modeler import store

    begin, started = time.process_time(), time.thread_time()
    experiment = store.read_experiment(path)
    fitted = store.read_models(path, experiment, "time", None)
    loaded = time.process_time()
    from callpath_modeler.analysis.answer import answer_at
    from callpath_modeler.analysis.answer_bands import AnswerInputs
    from callpath_modeler.tui.app import Browser
    from callpath_modeler.tui.services import BrowserServices
    from callpath_modeler.tui.session import Session

    imported = time.process_time()
    session = Session(answer_at(AnswerInputs(fitted), 4096.0, bands=False))

    def nothing(*_: object) -> str:
        return ""

    given = BrowserServices(nothing, nothing, lambda text, _: float(text), *[nothing] * 5)
    app = Browser(session, given)
    keys: dict[str, float] = {}
    peak = 0

    async def browse() -> None:
        nonlocal peak
        async with app.run_test(size=(160, 50)) as pilot:
            took["first screen"] = time.thread_time() - started
            # Views are prepared in the background before a user can press keys.
            await asyncio.sleep(2)
            for name, pressed in KEYS.items():
                await pilot.press(*pressed[:-1])
                await asyncio.sleep(0.5)
                before = time.thread_time()
                await pilot.press(pressed[-1])
                keys[name] = time.thread_time() - before
                for _ in range(50):
                    await asyncio.sleep(0.01)
                    peak = max(peak, private())
            app.workers.cancel_all()  # bands are no longer needed
            await asyncio.sleep(2)
            before = time.process_time()
            answer_at(session.forecast.inputs, 12345.0, bands=False)
            took["retarget"] = time.process_time() - before

    took = {"load": loaded - begin, "imports": imported - loaded}
    asyncio.run(browse())
    print(json.dumps({"seconds": took, "keys": keys, "memory": peak}))


if __name__ == "__main__":
    main()
