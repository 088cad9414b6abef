"""The contract of generators, which write a specification in one format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from cpmodel_commspec.specification import Specification

Written: TypeAlias = "str | bytes | Mapping[str, str | bytes]"
"""The content of one file, or of several, by their names in the directory of the output."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a generator may adapt its output to.

    Attributes
    ----------
    width : cells of a line of text; None = any number
    ascii_only : whether people asked for text without other characters
    """

    width: int | None = None
    ascii_only: bool = False


@runtime_checkable
class Generator(Protocol):
    """Writer of specifications in one format.

    Entry points of the group ``callpath_modeler.trace_generators`` are classes with this contract;
    they are called without arguments.

    Attributes
    ----------
    name : of the format, for ``-f``
    description : one line for the help
    endings : of file names that mean this format, such as ``(".c",)``; "" is a name without ending
    is_program : whether the format can be run: specifications that can hang are refused
    is_directory : whether it takes several files, which go into one directory
    """

    name: str
    description: str
    endings: tuple[str, ...]
    is_program: bool
    is_directory: bool

    def write(self, told: Specification, options: Options) -> Written:
        """Return the content of the file, or of all files if `is_directory`.

        Raises
        ------
        DataError
            If the format cannot express the specification.
        """
        ...
