"""Traces and specifications without the names of the application."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from callpath_modeler.profile.schema import PROGRAM
from cpmodel_commspec.operations import Communicator, Kind, Shape, Traced
from cpmodel_commspec.specification import Specification

_OF_MPI = re.compile(r"MPI_\w{1,40}")


def anonymous(traced: Traced) -> Traced:
    """Return a trace with numbers for the names of functions, communicators and the program.

    The names of MPI functions stay.
    """
    return anonymous_runs([traced])[0]


def anonymous_runs(traces: Sequence[Traced]) -> list[Traced]:
    """Return traces with numbers for names, the same for the same name in all of them."""
    names = _Names()
    numbers: dict[str, int] = {}
    return [
        replace(
            one,
            program="",
            shapes=tuple(map(names.shape, one.shapes)),
            communicators=_numbered(one.communicators, numbers),
        )
        for one in traces
    ]


def anonymous_specification(told: Specification) -> Specification:
    """Return a specification with numbers for the same names; see `anonymous`."""
    names = _Names()
    irregular = tuple(
        msgspec.structs.replace(one, site=names.site(one.site), call=_of_mpi(one.call))
        for one in told.irregular
    )
    return msgspec.structs.replace(
        told,
        program="",
        shapes=tuple(map(names.shape, told.shapes)),
        communicators=_numbered(told.communicators, {}),
        irregular=irregular,
        left_out={"excluded operations": sum(told.left_out.values())} if told.left_out else {},
    )


class _Names:
    """Numbers in place of names, the same for the same name."""

    def __init__(self) -> None:
        self._known = {PROGRAM: PROGRAM}

    def site(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Return a call path without names."""
        return tuple(self._known.setdefault(name, f"f{len(self._known)}") for name in path)

    def shape(self, told: Shape) -> Shape:
        """Return a shape without names."""
        return msgspec.structs.replace(
            told,
            name=_of_mpi(told.name) if told.kind is Kind.HANDLE else told.name,
            call=_of_mpi(told.call),
            site=self.site(told.site),
            others=tuple(map(self.site, told.others)),
        )


def _numbered(
    communicators: Sequence[Communicator], numbers: dict[str, int]
) -> tuple[Communicator, ...]:
    """Return communicators with numbers for names; `numbers` are those given so far."""
    found = []
    for one in communicators:
        number = numbers.setdefault(one.name, len(numbers) + 1)
        found.append(msgspec.structs.replace(one, name=f"communicator_{number}"))
    return tuple(found)


def _of_mpi(name: str) -> str:
    return name if _OF_MPI.fullmatch(name) else ""
