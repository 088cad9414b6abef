"""Functions and callbacks of libotf2, loaded from the wheel of the package `otf2`.

The package creates several objects for every event. Direct calls with integer callbacks are many
times as fast.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from callpath_modeler.errors import PluginError
from cpmodel_otf2.definitions import PROGRAM_REGION, ProcessGroup, Raw
from cpmodel_otf2.events import LEAVE, Message, Recorder, Request, Switch

_Handle = ctypes.c_void_p
_U8, _U32, _U64, _I64 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64
_Text = ctypes.c_char_p
_Code = ctypes.c_int

# Unused arguments are cheapest as truth values, because these objects exist already.
_UNSEEN = ctypes.c_bool
_EVENT = (_Code, _UNSEEN, _U64, _UNSEEN, _UNSEEN, _UNSEEN)
"""First arguments of every event callback: location, time, position, user data, attributes."""
_ORDERED = (_Code, _UNSEEN, _U64, _U64, _UNSEEN, _UNSEEN)
"""The same arguments, with the position of the event in its location."""
_ATTRIBUTED = (_Code, _UNSEEN, _U64, _U64, _UNSEEN, _Handle)
"""The same arguments, with the attributes of the event."""

EVENTS: dict[str, tuple[Any, ...]] = {
    "Enter": (*_EVENT, _U32),
    "Leave": (*_EVENT, _U32),
    "ProgramBegin": (*_EVENT, _U32, _U32, _Handle),
    "ProgramEnd": (*_EVENT, _I64),
    "MeasurementOnOff": (*_EVENT, _U8),
    "BufferFlush": (*_EVENT, _U64),
    "Metric": (*_EVENT, _U32, _U8, _Handle, ctypes.POINTER(_U64)),
    "MpiSend": (*_ORDERED, _U32, _U32, _U32, _U64),
    "MpiIsend": (*_ORDERED, _U32, _U32, _U32, _U64, _U64),
    "MpiRecv": (*_ATTRIBUTED, _U32, _U32, _U32, _U64),
    "MpiIrecv": (*_ORDERED, _U32, _U32, _U32, _U64, _U64),
    "MpiIsendComplete": (*_ORDERED, _U64),
    "MpiIrecvRequest": (*_ATTRIBUTED, _U64),
    "MpiRequestTest": (*_ORDERED, _U64),
    "MpiRequestCancelled": (*_ORDERED, _U64),
    "NonBlockingCollectiveRequest": (*_ORDERED, _U64),
    "MpiCollectiveBegin": _ORDERED,
    "MpiCollectiveEnd": (*_ORDERED, _U8, _U32, _U32, _U64, _U64),
    "NonBlockingCollectiveComplete": (*_ORDERED, _U8, _U32, _U32, _U64, _U64, _U64),
    "RmaPut": (*_EVENT, _U32, _U32, _U64, _U64),
    "RmaGet": (*_EVENT, _U32, _U32, _U64, _U64),
    "ThreadTeamBegin": (*_EVENT, _U32),
    "ThreadTeamEnd": (*_EVENT, _U32),
    "ThreadCreate": (*_EVENT, _U32, _U64),
    "ThreadBegin": (*_EVENT, _U32, _U64),
    "ThreadEnd": (*_EVENT, _U32, _U64),
    "CallingContextEnter": (*_EVENT, _U32, _U32),
    "CallingContextSample": (*_EVENT, _U32, _U32, _U32),
}
"""Arguments of event callbacks, by the name of the event."""

DEFINITIONS: dict[str, tuple[Any, ...]] = {
    "Attribute": (_Code, _UNSEEN, _U32, _U32, _U32, _U8),
    "CartDimension": (_Code, _UNSEEN, _U32, _U32, _U32, _U8),
    "CartTopology": (_Code, _UNSEEN, _U32, _U32, _U32, _U8, ctypes.POINTER(_U32)),
    "ClockProperties": (_Code, _UNSEEN, _U64, _U64, _U64, _U64),
    "String": (_Code, _UNSEEN, _U32, _Text),
    "SystemTreeNode": (_Code, _UNSEEN, _U32, _U32, _U32, _U32),
    "LocationGroup": (_Code, _UNSEEN, _U32, _U32, _U8, _U32, _U32),
    "Location": (_Code, _UNSEEN, _U64, _U32, _U8, _U64, _U32),
    "Region": (_Code, _UNSEEN, _U32, _U32, _U32, _U32, _U8, _U8, _U32, _U32, _U32, _U32),
    "Group": (_Code, _UNSEEN, _U32, _U32, _U8, _U8, _U32, _U32, ctypes.POINTER(_U64)),
    "Comm": (_Code, _UNSEEN, _U32, _U32, _U32, _U32, _U32),
    "InterComm": (_Code, _UNSEEN, _U32, _U32, _U32, _U32, _U32, _U32),
    "MetricMember": (_Code, _UNSEEN, _U32, _U32, _U32, _U8, _U8, _U8, _U8, _I64, _U32),
    "MetricClass": (_Code, _UNSEEN, _U32, _U8, ctypes.POINTER(_U32), _U8, _U8),
}
"""Arguments of definition callbacks, by the name of the definition."""

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "Reader_Open": (_Handle, _Text),
    "Reader_Close": (_Code, _Handle),
    "Reader_SetSerialCollectiveCallbacks": (_Code, _Handle),
    "Reader_GetChunkSize": (_Code, _Handle, _Handle, _Handle),
    "Reader_GetCompression": (_Code, _Handle, _Handle),
    "Reader_GetCreator": (_Code, _Handle, ctypes.POINTER(_Handle)),
    "Reader_GetGlobalDefReader": (_Handle, _Handle),
    "GlobalDefReaderCallbacks_New": (_Handle,),
    "GlobalDefReaderCallbacks_Delete": (None, _Handle),
    "Reader_RegisterGlobalDefCallbacks": (_Code, _Handle, _Handle, _Handle, _Handle),
    "Reader_ReadGlobalDefinitions": (_Code, _Handle, _Handle, _U64, _Handle),
    "Reader_CloseGlobalDefReader": (_Code, _Handle, _Handle),
    "Reader_SelectLocation": (_Code, _Handle, _U64),
    "Reader_OpenDefFiles": (_Code, _Handle),
    "Reader_CloseDefFiles": (_Code, _Handle),
    "Reader_GetDefReader": (_Handle, _Handle, _U64),
    "Reader_ReadLocalDefinitions": (_Code, _Handle, _Handle, _U64, _Handle),
    "Reader_CloseDefReader": (_Code, _Handle, _Handle),
    "Reader_OpenEvtFiles": (_Code, _Handle),
    "Reader_CloseEvtFiles": (_Code, _Handle),
    "Reader_GetEvtReader": (_Handle, _Handle, _U64),
    "Reader_CloseEvtReader": (_Code, _Handle, _Handle),
    "EvtReaderCallbacks_New": (_Handle,),
    "EvtReaderCallbacks_Delete": (None, _Handle),
    "Reader_RegisterEvtCallbacks": (_Code, _Handle, _Handle, _Handle, _Handle),
    "Reader_ReadLocalEvents": (_Code, _Handle, _Handle, _U64, _Handle),
    "AttributeList_TestAttributeByID": (ctypes.c_bool, _Handle, _U32),
    "AttributeList_GetAttributeByID": (
        *(_Code, _Handle, _U32),
        *(ctypes.POINTER(_U8), ctypes.POINTER(_U64)),
    ),
    "Error_GetDescription": (_Text, _Code),
    "Error_RegisterCallback": (_Handle, _Handle, _Handle),
}

_Complaint = ctypes.CFUNCTYPE(_Code, _Handle, _Text, _U64, _Text, _Code, _Text, _Handle)


class InternalsChangedError(Exception):
    """Error: the package `otf2` exists, but this module cannot access its library."""


class Library:
    """The loaded libotf2.

    Attributes
    ----------
    functions : functions by their names without ``OTF2_``; a returned code of 0 means success
    """

    def __init__(self, handle: ctypes.CDLL) -> None:
        self.functions: Any = SimpleNamespace()
        for name, (result, *arguments) in _FUNCTIONS.items():
            setattr(self.functions, name, self._bound(handle, name, result, arguments))
        self._setters: dict[str, tuple[Any, Any]] = {}
        for kind, table in (("GlobalDefReader", DEFINITIONS), ("EvtReader", EVENTS)):
            for name, signature in table.items():
                form = ctypes.CFUNCTYPE(*signature)
                setter = f"{kind}Callbacks_Set{name}Callback"
                bound = self._bound(handle, setter, _Code, [_Handle, form])
                self._setters[f"{kind}.{name}"] = (form, bound)

    @staticmethod
    def _bound(handle: ctypes.CDLL, name: str, result: Any, arguments: list[Any]) -> Any:
        try:
            function = handle[f"OTF2_{name}"]
        except AttributeError as missing:
            raise InternalsChangedError(str(missing)) from None
        function.restype, function.argtypes = result, arguments
        return function

    def set_callbacks(
        self, kind: str, table: int, callbacks: dict[str, Callable[..., int]]
    ) -> list[Any]:
        """Set `callbacks` by name in a table of the library.

        Returns
        -------
        Objects that must stay alive as long as the table is used
        """
        kept = []
        for name, callback in callbacks.items():
            form, setter = self._setters[f"{kind}.{name}"]
            kept.append(form(callback))
            setter(table, kept[-1])
        return kept

    def attribute(self, attributes: int, reference: int) -> tuple[int, int]:
        """Return the type and the bits of an attribute of an event; (0, 0) without it."""
        functions = self.functions
        if not functions.AttributeList_TestAttributeByID(attributes, reference):
            return 0, 0
        kind, bits = _U8(), _U64()
        code = functions.AttributeList_GetAttributeByID(
            attributes, reference, ctypes.byref(kind), ctypes.byref(bits)
        )
        return (0, 0) if code else (kind.value, bits.value)

    def describe(self, code: int) -> str:
        """Return the description of an error code."""
        text: bytes | None = self.functions.Error_GetDescription(code)
        return text.decode(errors="replace").lower() if text else f"error {code}"

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Prevent the library from writing to stderr."""
        complaint = _Complaint(lambda *arguments: int(arguments[4]))
        before = self.functions.Error_RegisterCallback(complaint, None)
        try:
            yield
        finally:
            self.functions.Error_RegisterCallback(before, None)


