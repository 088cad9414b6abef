"""Generator of Python programs that communicate like the run, through mpi4py."""

from __future__ import annotations

from cpmodel_commspec.generators.interface import Options
from cpmodel_commspec.generators.python.source import python_source
from cpmodel_commspec.specification import Specification

__all__ = ["PythonProgram", "python_source"]


class PythonProgram:
    """Writer of programs in Python."""

    name = "mpi4py"
    description = "a program in Python with mpi4py"
    endings = (".py",)
    is_program = True
    is_directory = False

    def write(self, told: Specification, options: Options) -> str:  # noqa: ARG002
        """Return the program.

        Raises
        ------
        DataError
            If Python with mpi4py cannot express an operation.
        """
        return python_source(told)
