"""`cpmodel trace replay`: the run time of a program on another machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import option, was_asked
from callpath_modeler.cli.options import A_FILE
from callpath_modeler.cli.table_options import OutputRequest, answer_writer
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.support.input_limits import UNLIMITED, InputLimits
from cpmodel_commspec.commands.reading import (
    SOURCE,
    change_options,
    is_specification,
    read_trace,
    trace_output_options,
)

if TYPE_CHECKING:
    from callpath_modeler.diagnostics import Finding
    from cpmodel_commspec.commands.reading import Change
    from cpmodel_commspec.operations import Recorded, Traced
    from cpmodel_commspec.replay.answer import Prediction
    from cpmodel_commspec.replay.loggp import Measured, Replayed
    from cpmodel_commspec.replay.platform import Platform
    from cpmodel_commspec.specification import Specification
    from cpmodel_guidelines.tuning.call_times import CallTimes

_MOST_OPERATIONS = 20_000_000
_PLATFORM = "NAME|FILE|L=...,..."


@click.command("replay", cls=Configured)
@SOURCE
@option(
    f"--platform {_PLATFORM}",
    "Network: infiniband, loggopsim, a TOML file, or parameters of LogGP.",
    "first",
    default="infiniband",
)
@option(f"--another-platform {_PLATFORM}", "A second network, side by side.", "second")
@option(
    "--collectives EXP",
    "Output of a benchmark of collectives on this machine: use these times for their calls, and "
    "report what violated guidelines cost.",
    "campaign",
    type=click.Path(readable=False),
    multiple=True,
    example='["bench/"]',
)
@change_options
@option(
    "--smpi",
    "Run the C program on SimGrid SMPI; --platform is one of its XML files.",
    "is_simulated",
)
@option(
    "--selector",
    "MPI library whose collective algorithms --smpi uses.",
    type=click.Choice(["ompi", "mpich", "mvapich2", "impi"]),
    default="ompi",
)
@option(
    "--smpi-hosts FILE",
    "Hosts of the ranks for --smpi, one in each line. Default: those of the platform, in order.",
    "hosts",
    type=A_FILE,
)
@trace_output_options
@click.pass_context
def replay(
    ctx: click.Context, /, *, source: Path, first: str, second: str | None,
    campaign: tuple[str, ...], change: Change, is_simulated: bool, selector: str,
    hosts: Path | None, output: OutputRequest,
) -> None:  # fmt: skip
    """Predict the run time on another network, by line.

    cpmodel replays the program on the clock of each rank, with the parameters of LogGP. Lines are
    those of `cpmodel trace spec`.
    """
    console: Console = ctx.obj
    if was_asked(ctx, "selector") and not is_simulated:
        raise UsageError("--selector needs --smpi", hint="set algorithms in the platform file")
    if hosts is not None and not is_simulated:
        raise UsageError("--smpi-hosts needs --smpi", hint="LogGP has no hosts")
    if campaign and (is_simulated or second is not None):
        other = "--smpi" if is_simulated else "--another-platform"
        raise UsageError(
            f"--collectives and {other} exclude each other", hint=f"call cpmodel without {other}"
        )
    write = answer_writer(output, console)
    names = [text for text in (first, second) if text is not None]
    platforms = [] if is_simulated else _platforms(names)
    times = None
    if campaign:
        from cpmodel_guidelines.tuning.call_times import call_times

        times = call_times(campaign)
    told, traced, findings = read_source(console, source)
    told, changes = change(told)
    _require_few(told)
    _require_partners(told)
    if is_simulated:
        _simulate(console, told, names, (selector, hosts), changes, output)
    else:
        limits = UNLIMITED if traced is not None else InputLimits.of(source)
        measured = (times, campaign) if times is not None else None
        traced = None if changes else traced
        found = _predicted(told, traced, platforms, changes, limits, measured)
        from cpmodel_commspec.replay.answer import prediction_table, prediction_text

        write(lambda style: prediction_text(found, style), lambda: prediction_table(found))
    console.findings([*findings, *(times.findings if times is not None else ())])


def _platforms(names: Sequence[str]) -> list[Platform]:
    from cpmodel_commspec.replay.platform import platform_of

    return [platform_of(name) for name in names]


def _predicted(
    told: Specification, traced: Traced | None, platforms: Sequence[Platform],
    changes: Sequence[str], limits: InputLimits,
    measured: tuple[CallTimes, Sequence[str]] | None,
) -> Prediction:  # fmt: skip
    """Return the run time on each platform, and that of the trace itself on the first."""
    from cpmodel_commspec.replay.answer import Prediction
    from cpmodel_commspec.replay.measured import measured_calls, measured_times
    from cpmodel_commspec.replay.run_time import program_of, run_time

    program = program_of(told)
    lines = [told.lines_of_rank(rank) for rank in range(told.processes)]
    replayed = [_replayed(told, program, platform, limits) for platform in platforms]
    by_name, calls, known = any(is_named for _, is_named in replayed), None, None
    found = [one for one, _ in replayed]
    if measured is not None:
        found[0], calls = measured_calls(
            *measured,
            lambda known: _replayed(told, program, platforms[0], limits, known)[0],
            found[0].seconds,
        )
        known = measured_times(measured[0].at)
    of_trace = None
    if traced is not None:
        recorded = _as_traced(program, traced)
        of_trace = _replayed(told, recorded, platforms[0], measured=known)[0].seconds
    times = tuple(run_time(told, lines, one) for one in found)
    return Prediction(
        told, tuple(platforms), times, tuple(changes), of_trace, by_name=by_name, measured=calls
    )


def _as_traced(program: Sequence[Recorded], traced: Traced) -> list[Recorded]:
    """Return the operations of a program with the computation of the trace."""
    return [
        dataclasses.replace(one, computing=own.computing, last=own.last)
        for one, own in zip(program, traced.ranks, strict=True)
    ]


def ideal_run_time(told: Specification, traced: Traced) -> float:
    """Return the run time of a trace on a network on which messages take no time.

    Parameters
    ----------
    told : the program of the trace
    traced : the trace, whose computation is used

    Raises
    ------
    DataError
        If there are too many operations, or if ranks wait for each other.
    """
    from cpmodel_commspec.replay.ideal import IDEAL
    from cpmodel_commspec.replay.run_time import program_of

    _require_few(told)
    _require_partners(told)
    return _replayed(told, _as_traced(program_of(told), traced), IDEAL)[0].seconds


def _simulate(
    console: Console, told: Specification, names: Sequence[str],
    machine: tuple[str, Path | None], changes: Sequence[str], output: OutputRequest,
) -> None:  # fmt: skip
    """Write the run time on SimGrid SMPI for each platform file."""
    from cpmodel_commspec.generators.c_program import c_source
    from cpmodel_commspec.replay.answer import Simulated, simulated_table, simulated_text
    from cpmodel_commspec.replay.smpi import hosts_of, smpi_run
    from cpmodel_commspec.simulation.deadlocks import require_safe

    require_safe(told)
    selector, path = machine
    hosts = hosts_of(path, told.processes) if path is not None else []
    source = c_source(told)
    runs = [smpi_run(source, told.processes, Path(name), selector, hosts) for name in names]
    found = Simulated(told, tuple(names), selector, tuple(runs), tuple(changes))
    answer_writer(output, console)(
        lambda style: simulated_text(found, style), lambda: simulated_table(found)
    )


def read_source(
    console: Console, source: Path
) -> tuple[Specification, Traced | None, list[Finding]]:
    """Return the program of a trace or a specification, the trace, and findings."""
    from cpmodel_commspec.compression.specify import specify
    from cpmodel_commspec.exchange import read_json
    from cpmodel_commspec.simulation.wildcards import resolved

    if is_specification(source):
        return read_json(source), None, []
    traced, findings = read_trace(console, source)
    traced = resolved(traced).traced
    return specify(traced), traced, findings


def _require_few(told: Specification) -> None:
    if told.operations > _MOST_OPERATIONS:
        raise DataError(
            f"{told.operations} operations are too many to replay",
            hint=f"{_MOST_OPERATIONS} are possible; replay fewer rounds",
        )


def _require_partners(told: Specification) -> None:
    from cpmodel_commspec.simulation.deadlocks import mismatches

    for what in mismatches(told):
        raise DataError(f"no run time: {what}", hint="trace all ranks to the end")


def _replayed(
    told: Specification, ranks: Sequence[Recorded], platform: Platform,
    limits: InputLimits = UNLIMITED, measured: Measured | None = None,
) -> tuple[Replayed, bool]:  # fmt: skip
    """Return the times of all operations, and whether receives from any source name their sources.

    They take the first message to arrive. Where the program depends on their order, or where ranks
    then wait for each other, they take the message of the source that the program names.

    Raises
    ------
    DataError
        If ranks wait for each other.
    """
    from cpmodel_commspec.replay.loggp import replay as timed
    from cpmodel_commspec.simulation.deadlocks import explain
    from cpmodel_commspec.simulation.simulator import Sends
    from cpmodel_commspec.simulation.turns import answering

    orders = [False] if answering(told.shapes, ranks) else [True, False]
    for by_arrival in orders:
        found = timed(
            *(told.shapes, told.communicators, ranks, platform),
            by_arrival=by_arrival,
            limits=limits,
            measured=measured,
        )
        if not found.outcome.blocked:
            return found, told.from_any_source > 0 and not by_arrival
    what = explain(told, found.outcome, Sends.RENDEZVOUS)
    raise DataError(
        f"no run time: {what}",
        hint="`cpmodel trace spec` names the lines; a larger eager limit of the platform may help",
    )
