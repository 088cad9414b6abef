"""The C functions of generated programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files

from cpmodel_commspec.generators.functions import STARTED_SENDS, Functions

_NO_BYTES, _BYTES, _ROOTED = "int comm", "int comm, long bytes", "int comm, long bytes, long root"
_SENT = "out, (int)bytes, MPI_BYTE, "
_RECEIVED = "{result}, (int)bytes, MPI_BYTE, "
_REDUCED = "out, {result}, (int)bytes, MPI_BYTE, MPI_BOR, "
_COLLECTIVES = {
    "barrier": (_NO_BYTES, ""),
    "bcast": (_ROOTED, _SENT + "(int)root, "),
    "gather": (_ROOTED, _SENT + _RECEIVED + "(int)root, "),
    "scatter": (_ROOTED, _SENT + _RECEIVED + "(int)root, "),
    "reduce": (_ROOTED, _REDUCED + "(int)root, "),
    "allgather": (_BYTES, _SENT + _RECEIVED),
    "alltoall": (_BYTES, _SENT + _RECEIVED),
    "allreduce": (_BYTES, _REDUCED),
    "scan": (_BYTES, _REDUCED),
    "exscan": (_BYTES, _REDUCED),
    "reduce_scatter_block": (_BYTES, _REDUCED),
}
"""Parameters, and arguments before the communicator."""

_DIRECT = {
    "MPI_Wait": "MPI_Wait(&requests[0], MPI_STATUS_IGNORE);",
    "MPI_Waitall": "MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);",
    "MPI_Waitany": "MPI_Waitany(n, requests, indices, MPI_STATUS_IGNORE);",
}
"""Calls that wait until operations are complete."""

_PROMPT = {
    "MPI_Waitsome": "MPI_Waitsome(n, requests, &count, indices, MPI_STATUSES_IGNORE);",
    "MPI_Test": "MPI_Test(&requests[0], &count, MPI_STATUS_IGNORE);",
    "MPI_Testall": "MPI_Testall(n, requests, &count, MPI_STATUSES_IGNORE);",
    "MPI_Testany": "MPI_Testany(n, requests, indices, &count, MPI_STATUS_IGNORE);",
    "MPI_Testsome": "MPI_Testsome(n, requests, &count, indices, MPI_STATUSES_IGNORE);",
}
_MARK = "//// "
_IN_PLACE, _STARTED = "_in_place", "start_"

_LOWERED = {
    "barrier": {"dissemination": "dissemination", "tree": "tree"},
    "bcast": {"binomial": "binomial_down", "p2p": "from_root_p2p"},
    "reduce": {"binomial": "binomial_up", "p2p": "to_root_p2p"},
    "gather": {"p2p": "to_root_p2p"},
    "scatter": {"p2p": "from_root_p2p"},
    "allgather": {"ring": "ring", "p2p": "everybody_p2p"},
    "alltoall": {"pairwise": "pairwise", "p2p": "everybody_p2p"},
    "allreduce": {
        "recursive-doubling": "recursive_doubling",
        "ring": "ring_of_parts",
        "tree": "tree",
        "p2p": "everybody_p2p",
    },
    "reduce_scatter_block": {"pairwise": "pairwise", "p2p": "everybody_p2p"},
    "scan": {"line": "line"},
    "exscan": {"line": "line"},
}
"""Functions that can replace collectives in a program, by their names in `collective_messages`."""


class CFunctions(Functions):
    """The functions of a program in C.

    Parameters
    ----------
    can_lower : whether the program has an argument that replaces collectives by messages
    """

    def __init__(self, *, can_lower: bool = True) -> None:
        self._can_lower = can_lower
        folder = files("cpmodel_commspec.generators.c")
        texts = [
            folder.joinpath(name).read_text(encoding="utf-8")
            for name in ("functions.c", "lowering.c")
        ]
        # The heading of a file is no part of a program.
        source = "".join(text[text.index(_MARK) :] for text in texts)
        super().__init__(source, _MARK, ";")
        self._lowered: dict[str, None] = {}

    @property
    def lowered(self) -> Iterator[tuple[str, str, str]]:
        """Collectives that messages can replace: name, algorithm, and function."""
        for name in self._lowered:
            for algorithm, function in _LOWERED[name].items():
                yield name, algorithm, function

    def array(self, numbers: Sequence[int]) -> str:
        """Return numbers as an array."""
        return f"(int[]){{{', '.join(map(str, numbers))}}}"

    def collective(self, name: str, *arguments: str, is_in_place: bool, is_started: bool) -> str:
        """Return the call of a collective operation that moves equal sizes on all ranks."""
        function = _STARTED * is_started + name + _IN_PLACE * is_in_place
        needs = [] if name == "barrier" else ["scaled"]
        if is_started:
            needs.append("start")
        elif self._can_lower:
            self._lowered.setdefault(name)
            self.add(f"lower_{name}", f"static replacement *lower_{name};\n",
                     ("apart", *_LOWERED[name].values()))  # fmt: skip
            needs.append(f"lower_{name}")
        can_lower = self._can_lower and not is_started
        self.add(function, _collective(function, name, can_lower=can_lower), needs)
        return self.call(function, *arguments)

    def wait(self, function: str, kind: str, places: Sequence[int]) -> str:
        """Return the call of a function that waits."""
        name = function[4:].lower()
        needs = ("take", "until_complete") if function in _PROMPT else ("take",)
        self.add(name, _wait(name, function), needs)
        if not kind:
            return self.call(name, str(len(places)), self.array(places or (0,)))
        self.add(f"{name}_of", _wait_of(name), (name, "places_of"))
        return self.call(f"{name}_of", kind)

    def send(self, function: str, *arguments: str, is_awaited: bool = True) -> str:
        """Return the call of a function that sends."""
        name = function[4:].lower() + "_and_forget" * (not is_awaited)
        is_started = function.lower() in STARTED_SENDS
        needs = ("start", "scaled") if is_started and is_awaited else ("scaled",)
        text = _send(name, function, is_started=is_started, is_awaited=is_awaited)
        self.add(name, text, needs)
        return self.call(name, *arguments)


def _wait(name: str, function: str) -> str:
    is_prompt = function in _PROMPT
    call = _PROMPT[function] if is_prompt else _DIRECT[function]
    return (
        f"static void {name}(int n, const int *chosen)\n{{\n"
        + "    int count;\n" * ("&count" in call)
        + "    MPI_Request *requests = take(n, chosen);\n"
        + "    until_complete(n, requests);\n" * is_prompt
        + f"    {call}\n    release(requests);\n}}\n"
    )


def _wait_of(name: str) -> str:
    return (
        f"static void {name}_of(int kind)\n{{\n    int *chosen = places_of(kind);\n"
        f"    {name}(n_places, chosen);\n    free(chosen);\n}}\n"
    )


def _send(name: str, function: str, *, is_started: bool, is_awaited: bool) -> str:
    begin = end = request = ""
    if is_started and is_awaited:
        request = ", start(SEND, 0)"
    elif is_started:
        begin, request = "    MPI_Request request;\n", ", &request"
        end = "    PMPI_Request_free(&request);\n"
    return (
        f"static void {name}(int comm, long bytes, int peer, long tag)\n{{\n{begin}"
        "    bytes = scaled(bytes);\n"
        f"    {function}(out, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm]"
        f"{request});\n{end}}}\n"
    )


def _collective(function: str, name: str, *, can_lower: bool) -> str:
    parameters, arguments = _COLLECTIVES[name]
    if function.endswith(_IN_PLACE):
        # Roots that scatter leave out where they would receive, all others what they would send.
        left_out = "{result}," if name == "scatter" else "out,"
        arguments = arguments.replace(left_out, "MPI_IN_PLACE,")
    is_started = function.startswith(_STARTED)
    result = "started[n_started - 1].in" if is_started else "in"
    begin = "" if name == "barrier" else "    bytes = scaled(bytes);\n"
    if is_started:
        begin += "    MPI_Request *request = start(COLLECTIVE, room);\n"
    if can_lower:
        bytes_, root = ("0" if word not in parameters else word for word in ("bytes", "root"))
        begin += (
            f"    if (lower_{name}) {{\n        lower_{name}(comm, {bytes_}, {root});\n"
            "        return;\n    }\n"
        )
    called = f"MPI_I{name}" if is_started else f"MPI_{name.capitalize()}"
    end = ", request" if is_started else ""
    return (
        f"static void {function}({parameters})\n{{\n{begin}"
        f"    {called}({arguments.format(result=result)}comms[comm]{end});\n}}\n"
    )
