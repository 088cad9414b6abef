"""Traces without the names of the application."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec

from callpath_modeler.profile.schema import PROGRAM
from cpmodel_commspec.operations import Kind, Shape, Traced

_OF_MPI = re.compile(r"MPI_\w{1,40}")


def anonymous(traced: Traced) -> Traced:
    """Return a trace with numbers for the names of functions, communicators and the program.

    The names of MPI functions stay.
    """
    names = {PROGRAM: PROGRAM}

    def site(path: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.setdefault(name, f"f{len(names)}") for name in path)

    def shape(told: Shape) -> Shape:
        return msgspec.structs.replace(
            told,
            name=_of_mpi(told.name) if told.kind is Kind.HANDLE else told.name,
            call=_of_mpi(told.call),
            site=site(told.site),
            others=tuple(map(site, told.others)),
        )

    return replace(
        traced,
        program="",
        shapes=tuple(map(shape, traced.shapes)),
        communicators=tuple(
            msgspec.structs.replace(one, name=f"communicator_{k}")
            for k, one in enumerate(traced.communicators, 1)
        ),
    )


def _of_mpi(name: str) -> str:
    return name if _OF_MPI.fullmatch(name) else ""
