"""Mutation of inputs member by member, so that checksums and packing do not protect readers."""

from __future__ import annotations

import random
from collections.abc import Callable

from fuzz.forms import Members, Single, gunzipped, members_of

Mutate = Callable[[bytes, int], bytes]
"""Function that mutates plain bytes, up to a size."""

_GZIP = b"\x1f\x8b"
_WORDS = (
    0,
    1,
    0x7F,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0xFFFFFFFF,
    10**9,
    2**40,
    2**63 - 1,
    2**64 - 1,
)


def mutated(form: Single, content: bytes, size: int, seed: int, mutate: Mutate) -> bytes:
    """Return a mutated input.

    Parameters
    ----------
    size : maximum bytes
    seed : seed that selects the member and the mutation
    mutate : function of the fuzzer
    """
    rng = random.Random(seed)
    members = members_of(form, content)
    # The packing itself is foreign input as well.
    if members is None or rng.random() < 0.05:
        return bytes(mutate(content, size))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _mutate_one(members, rng, size, mutate)
    packed = form.packed(members)
    return packed if len(packed) <= size else content


def crossed(form: Single, one: bytes, other: bytes, size: int, seed: int) -> bytes:
    """Return an input with some members of another."""
    rng = random.Random(seed)
    mine, theirs = members_of(form, one), members_of(form, other)
    if not mine or not theirs:
        cut = rng.randrange(len(one) + 1)
        return (one[:cut] + other[cut:])[:size]
    name = rng.choice(list(theirs))
    packed = form.packed({**mine, name: theirs[name]})
    return packed if len(packed) <= size else one


def _mutate_one(members: Members, rng: random.Random, size: int, mutate: Mutate) -> None:
    if not members:
        return
    name = rng.choice(list(members))
    kind = rng.random()
    if kind < 0.03 and len(members) > 1:
        del members[name]
    elif kind < 0.06:
        members[rng.choice(list(members))] = members[name]
    elif kind < 0.25:
        members[name] = with_word(members[name], rng)
    elif members[name].startswith(_GZIP):
        import gzip

        inner = bytes(mutate(_inner(members[name]), size))
        members[name] = gzip.compress(inner, 1, mtime=0)
    else:
        members[name] = bytes(mutate(members[name], size))


def _inner(content: bytes) -> bytes:
    import zlib

    try:
        return gunzipped(content)
    except zlib.error:
        return content


def with_word(content: bytes, rng: random.Random) -> bytes:
    """Replace some bytes by an extreme number, such as a count or an offset."""
    width = rng.choice((1, 2, 4, 8))
    number = rng.choice(_WORDS) % (1 << 8 * width)
    word = number.to_bytes(width, rng.choice(("little", "big")))
    at = rng.randrange(max(1, len(content) - width + 1))
    return content[:at] + word + content[at + width :]
