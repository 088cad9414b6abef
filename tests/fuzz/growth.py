"""Mutations that raise the cost of an input: they repeat, number, widen, nest and enlarge parts."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from fuzz.forms import Single, members_of
from fuzz.mutate import with_word

Growth = Callable[[bytes, random.Random, int], bytes]
"""Function that changes plain bytes, with a generator, up to about a size."""

_COUNTS = (2, 3, 8, 20, 100, 500, 2000, 10000)
_NUMBER = re.compile(rb"\d+")
_WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*")
_DELIMITERS = b",;|\t "


def grown(form: Single, content: bytes, rng: random.Random, largest: int) -> bytes:
    """Return an input that may cost more than `content`, of at most `largest` bytes."""
    members = members_of(form, content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if members is None:
            content = _changed(content, rng, largest)
            continue
        name = rng.choice(list(members))
        changed = _changed(members[name], rng, 8 * largest)
        if form.copies and rng.random() < 0.2:
            members |= {f"{name}{k}": changed for k in range(rng.choice(_COUNTS[:5]))}
        else:
            members[name] = changed
    packed = content if members is None else form.packed(members)
    return packed if len(packed) <= largest else content


def _changed(content: bytes, rng: random.Random, largest: int) -> bytes:
    growths: tuple[Growth, ...] = (_repeated, _numbered, _widened, _nested, _enlarged, _worded)
    value, encode = _parsed(content)
    if value is not None and rng.random() < 0.7:
        try:
            _grow_value(value, rng, largest)
            changed = encode(value)
        except (RecursionError, ValueError):
            return content
    else:
        changed = rng.choice(growths)(content, rng, largest)
    return changed if len(changed) <= largest else content


def _parsed(content: bytes) -> tuple[Any, Callable[[Any], bytes]]:
    """Return the value of JSON or MessagePack, and the function that writes it; else None."""
    codec = msgspec.json if content[:1] in (b"{", b"[") else msgspec.msgpack
    try:
        value = codec.decode(content)
    except (ValueError, RecursionError):
        return None, codec.encode
    return (value if isinstance(value, dict | list) else None), codec.encode


def _containers(value: Any) -> Iterator[Any]:
    """Yield the lists and objects in a value, but no more than 10,000."""
    waiting = [value]
    for _ in range(10_000):
        if not waiting:
            return
        found = waiting.pop()
        yield found
        held = found.values() if isinstance(found, dict) else found
        waiting += [each for each in held if isinstance(each, dict | list)]


def _grow_value(value: Any, rng: random.Random, largest: int) -> None:
    """Grow a part of a JSON value in place."""
    found = rng.choice(list(_containers(value)))
    keys = list(found) if isinstance(found, dict) else list(range(len(found)))
    if not keys:
        return
    key = rng.choice(keys)
    if isinstance(found[key], bytes):
        found[key] *= rng.choice((2, 8, 100, 5000))
        return
    text = json.dumps(found[key], default=str)
    count = min(rng.choice(_COUNTS), max(1, largest // (len(text) + 8)))
    kind = rng.randrange(5)
    if kind == 0 and isinstance(found[key], int | float):
        found[key] = rng.choice((count, 10 * count, 10**6, 10**9, 2**62))
    elif kind == 1:
        for _ in range(min(count, 500)):
            found[key] = [found[key]] if rng.random() < 0.7 else {"a": found[key]}
    elif kind == 2 and isinstance(found, dict):
        found |= {f"{key}{k}": found[key] for k in range(count)}
    elif isinstance(found, list):
        # Copies of an entry have own names or own keys.
        found += [json.loads(_with_number(text, rng, k)) for k in range(count)]


def _with_number(text: str, rng: random.Random, number: int) -> str:
    strings = list(re.finditer(r'"([^"\\]+)"', text))
    if not strings or rng.random() < 0.1:
        return text
    end = strings[number % len(strings) if len(strings) < 3 else -1].end() - 1
    if rng.random() < 0.5:
        end = strings[0].end() - 1
    return f"{text[:end]}{number}{text[end:]}"


def _slice(content: bytes, rng: random.Random) -> tuple[int, int]:
    """Return a part of the content: some lines, or any bytes."""
    if rng.random() < 0.6 and content.count(b"\n") > 1:
        ends = [found.end() for found in re.finditer(rb"\n", content)]
        first = rng.randrange(len(ends) - 1)
        return ends[first], ends[min(len(ends) - 1, first + rng.choice((1, 1, 2, 5)))]
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.choice((1, 2, 4, 8, 16, 64, 256)))


def _repeated(content: bytes, rng: random.Random, largest: int) -> bytes:
    start, end = _slice(content, rng)
    part = content[start:end]
    count = min(rng.choice(_COUNTS), (largest - len(content)) // max(1, len(part)))
    return content[:end] + part * max(0, count) + content[end:]


def _numbered(content: bytes, rng: random.Random, largest: int) -> bytes:
    """Repeat a part with a number behind one of its words or in place of its number."""
    start, end = _slice(content, rng)
    part = content[start:end]
    places = [*_WORD.finditer(part), *_NUMBER.finditer(part)]
    if not places:
        return content
    at = rng.choice(places)
    first = at.end() if rng.random() < 0.7 else at.start()
    count = min(rng.choice(_COUNTS), (largest - len(content)) // (len(part) + 5))
    copies = (part[:first] + b"%d" % k + part[at.end() :] for k in range(1, count + 1))
    return content[:end] + b"".join(copies) + content[end:]


def _widened(content: bytes, rng: random.Random, largest: int) -> bytes:
    """Repeat a cell of each line; the first line numbers its copies."""
    lines = content.split(b"\n")
    delimiter = bytes([max(_DELIMITERS, key=lines[0].count)])
    width = max(1, lines[0].count(delimiter))
    at, room = rng.randrange(width + 1), (largest - len(content)) // (8 * max(1, len(lines)))
    count = min(rng.choice(_COUNTS), room)
    made = []
    for number, line in enumerate(lines):
        cells = line.split(delimiter)
        if at < len(cells) and line:
            cell = cells[at]
            cells += [cell + (b"" if number else b"%d" % k) for k in range(count)]
        made.append(delimiter.join(cells))
    return b"\n".join(made)


def _nested(content: bytes, rng: random.Random, largest: int) -> bytes:
    """Enclose a part in many brackets or tags."""
    start, end = _slice(content, rng)
    left, right = rng.choice(
        ((b"[", b"]"), (b"{", b"}"), (b"(", b")"), (b"<a>", b"</a>"), (b"a.", b""), (b"a/", b""))
    )
    count = min(rng.choice(_COUNTS), (largest - len(content)) // (len(left + right)))
    return b"".join((content[:start], left * max(0, count), content[start:end],
                     right * max(0, count), content[end:]))  # fmt: skip


def _enlarged(content: bytes, rng: random.Random, _largest: int) -> bytes:
    """Enlarge a number in a text."""
    numbers = list(_NUMBER.finditer(content[: 1 << 16]))
    if not numbers:
        return content
    at = rng.choice(numbers)
    larger = rng.choice((int(at[0][:18]) * 10, 1000, 10**5, 10**6, 2**31 - 1, 10**12))
    return content[: at.start()] + b"%d" % larger + content[at.end() :]


def _worded(content: bytes, rng: random.Random, _largest: int) -> bytes:
    return with_word(content, rng)
