"""Processes of loky that import nothing from the working directory."""

from __future__ import annotations

import threading
from typing import Any

from loky import ProcessPoolExecutor
from loky.backend import resource_tracker, spawn
from loky.backend.context import LokyContext
from loky.backend.process import LokyProcess

from callpath_modeler.program_path import program_path, safe_environment, safe_variables

_START = threading.Lock()


class SafeProcess(LokyProcess):  # type: ignore[misc] # loky has no types
    """A worker with the search path of `program_path`, from its first import on."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - the name of multiprocessing
        prepared = spawn.get_preparation_data

        def safely_prepared(*given: Any, **named: Any) -> dict[str, Any]:
            return {**prepared(*given, **named), "sys_path": program_path()}

        # The worker gets its search path before it imports anything that it was sent. A tracker of
        # resources that has died is started again here.
        with _START, safe_environment():
            spawn.get_preparation_data = safely_prepared
            try:
                return LokyProcess._Popen(process_obj)  # noqa: SLF001 - the name of multiprocessing
            finally:
                spawn.get_preparation_data = prepared


class _SafeContext(LokyContext):  # type: ignore[misc] # loky has no types
    Process = SafeProcess


def safe_executor(count: int, **options: Any) -> ProcessPoolExecutor:
    """Return an executor of `count` processes that import nothing from the working directory.

    Parameters
    ----------
    count : number of processes
    options : other arguments of the executor of loky; `env` holds further variables
    """
    variables = {**safe_variables(), **options.pop("env", {})}
    with safe_environment():
        # The tracker of resources is a process as well, and lives as long as this one.
        resource_tracker.ensure_running()
        return ProcessPoolExecutor(count, context=_SafeContext(), env=variables, **options)
