"""Networks: the parameters of LogGP, and the algorithms of collective operations.

LogGP (Alexandrov, Ionescu, Schauser, Scheiman: LogGP, SPAA 1995) has a latency L, an overhead o of
the processor at each end of a message, a gap g between messages of a process, and a gap G per byte.
Messages beyond the eager limit wait for their receives, as S in LogGPS (Ino, Fujimoto, Hagihara:
LogGPS, PPoPP 2001).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from callpath_modeler.errors import UsageError, did_you_mean, nearest_or_all
from callpath_modeler.printable import printable, shortened
from callpath_modeler.support.toml import TomlFormat
from callpath_modeler.units import base_and_factor, parse_quantity
from cpmodel_commspec.collective_messages import ALGORITHMS

PARAMETERS = ("latency", "overhead", "gap", "gap_per_byte")
"""Names of the parameters in seconds."""
_LONGEST_SECONDS = 3600.0
_LARGEST_EAGER = 2**62
_MOST_BYTES = 1 << 20
"""Bytes of a file; platforms are short."""


@dataclass(frozen=True, slots=True)
class Platform:
    """A network.

    Attributes
    ----------
    name : as outputs show it
    latency, overhead, gap : seconds, L, o and g
    gap_per_byte : seconds per byte, G
    eager : bytes of the largest message that does not wait for its receive
    algorithms : of collective operations, by name; others have the usual one for their size
    source : where the parameters come from
    """

    name: str
    latency: float
    overhead: float
    gap: float
    gap_per_byte: float
    eager: int
    algorithms: Mapping[str, str] = field(default_factory=dict)
    source: str = ""


PRESETS = {
    one.name: one
    for one in (
        Platform(
            "infiniband", 5.4e-6, 1.0e-6, 1.0e-6, 0.5e-9, 8192,
            source="Netgauge on Tukey (MVAPICH, InfiniBand, Argonne), tests/ng-mpi-tukey.dat of "
            "CODES; L without both overheads",
        ),
        Platform(
            "loggopsim", 2.5e-6, 1.5e-6, 1.0e-6, 6e-9, 65535,
            source="defaults of LogGOPSim (Hoefler, Schneider, Lumsdaine: LogGOPSim, HPDC 2010)",
        ),
    )
}  # fmt: skip
DEFAULT = "infiniband"


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    latency: float | str
    overhead: float | str
    gap: float | str
    gap_per_byte: float | str
    eager: int | str
    algorithms: dict[str, str] = {}
    source: str = ""


_SYMBOLS = {"L": "latency", "o": "overhead", "g": "gap", "G": "gap_per_byte", "S": "eager"}
_EXAMPLES = {
    "latency": 'latency = "1.5 us"',
    "overhead": 'overhead = "0.3 us"',
    "gap": 'gap = "0.1 us"',
    "gap_per_byte": 'gap_per_byte = "0.08 ns"',
    "eager": "eager = 16384",
    "algorithms": 'algorithms = { alltoall = "pairwise" }',
    "source": 'source = "measured with Netgauge"',
}
_FORMAT = TomlFormat(_Document, _EXAMPLES, UsageError)
_INLINE = "L=1.5us,o=0.3us,g=0.1us,G=0.08ns,S=16384"


def platform_of(text: str) -> Platform:
    """Return the platform that an option names.

    Parameters
    ----------
    text : a name of `PRESETS`, parameters such as ``L=1.5us,o=0.3us,g=0.1us,G=0.08ns,S=16384``, or
        the path of a TOML file

    Raises
    ------
    UsageError
        If there is no such platform, or if a value is not possible.
    """
    if text in PRESETS:
        return PRESETS[text]
    path = Path(text)
    if "=" in text and not path.exists():
        return _inline(text)
    if not path.suffix and not path.exists():
        raise UsageError(
            f"no platform {shortened(printable(text))!r}; {nearest_or_all(text, PRESETS)}",
            hint=f"or give a TOML file, or {_INLINE}",
        )
    return _read(path)


def _inline(text: str) -> Platform:
    found: dict[str, str] = {}
    for part in text.split(","):
        symbol, equals, value = (word.strip() for word in part.partition("="))
        if not equals or symbol not in _SYMBOLS or symbol in found:
            raise UsageError(
                f"--platform: {shortened(printable(part))!r} is no parameter, or is there twice",
                hint=f"e.g. --platform {_INLINE}",
            )
        found[symbol] = value
    missing = [symbol for symbol in _SYMBOLS if symbol not in found]
    if missing:
        raise UsageError(
            f"--platform: {', '.join(missing)} missing", hint=f"e.g. --platform {_INLINE}"
        )
    values = {_SYMBOLS[symbol]: value for symbol, value in found.items()}
    try:
        seconds = {name: _seconds(values[name]) for name in _SYMBOLS.values() if name != "eager"}
        return _platform(shortened(printable(text)), seconds, _bytes(values["eager"]))
    except ValueError as cause:
        raise UsageError(f"--platform: {cause}", hint=f"e.g. --platform {_INLINE}") from None


def _read(path: Path) -> Platform:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as cause:
        raise UsageError(
            f"{path}: {cause.strerror}",
            hint=f"presets are {', '.join(PRESETS)}; or give a TOML file",
        ) from cause
    if len(content) > _MOST_BYTES:
        raise UsageError(f"{path}: longer than 1 MiB", hint="give a TOML file with a platform")
    file_ = _FORMAT.parse(content, str(path))
    told = file_.document
    try:
        seconds = {}
        for key in PARAMETERS:
            seconds[key] = _seconds(getattr(told, key))
        key = "eager"
        eager = _bytes(told.eager)
    except ValueError as cause:
        file_.refuse((key,), f"{key}: {cause}", f"e.g. {_EXAMPLES[key]}")
    for name, chosen in told.algorithms.items():
        if name not in ALGORITHMS:
            file_.refuse(
                ("algorithms", name),
                f"no collective operation {printable(name)!r}",
                did_you_mean(name, ALGORITHMS) or f"one of {', '.join(ALGORITHMS)}",
            )
        if chosen not in ALGORITHMS[name]:
            file_.refuse(
                ("algorithms", name),
                f"no algorithm {printable(chosen)!r} of {name}",
                f"one of {', '.join(ALGORITHMS[name])}",
            )
    made = _platform(printable(path.stem), seconds, eager)
    return replace(
        made, algorithms=dict(told.algorithms), source=shortened(printable(told.source), 200)
    )


def _platform(name: str, seconds: Mapping[str, float], eager: int) -> Platform:
    latency, overhead, gap, per_byte = (seconds[key] for key in PARAMETERS)
    return Platform(name, latency, overhead, gap, per_byte, eager)


def _seconds(value: float | str) -> float:
    """Return seconds; a number without a unit is in seconds.

    Raises
    ------
    ValueError
        If it is no time, or outside of 0 to one hour.
    """
    return _amount(value, "s", "time", _LONGEST_SECONDS, "one hour")


def _bytes(value: float | str) -> int:
    """Return a number of bytes.

    Raises
    ------
    ValueError
        If it is none, or outside of 0 to 2^62.
    """
    return int(_amount(value, "B", "number of bytes", _LARGEST_EAGER, "2^62 bytes"))


def _amount(value: float | str, base: str, what: str, most: float, limit: str) -> float:
    """Return a number in a base unit; it has that unit if it states none."""
    number, factor = float(0 if isinstance(value, str) else value), 1.0
    if isinstance(value, str):
        number, stated = parse_quantity(value)
        unit, factor = base_and_factor(stated or base)
        if unit != base:
            raise ValueError(f"{shortened(value)!r} is no {what}")
    amount = number * factor
    if not math.isfinite(amount) or not 0 <= amount <= most:
        raise ValueError(f"{shortened(str(value))} is not between 0 and {limit}")
    return amount
