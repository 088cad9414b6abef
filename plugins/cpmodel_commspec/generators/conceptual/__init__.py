"""Generator of programs in coNCePTuaL 1.5 that communicate like the run."""

from __future__ import annotations

from cpmodel_commspec.generators.conceptual.source import conceptual_source
from cpmodel_commspec.generators.interface import Generator, Options
from cpmodel_commspec.specification import Specification

__all__ = ["ConceptualProgram", "conceptual_source"]


class ConceptualProgram(Generator):
    """Writer of programs in coNCePTuaL."""

    name = "conceptual"
    description = "a program in coNCePTuaL 1.5, which reads like English"
    endings = (".ncptl",)

    def write(self, told: Specification, options: Options) -> str:  # noqa: ARG002
        """Return the program.

        Raises
        ------
        DataError
            If coNCePTuaL cannot express an operation.
        """
        return conceptual_source(told)
