"""Generator of C programs that communicate like the run."""

from __future__ import annotations

from cpmodel_commspec.generators.c.source import c_source
from cpmodel_commspec.generators.interface import Options
from cpmodel_commspec.specification import Specification

__all__ = ["CProgram", "c_source"]


class CProgram:
    """Writer of programs in C."""

    name = "c"
    description = "a program in C with MPI"
    endings = (".c",)
    is_program = True
    is_directory = False

    def write(self, told: Specification, options: Options) -> str:  # noqa: ARG002
        """Return the program.

        Raises
        ------
        DataError
            If C with MPI cannot express an operation.
        """
        return c_source(told)
