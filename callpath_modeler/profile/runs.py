"""Runs of a program, the parameters that vary between them, and the numbers in their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from callpath_modeler.printable import printable
from callpath_modeler.profile.schema import Extent


@dataclass(frozen=True, slots=True)
class Run:
    """One profile: one execution of the program.

    Attributes
    ----------
    source : path of the profile, as the user gave it
    reader : name of the reader that opened it
    extent : numbers of processes, threads and nodes
    parameters : value of every parameter, by name
    repetition : number among the runs of the same point, from 1
    metadata : further entries of the profile
    """

    source: str
    reader: str
    extent: Extent
    parameters: Mapping[str, float]
    repetition: int
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(map(str.isprintable, self.parameters)):
            safe = {printable(name): value for name, value in self.parameters.items()}
            object.__setattr__(self, "parameters", safe)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that varies between the runs.

    Attributes
    ----------
    name : ``"p"`` for the number of processes
    values : distinct values, ascending
    origin : source of the values, such as the names of files or a column
    """

    name: str
    values: tuple[float, ...]
    origin: str

    def __post_init__(self) -> None:
        if not self.name.isprintable():
            object.__setattr__(self, "name", printable(self.name))


class RunNumber(Struct, frozen=True):
    """A number in the names of runs, and its interpretation.

    Attributes
    ----------
    name : the word next to the number
    values : its values, as text
    place : its position: file names, directory names, or a column
    reason : the interpretation, with the reason for it
    common_constant : the constant that only the name of the directory of all runs states; "" = none
    """

    name: str
    values: str
    place: str
    reason: str
    common_constant: str = ""


def split_parameters(
    runs: Sequence[Run], origins: Mapping[str, str]
) -> tuple[tuple[Parameter, ...], dict[str, float]]:
    """Return the parameters that vary between runs, and the values of the others."""
    varying, constants = [], {}
    for name, origin in origins.items():
        values = sorted({run.parameters[name] for run in runs})
        if len(values) > 1:
            varying.append(Parameter(name, tuple(values), origin))
        elif values:
            constants[name] = values[0]
    return tuple(varying), constants
