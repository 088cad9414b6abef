"""The event stream, read with the public interface of the package `otf2`.

It is slow, but uses only documented functions. It replaces `archive` if libotf2 cannot be called
directly, and `verify` compares with it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import otf2

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from cpmodel_otf2.anchor import COPY_IT_AGAIN
from cpmodel_otf2.definitions import (
    POSTED_SOURCE,
    PROGRAM_REGION,
    UNDEFINED,
    Location,
    ProcessGroup,
    Raw,
    TraceDefinitions,
    is_any_text,
    resolve,
)
from cpmodel_otf2.events import BATCH_EVENTS, LEAVE, Batch, Message, Recorder, Request, Switch

Handler = Callable[[Recorder, Any, int], None]


class HighLevelArchive:
    """A trace; implements `EventSource`.

    Raises
    ------
    InputError
        If the trace cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.creator = ""
        try:
            with otf2.reader.open(str(path)) as trace:
                self.definitions: TraceDefinitions = resolve(_raw(trace.definitions))
        # The exceptions of the package are not documented.
        except Exception as error:
            raise self._broken(error) from error

    def batches(self, location: Location) -> Iterator[Batch]:
        """Yield the events of a location in order; see `EventSource`."""
        recorder = Recorder(self.definitions, location)
        try:
            with otf2.reader.open(str(self._path), batch_events=1000) as trace:
                chosen = [x for x in trace.definitions.locations if _ref(x) == location.reference]
                for position, (_, event) in enumerate(trace.events(chosen)):
                    handler = _HANDLERS.get(type(event).__name__)
                    if handler:
                        handler(recorder, event, position + 1)
                    if (position + 1) % BATCH_EVENTS == 0:
                        yield recorder.take()
        except Exception as error:
            raise self._broken(error) from error
        yield recorder.take()

    def findings(self) -> Sequence[Finding]:
        """Return no findings."""
        return ()

    def _broken(self, error: Exception) -> InputError:
        lines = str(error).splitlines() or [type(error).__name__]
        return InputError(f"{self._path}: {lines[0][:120]}", hint=COPY_IT_AGAIN)


def _ref(definition: Any, undefined: int = UNDEFINED) -> int:
    return undefined if definition is None else int(definition._ref)  # noqa: SLF001


def _raw(found: Any) -> Raw:
    """Return the definitions as stored."""
    raw = Raw()
    numbers: dict[str, int] = {}

    def text(words: str | None) -> int:
        if words is None:
            return UNDEFINED
        reference = numbers.setdefault(words, len(numbers))
        raw.strings[reference] = words
        return reference

    clock = found.clock_properties
    raw.clock = (clock.timer_resolution, clock.global_offset, clock.trace_length)
    for node in found.system_tree_nodes:
        raw.nodes[_ref(node)] = (text(node.name), text(node.class_name))
    for group in found.location_groups:
        kind = group.location_group_type.value
        node, creator = _ref(group.system_tree_parent), _ref(group.creating_location_group)
        raw.location_groups[_ref(group)] = (text(group.name), kind, node, creator)
    for place in found.locations:
        row = (text(place.name), place.type.value, place.number_of_events, _ref(place.group))
        raw.locations[_ref(place)] = row
    for region in found.regions:
        raw.regions[_ref(region)] = (
            text(region.name),
            text(region.canonical_name),
            region.region_role.value,
            region.paradigm.value,
            text(region.source_file),
            region.begin_line_number,
        )
    for known in found.cart_dimensions:
        raw.dimensions[_ref(known)] = (
            -known.size if known.cart_periodicity == otf2.CartPeriodicity.TRUE else known.size
        )
    for grid in found.cart_topologies:
        raw.grids[_ref(grid)] = tuple(_ref(x) for x in grid.dimensions)
    _add_communicators(raw, found, text)
    _add_metrics(raw, found, text)
    return raw


def _add_communicators(raw: Raw, found: Any, text: Callable[[str | None], int]) -> None:
    world: list[Any] = []
    for group in found.groups:
        kind, paradigm = group.group_type.value, group.paradigm.value
        if kind == otf2.GroupType.COMM_LOCATIONS.value and paradigm == otf2.Paradigm.MPI.value:
            world = world or list(group.members)
        # The package returns members of communicators as locations; the file stores ranks in the
        # world.
        if kind == otf2.GroupType.COMM_GROUP.value:
            members = tuple(world.index(m) if m in world else UNDEFINED for m in group.members)
        else:
            members = tuple(_ref(m) for m in group.members if hasattr(m, "_ref"))
        raw.groups[_ref(group)] = ProcessGroup(kind, paradigm, members)
    for comm in found.comms:
        remote = getattr(comm, "groupB", None)
        own = comm.group if remote is None else comm.groupA
        raw.comms[_ref(comm)] = (text(comm.name), _ref(own), remote and _ref(remote))


def _add_metrics(raw: Raw, found: Any, text: Callable[[str | None], int]) -> None:
    for member in found.metric_members:
        raw.members[_ref(member)] = (
            text(member.name),
            text(member.description),
            member.metric_mode.value,
            member.value_type.value,
            member.base.value,
            member.exponent,
            text(member.unit),
        )
    for known in found.metric_classes:
        raw.classes[_ref(known)] = tuple(_ref(member) for member in known.members)


