"""Exchange with Thicket and Hatchet: experiments as their objects, and back."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.profile.experiment import REPETITION, Experiment
from callpath_modeler.profile.groups import inclusive_values
from callpath_modeler.profile.schema import Metric
from callpath_modeler.readers.paths import is_processes
from callpath_modeler.report.exports import hatchet_literal
from callpath_modeler.studies.data_frame import from_frame

_CALL_PATH, _PROFILE, _ROW = "callpath", "profile", "row"
_INCLUSIVE, _EXCLUSIVE = " (inc)", " (exc)"


def thicket_of(experiment: Experiment) -> Any:
    """Return an experiment as a `thicket.Thicket`, one profile for each run.

    Metrics have the names of the experiment. Sums over callees are added as ``NAME (inc)``.
    Metadata has the parameters, the repetition, and what the profiles say.

    Raises
    ------
    DataError
        If Thicket is not installed.
    """
    thicket, graph, nodes = _installed("thicket"), *_graph(experiment)
    profiles = [*range(len(experiment.runs))]
    index = pd.MultiIndex.from_product([nodes, profiles], names=["node", _PROFILE])
    columns = {name: values.reshape(-1) for name, values in _columns(experiment)}
    names = [experiment.tree.name(row) for row in range(len(nodes))]
    frame = pd.DataFrame({**columns, "name": np.repeat(names, len(profiles))}, index=index)
    metadata = pd.DataFrame(
        [{**run.metadata, **run.parameters, REPETITION: run.repetition} for run in experiment.runs],
        index=pd.Index(profiles, name=_PROFILE),
    )
    return thicket.Thicket(
        graph,
        frame.sort_index(),
        exc_metrics=[name for name in columns if not name.endswith(_INCLUSIVE)],
        inc_metrics=[name for name in columns if name.endswith(_INCLUSIVE)],
        default_metric=experiment.metric().name,
        metadata=metadata,
        profile=profiles,
        profile_mapping={each: run.source for each, run in enumerate(experiment.runs)},
    )


def graph_frame_of(experiment: Experiment, run: int = -1) -> Any:
    """Return one run as a `hatchet.GraphFrame`, as `Experiment.to_hatchet`.

    Raises
    ------
    UsageError
        If there is no such run.
    DataError
        If Hatchet is not installed.
    """
    try:
        number = range(len(experiment.runs))[run]
    except IndexError:
        last = len(experiment.runs) - 1
        raise UsageError(f"no run {run}", hint=f"0 to {last}, or -1 for the last one") from None
    columns = {each.metric: each.exclusive[:, number] for each in experiment.columns.values()}
    return _literal(experiment, columns)


def from_thicket(
    thicket: Any, *, parameters: Sequence[str] = (), metrics: Sequence[str] = ()
) -> Experiment:
    """Return the experiment of a `thicket.Thicket`.

    Parameters
    ----------
    thicket : ensemble with the frame `dataframe`, index (node, profile), and `metadata`
    parameters : columns of the metadata; () = those that are named like a number of processes
    metrics : exclusive metrics; () = those that the names of columns show to be exclusive, else all
        exclusive ones of the thicket

    Returns
    -------
    Experiment
        One call tree with exclusive values in SI base units.

    Raises
    ------
    UsageError
        If there is no such column, or no parameter.
    InputError
        If a column contains invalid values.
    """
    frame, metadata = thicket.dataframe, thicket.metadata
    chosen = [*metrics] or _exclusive(thicket)
    if not chosen:
        raise UsageError("the thicket has no exclusive metric", hint="metrics=['time']")
    names = [*parameters] or [each for each in map(str, metadata) if is_processes(each)][:1]
    if not names:
        listed = ", ".join(map(str, metadata)) or "none"
        raise UsageError(
            "no column of the metadata is named like a number of processes",
            hint=f"parameters=[...] of {listed}",
        )
    for name in names:
        if name not in metadata:
            raise UsageError(
                f"no column {name!r} in the metadata",
                hint=f"columns: {', '.join(map(str, metadata))}",
            )
    table = frame[chosen].reset_index()
    of_profile = metadata.loc[table[_PROFILE], names].reset_index(drop=True)
    paths = {node: _path(node) for node in table["node"].unique()}
    table = pd.concat([table[chosen], of_profile], axis=1).assign(
        **{_CALL_PATH: [paths[node] for node in table["node"]]}
    )
    return from_frame(table, callpath=_CALL_PATH, parameters=names, metrics=chosen)


def _exclusive(thicket: Any) -> list[str]:
    """Return the exclusive metrics of a thicket.

    Thicket lists inclusive metrics of Caliper as exclusive. So a name beside ``NAME (inc)``, and
    ``NAME (exc)``, count first.
    """
    columns = dict.fromkeys(map(str, thicket.dataframe))
    shown = [name for name in columns if name.endswith(_EXCLUSIVE) or name + _INCLUSIVE in columns]
    others = (name for name in thicket.exc_metrics if name not in thicket.inc_metrics)
    return shown or [name for name in others if name in columns]


def _path(node: Any) -> tuple[str, ...]:
    """Return the names on the path to a node of Hatchet."""
    return tuple(str(each.frame.get("name") or each.frame) for each in node.path())


def _graph(experiment: Experiment) -> tuple[Any, list[Hashable]]:
    """Return the call tree as a graph of Hatchet, and the node of each call path."""
    rows = np.arange(len(experiment.tree), dtype=np.float64)
    made = _literal(experiment, {Metric(_ROW, "1", additive=False): rows})
    node_of = dict(zip(made.dataframe[_ROW].astype(int), made.dataframe.index, strict=True))
    return made.graph, [node_of[row] for row in range(len(experiment.tree))]


def _literal(experiment: Experiment, columns: dict[Metric, FloatArray]) -> Any:
    text = hatchet_literal(experiment.tree, columns)
    return _installed("hatchet").GraphFrame.from_literal(json.loads(text))


def _columns(experiment: Experiment) -> Iterator[tuple[str, FloatArray]]:
    """Yield the names and values [call paths, runs] of all metrics, exclusive and inclusive."""
    for name, each in experiment.columns.items():
        yield name, each.exclusive
        if each.metric.additive:
            yield name + _INCLUSIVE, inclusive_values(experiment.tree, each.exclusive)


def _installed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise DataError(
            f"{name.capitalize()} is not installed", hint=f"pip install llnl-{name}"
        ) from None
