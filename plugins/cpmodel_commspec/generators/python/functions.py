"""The Python functions of generated programs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from cpmodel_commspec.generators.functions import PROMPT, STARTED_SENDS, Functions

_SENT, _RECEIVED = "[out, size, MPI.BYTE]", "[{into}, size, MPI.BYTE]"
_REDUCED = f"{_SENT}, {_RECEIVED}, MPI.BOR"
_BOTH = f"{_SENT}, {_RECEIVED}"
_COLLECTIVES = {
    "barrier": ("comm", ""),
    "bcast": ("comm, size, root", f"{_SENT}, root"),
    "gather": ("comm, size, root", f"{_BOTH}, root"),
    "scatter": ("comm, size, root", f"{_BOTH}, root"),
    "reduce": ("comm, size, root", f"{_REDUCED}, root"),
    "allgather": ("comm, size", _BOTH),
    "alltoall": ("comm, size", _BOTH),
    "allreduce": ("comm, size", _REDUCED),
    "scan": ("comm, size", _REDUCED),
    "exscan": ("comm, size", _REDUCED),
    "reduce_scatter_block": ("comm, size", _REDUCED),
}
"""Parameters, and arguments of the method of the communicator."""


class PythonFunctions(Functions):
    """The functions of a program in Python."""

    def __init__(self) -> None:
        source = files("cpmodel_commspec.generators.python").joinpath("functions.txt")
        super().__init__(source.read_text(encoding="utf-8"), "#### ", "")

    def array(self, numbers: Sequence[int]) -> str:
        """Return numbers as a list."""
        return f"[{', '.join(map(str, numbers))}]"

    def collective(self, name: str, *arguments: str, is_in_place: bool, is_started: bool) -> str:
        """Return the call of a collective operation that moves equal sizes on all ranks."""
        parameters, given = _COLLECTIVES[name]
        function = "start_" * is_started + name + "_in_place" * is_in_place
        into = "bytearray(len(into))" if is_started else "into"
        if is_in_place:
            # Roots that scatter leave out where they would receive, all others what they send.
            given = given.replace(_RECEIVED if name == "scatter" else _SENT, "MPI.IN_PLACE")
        given = given.format(into=into)
        method = f"I{name}" if is_started else name.capitalize()
        call = f"comms[comm].{method}({given})"
        if is_started:
            call = f"start({call}, COLLECTIVE)"
        text = f"def {function}({parameters}):\n    {call}\n"
        self.add(function, text, ("start",) if is_started else ())
        return self.call(function, *arguments)

    def wait(self, function: str, kind: str, places: Sequence[int]) -> str:
        """Return the call of a function that waits."""
        name = function[4:]
        is_prompt = function in PROMPT
        requests = "until_complete(take(chosen))" if is_prompt else "take(chosen)"
        call = f"MPI.Request.{name}({requests})"
        if name in {"Wait", "Test"}:
            call = f"({requests} or [MPI.Request()])[0].{name}()"
        needs = ("take", "until_complete") if is_prompt else ("take",)
        self.add(name.lower(), f"def {name.lower()}(chosen):\n    {call}\n", needs)
        if not kind:
            return self.call(name.lower(), self.array(places))
        self.use("places_of")
        return self.call(name.lower(), f"places_of({kind})")

    def send(self, function: str, *arguments: str, is_awaited: bool = True) -> str:
        """Return the call of a function that sends."""
        name = function[4:].lower() + "_and_forget" * (not is_awaited)
        call = f"comms[comm].{function[4:]}([out, size, MPI.BYTE], places[comm][peer], tag)"
        is_started = function.lower() in STARTED_SENDS
        if is_started:
            call = f"start({call}, SEND)" if is_awaited else f"{call}.Free()"
        needs = ("start",) if is_started and is_awaited else ()
        self.add(name, f"def {name}(comm, size, peer, tag):\n    {call}\n", needs)
        return self.call(name, *arguments)