def _at(recorder: Recorder) -> int:
    return len(recorder.calls) >> 1


def _message(kind: Message, peer: str) -> Handler:
    def add(recorder: Recorder, event: Any, position: int) -> None:
        recorder.messages += (
            int(kind), _at(recorder), position, event.time, getattr(event, peer),
            _ref(event.communicator), event.msg_tag, event.msg_length,
            getattr(event, "request_id", 0), _is_any(event),
        )  # fmt: skip

    return add


def _is_any(event: Any) -> bool:
    """Tell whether an attribute of a receive says that it takes messages of any source."""
    for attribute, value in (event.attributes or {}).items():
        if attribute.name == POSTED_SOURCE:
            return is_any_text(value) if isinstance(value, str) else value < 0
    return False


def _request(kind: Request) -> Handler:
    def add(recorder: Recorder, event: Any, position: int) -> None:
        about = int(kind), _at(recorder), position, event.time, event.request_id, _is_any(event)
        recorder.requests += about

    return add


def _collective(recorder: Recorder, event: Any, position: int) -> None:
    recorder.end_collective(
        _at(recorder), position, event.time, event.collective_op.value,
        _ref(event.communicator), event.root, event.size_sent, event.size_received,
        getattr(event, "request_id", 0),
    )  # fmt: skip


def _switch(kind: Switch, team: str, thread: str = "") -> Handler:
    def add(recorder: Recorder, event: Any, _position: int) -> None:
        number = getattr(event, thread) if thread else 0
        recorder.switches.append((int(kind), _at(recorder), _ref(getattr(event, team)), number))

    return add


def _access(put: int, got: int) -> Handler:
    def add(recorder: Recorder, event: Any, _position: int) -> None:
        recorder.accesses += (_at(recorder), put * event.bytes, got * event.bytes)

    return add


def _call(mark: int) -> Handler:
    def add(recorder: Recorder, event: Any, _position: int) -> None:
        recorder.calls += (event.time, _ref(event.region) + mark)

    return add


def _program_begin(recorder: Recorder, event: Any, _position: int) -> None:
    recorder.program = event.program_name or ""
    recorder.calls += (event.time, PROGRAM_REGION)


def _program_end(recorder: Recorder, event: Any, _position: int) -> None:
    recorder.calls += (event.time, PROGRAM_REGION + LEAVE)


def _metric(recorder: Recorder, event: Any, _position: int) -> None:
    metric = getattr(event.metric, "metric_class", event.metric)
    reference = _ref(metric)
    if metric is not event.metric or len(event.values) != recorder.members.get(reference):
        return
    bits = [
        ctypes.c_uint64.from_buffer(ctypes.c_double(value)).value
        if isinstance(value, float)
        else value & (2**64 - 1)
        for value in event.values
    ]
    recorder.samples[reference] += (_at(recorder), event.time, *bits)


def _begin(recorder: Recorder, event: Any, _position: int) -> None:
    recorder.begin_collective(event.time)


def _on_off(recorder: Recorder, event: Any, _position: int) -> None:
    recorder.pauses += (event.time, event.measurement_mode.value)


def _flush(recorder: Recorder, event: Any, _position: int) -> None:
    recorder.flushes += (event.time, event.stop_time)


def _sampled(recorder: Recorder, _event: Any, _position: int) -> None:
    recorder.sampled += 1


_HANDLERS: dict[str, Handler] = {
    "Enter": _call(0),
    "Leave": _call(LEAVE),
    "ProgramBegin": _program_begin,
    "ProgramEnd": _program_end,
    "MeasurementOnOff": _on_off,
    "BufferFlush": _flush,
    "Metric": _metric,
    "MpiSend": _message(Message.SEND, "receiver"),
    "MpiIsend": _message(Message.ISEND, "receiver"),
    "MpiRecv": _message(Message.RECV, "sender"),
    "MpiIrecv": _message(Message.IRECV, "sender"),
    "MpiIsendComplete": _request(Request.ISEND_COMPLETE),
    "MpiIrecvRequest": _request(Request.IRECV_POSTED),
    "MpiRequestTest": _request(Request.TESTED),
    "MpiRequestCancelled": _request(Request.CANCELLED),
    "NonBlockingCollectiveRequest": _request(Request.COLLECTIVE_POSTED),
    "MpiCollectiveBegin": _begin,
    "MpiCollectiveEnd": _collective,
    "NonBlockingCollectiveComplete": _collective,
    "RmaPut": _access(1, 0),
    "RmaGet": _access(0, 1),
    "ThreadTeamBegin": _switch(Switch.TEAM_BEGIN, "thread_team"),
    "ThreadTeamEnd": _switch(Switch.TEAM_END, "thread_team"),
    "ThreadCreate": _switch(Switch.CREATE, "thread_contingent", "sequence_count"),
    "ThreadBegin": _switch(Switch.BEGIN, "thread_contingent", "sequence_count"),
    "ThreadEnd": _switch(Switch.END, "thread_contingent", "sequence_count"),
    "CallingContextEnter": _sampled,
    "CallingContextSample": _sampled,
}
