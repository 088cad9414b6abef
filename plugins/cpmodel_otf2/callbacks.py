"""Callbacks of libotf2 for events and definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cpmodel_otf2.definitions import PROGRAM_REGION, ProcessGroup, Raw
from cpmodel_otf2.events import LEAVE, Message, Recorder, Request, Switch


def event_callbacks(
    recorder: Recorder, strings: Mapping[int, str], is_any: Callable[[int | None], bool]
) -> dict[str, Callable[..., int]]:
    """Return the callback for each event. Unused arguments have no cost.

    Parameters
    ----------
    is_any : returns from the attributes of a receive whether it takes messages of any source
    """
    return {
        **_call_callbacks(recorder, strings),
        **_message_callbacks(recorder, is_any),
        **_collective_callbacks(recorder),
        **_thread_callbacks(recorder),
        **_sample_callbacks(recorder),
    }


def _call_callbacks(
    recorder: Recorder, strings: Mapping[int, str]
) -> dict[str, Callable[..., int]]:
    call = recorder.calls.extend
    pause, flush = recorder.pauses.extend, recorder.flushes.extend

    def enter(_l: bool, time: int, _p: bool, _u: bool, _a: bool, region: int) -> int:
        call((time, region))
        return 0

    def leave(_l: bool, time: int, _p: bool, _u: bool, _a: bool, region: int) -> int:
        call((time, region + LEAVE))
        return 0

    def program_begin(
        _l: bool, time: int, _p: bool, _u: bool, _a: bool, name: int, _count: int, _words: Any
    ) -> int:
        recorder.program = strings.get(name, "")
        call((time, PROGRAM_REGION))
        return 0

    def program_end(_l: bool, time: int, *_: Any) -> int:
        call((time, PROGRAM_REGION + LEAVE))
        return 0

    def on_off(_l: bool, time: int, _p: bool, _u: bool, _a: bool, mode: int) -> int:
        pause((time, mode))
        return 0

    def buffer_flush(_l: bool, time: int, _p: bool, _u: bool, _a: bool, stop: int) -> int:
        flush((time, stop))
        return 0

    return {
        "Enter": enter,
        "Leave": leave,
        "ProgramBegin": program_begin,
        "ProgramEnd": program_end,
        "MeasurementOnOff": on_off,
        "BufferFlush": buffer_flush,
    }


def _message_callbacks(
    recorder: Recorder, is_any: Callable[[int | None], bool]
) -> dict[str, Callable[..., int]]:
    received, posted = int(Message.RECV), int(Request.IRECV_POSTED)
    message, request, calls = recorder.messages.extend, recorder.requests.extend, recorder.calls

    def of_message(kind: Message) -> Callable[..., int]:
        number = int(kind)

        def add(
            _l: bool, time: int, position: int, _u: bool, _a: bool,
            peer: int, comm: int, tag: int, size: int, of: int = 0,
        ) -> int:  # fmt: skip
            message((number, len(calls) >> 1, position, time, peer, comm, tag, size, of, 0))
            return 0

        return add

    def receive(
        _l: bool, time: int, position: int, _u: bool, attributes: int | None,
        peer: int, comm: int, tag: int, size: int,
    ) -> int:  # fmt: skip
        at, wild = len(calls) >> 1, is_any(attributes)
        message((received, at, position, time, peer, comm, tag, size, 0, wild))
        return 0

    def post(_l: bool, time: int, position: int, _u: bool, attributes: int | None, of: int) -> int:
        request((posted, len(calls) >> 1, position, time, of, is_any(attributes)))
        return 0

    def of_request(kind: Request) -> Callable[..., int]:
        number = int(kind)

        def add(_l: bool, time: int, position: int, _u: bool, _a: bool, of: int) -> int:
            request((number, len(calls) >> 1, position, time, of, 0))
            return 0

        return add

    return {
        "MpiSend": of_message(Message.SEND),
        "MpiIsend": of_message(Message.ISEND),
        "MpiRecv": receive,
        "MpiIrecv": of_message(Message.IRECV),
        "MpiIsendComplete": of_request(Request.ISEND_COMPLETE),
        "MpiIrecvRequest": post,
        "MpiRequestTest": of_request(Request.TESTED),
        "MpiRequestCancelled": of_request(Request.CANCELLED),
        "NonBlockingCollectiveRequest": of_request(Request.COLLECTIVE_POSTED),
    }


def _collective_callbacks(recorder: Recorder) -> dict[str, Callable[..., int]]:
    calls, access = recorder.calls, recorder.accesses.extend

    def begin(_l: bool, time: int, *_: Any) -> int:
        recorder.begin_collective(time)
        return 0

    def end(
        _l: bool, time: int, position: int, _u: bool, _a: bool,
        operation: int, comm: int, root: int, sent: int, received: int, of: int = 0,
    ) -> int:  # fmt: skip
        at = len(calls) >> 1
        recorder.end_collective(at, position, time, operation, comm, root, sent, received, of)
        return 0

    def put(
        _l: bool, _t: int, _p: bool, _u: bool, _a: bool, _w: int, _r: int, size: int, _i: int
    ) -> int:
        access((len(calls) >> 1, size, 0))
        return 0

    def get(
        _l: bool, _t: int, _p: bool, _u: bool, _a: bool, _w: int, _r: int, size: int, _i: int
    ) -> int:
        access((len(calls) >> 1, 0, size))
        return 0

    return {
        "MpiCollectiveBegin": begin,
        "MpiCollectiveEnd": end,
        "NonBlockingCollectiveComplete": end,
        "RmaPut": put,
        "RmaGet": get,
    }


def _thread_callbacks(recorder: Recorder) -> dict[str, Callable[..., int]]:
    calls, switches = recorder.calls, recorder.switches

    def of_switch(kind: Switch) -> Callable[..., int]:
        number = int(kind)

        def add(_l: bool, _t: int, _p: bool, _u: bool, _a: bool, team: int, thread: int = 0) -> int:
            switches.append((number, len(calls) >> 1, team, thread))
            return 0

        return add

    return {
        "ThreadTeamBegin": of_switch(Switch.TEAM_BEGIN),
        "ThreadTeamEnd": of_switch(Switch.TEAM_END),
        "ThreadCreate": of_switch(Switch.CREATE),
        "ThreadBegin": of_switch(Switch.BEGIN),
        "ThreadEnd": of_switch(Switch.END),
    }


def _sample_callbacks(recorder: Recorder) -> dict[str, Callable[..., int]]:
    calls, samples, widths = recorder.calls, recorder.samples, recorder.members

    def metric(
        _l: bool, time: int, _p: bool, _u: bool, _a: bool,
        reference: int, count: int, _types: Any, values: Any,
    ) -> int:  # fmt: skip
        if widths.get(reference) == count:
            rows = samples[reference]
            rows += (len(calls) >> 1, time)
            rows += values[:count]
        return 0

    def sampled(*_: Any) -> int:
        recorder.sampled += 1
        return 0

    return {"Metric": metric, "CallingContextEnter": sampled, "CallingContextSample": sampled}


def definition_callbacks(raw: Raw) -> dict[str, Callable[..., int]]:
    """Return the callback for each definition."""

    def put(table: dict[int, Any], reference: int, value: Any) -> int:
        table[reference] = value
        return 0

    def clock(_: bool, *values: int) -> int:
        raw.clock = values
        return 0

    return {
        "Attribute": lambda _, ref, name, _about, _kind: put(raw.attributes, ref, name),
        "CartDimension": lambda _, ref, _name, size, is_periodic: put(
            raw.dimensions, ref, -size if is_periodic else size
        ),
        "CartTopology": lambda _, ref, _name, _comm, count, dimensions: put(
            raw.grids, ref, tuple(dimensions[:count])
        ),
        "ClockProperties": clock,
        "String": lambda _, ref, text: put(
            raw.strings, ref, (text or b"").decode(errors="replace")
        ),
        "SystemTreeNode": lambda _, ref, name, kind, _above: put(raw.nodes, ref, (name, kind)),
        "LocationGroup": lambda _, ref, name, kind, node, creator: put(
            raw.location_groups, ref, (name, kind, node, creator)
        ),
        "Location": lambda _, ref, name, kind, events, group: put(
            raw.locations, ref, (name, kind, events, group)
        ),
        "Region": lambda _u, ref, name, canonical, _about, role, paradigm, _flags, file, line, _: (
            put(raw.regions, ref, (name, canonical, role, paradigm, file, line))
        ),
        "Group": lambda _, ref, _name, kind, paradigm, _flags, count, members: put(
            raw.groups, ref, ProcessGroup(kind, paradigm, tuple(members[:count]))
        ),
        "Comm": lambda _, ref, name, group, *_rest: put(raw.comms, ref, (name, group, None)),
        "InterComm": lambda _, ref, name, own, remote, *_rest: put(
            raw.comms, ref, (name, own, remote)
        ),
        "MetricMember": lambda _, ref, name, about, _kind, mode, type_, base, exponent, unit: put(
            raw.members, ref, (name, about, mode, type_, base, exponent, unit)
        ),
        "MetricClass": lambda _, ref, count, members, *_rest: put(
            raw.classes, ref, tuple(members[:count])
        ),
    }
