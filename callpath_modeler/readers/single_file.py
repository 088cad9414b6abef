"""Readers from a Python file that is not installed."""

from __future__ import annotations

import inspect
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from callpath_modeler.errors import PluginError, UsageError
from callpath_modeler.readers.base import Reader
from callpath_modeler.readers.plugin_errors import error_line, loaded

_MEND = "correct the file, or read without it"


def readers_in(path: Path) -> tuple[Reader, ...]:
    """Import `path` and return its readers.

    A reader is a class with a method ``match`` that the file defines.

    Raises
    ------
    UsageError
        If the file does not exist.
    PluginError
        If the file cannot be imported, contains no reader, or contains one that violates the
        contract.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file", hint="check the spelling")
    module = _imported(path)
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and callable(getattr(value, "match", None))
    ]
    if not found:
        raise PluginError(
            f"{path}: holds no reader",
            hint="define a class with api_version, name, description, suffixes, match and open",
        )
    return tuple(loaded(c, f"{path}: {c.__name__}", _MEND) for c in found)


def _imported(path: Path) -> ModuleType:
    name = f"cpmodel_reader_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path}: is not a Python file", hint="give a file that ends in .py")
    module = module_from_spec(spec)
    # Dataclasses and pickle need the module of a class by its name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as cause:
        del sys.modules[name]
        raise PluginError(f"{path}: does not load: {error_line(cause)}", hint=_MEND) from cause
    return module
