"""Ranks of MPI that do the same work, because nobody told the command about them."""

from __future__ import annotations

import os
from collections.abc import Mapping

import click

_LAUNCHERS = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("PALS_SIZE", "PALS_RANKID"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
)
"""Variables with the number of processes and the number of this one, which launchers set."""
_BATCH = "BATCH"
"""Value of the variable ENVIRONMENT in a batch script of Slurm, which is one process."""


def note_of_same_work(ctx: click.Context) -> None:
    """Note, in one of several processes that a launcher of MPI started, that all do the same."""
    if ctx.params.get("executor") is not None or ctx.obj is None:
        return
    count, rank = _ranks(os.environ)
    if count < 2 or rank:
        return
    is_shared = any(each.name == "executor" for each in ctx.command.params)
    remedy = "add --executor mpi" if is_shared else "start it without mpiexec or srun"
    ctx.obj.note(f"{count} processes do the same work, each all of it; {remedy}")


def _ranks(variables: Mapping[str, str]) -> tuple[int, int]:
    """Return the number of processes that a launcher started, and the number of this one."""
    for size, rank in _LAUNCHERS:
        if _number(variables.get(size)) > 1:
            return _number(variables[size]), _number(variables.get(rank))
    # An allocation and its batch script know the number of tasks as well, before srun starts them.
    if "SLURM_PROCID" in variables and variables.get("ENVIRONMENT") != _BATCH:
        return _number(variables.get("SLURM_NTASKS")), _number(variables["SLURM_PROCID"])
    return 1, 0


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else 0