@contextmanager
def raising() -> Iterator[None]:
    """Raise exceptions of callbacks after the library call in which they occurred.

    Exceptions, including Ctrl-C, cannot pass through C: Python would print and drop them.
    """
    raised: list[BaseException] = []
    hook = sys.unraisablehook

    def collect(unraisable: Any) -> None:
        if "ctypes callback" in (unraisable.err_msg or "") and unraisable.exc_value:
            raised.append(unraisable.exc_value)
        else:
            hook(unraisable)

    sys.unraisablehook = collect
    try:
        yield
    finally:
        sys.unraisablehook = hook
    if raised:
        raise raised[0]


def load() -> Library:
    """Load the library.

    Raises
    ------
    PluginError
        If the package `otf2` cannot be loaded on this machine.
    InternalsChangedError
        If it can be loaded, but differs from the releases that this module supports.
    """
    try:
        import _otf2
    except (ImportError, OSError) as cause:
        raise PluginError(
            f"traces cannot be read, because the package otf2 does not load: {cause}",
            hint="install a wheel of otf2 for this platform, or exclude the traces",
        ) from cause
    try:
        path = _otf2.Config.conf.lib._name  # noqa: SLF001 - the handle knows where it is from
        # Unlike CDLL, PyDLL keeps the interpreter lock, so callbacks need not acquire it each time.
        return Library(ctypes.PyDLL(path))
    except (AttributeError, OSError) as cause:
        raise InternalsChangedError(str(cause)) from cause


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

    def of_access(put: int, get: int) -> Callable[..., int]:
        def add(
            _l: bool, _t: int, _p: bool, _u: bool, _a: bool, _w: int, _r: int, size: int, _i: int
        ) -> int:
            access((len(calls) >> 1, put * size, get * size))
            return 0

        return add

    return {
        "MpiCollectiveBegin": begin,
        "MpiCollectiveEnd": end,
        "NonBlockingCollectiveComplete": end,
        "RmaPut": of_access(1, 0),
        "RmaGet": of_access(0, 1),
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
