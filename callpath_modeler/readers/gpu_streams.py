"""GPU streams in profiles: the findings and errors that all readers share.

The values of GPU streams are metrics of their own, see `Metric.on_gpu_streams`. The threads of
processes keep their metrics, so the time of a GPU is never added to the time of a CPU.
"""

from __future__ import annotations

from callpath_modeler.diagnostics import Notices
from callpath_modeler.errors import DataError
from callpath_modeler.units import counted

_CODE = "CPM110"


def note_streams(notices: Notices, streams: int, *, unowned: int = 0, others: int = 0) -> None:
    """Add findings about the locations of a profile that are no threads of processes.

    Parameters
    ----------
    notices : findings of the profile
    streams : number of GPU streams whose values are separate metrics
    unowned : number of GPU streams whose process is unknown, and whose values are not used
    others : number of locations that are neither threads nor GPU streams, which are not used
    """
    if streams:
        message = f"{counted(streams, 'GPU stream')}, whose values are separate metrics"
        notices.note(_CODE, message, streams, about="streams")
    if unowned:
        message = (
            f"the process of {counted(unowned, 'GPU stream')} is unknown, so values are excluded"
        )
        notices.note(_CODE, message, unowned, about="unowned")
    if others:
        message = f"values of {counted(others, 'location')} of another kind are excluded"
        notices.note(_CODE, message, others, about="others")


def no_threads(metric: str) -> DataError:
    """Return the error for values of single threads of a metric that has GPU streams instead."""
    return DataError(
        f"{metric} has values of GPU streams, not of single threads",
        hint="choose a metric of the threads with -m; `cpmodel info` lists the metrics",
    )
