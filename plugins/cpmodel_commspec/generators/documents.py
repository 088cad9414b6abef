"""Specifications for people and as JSON."""

from __future__ import annotations

from callpath_modeler.printable import printable
from cpmodel_commspec.generators.interface import Generator, Options
from cpmodel_commspec.specification import Specification


class Text(Generator):
    """Writer of loops that people can read."""

    name = "text"
    description = "loops that people can read"
    endings = ("", ".txt")
    is_program = False

    def write(self, told: Specification, options: Options) -> str:
        """Return one line for each loop and operation, wrapped to the width."""
        from callpath_modeler.units import to_ascii
        from cpmodel_commspec.text import specification_text

        lines = specification_text(told, options.width)
        text = "".join(f"{printable(str(line))}\n" for line in lines)
        return to_ascii(text) if options.ascii_only else text


class Json(Generator):
    """Writer of JSON, which `exchange.read_json` reads."""

    name = "json"
    description = "JSON, for `check` and to write other formats later"
    endings = (".json",)
    is_program = False

    def write(self, told: Specification, options: Options) -> str:  # noqa: ARG002
        """Return the specification as JSON."""
        from cpmodel_commspec.exchange import to_json

        return to_json(told)
