"""Every seed is read; every input of a former crash is read or refused within bounds."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fuzz.forms import members_of
from fuzz.judge import attempt
from fuzz.mutate import mutated
from fuzz.targets import TARGETS

HERE = Path(__file__).parent / "regressions"
CASES = sorted(path for path in HERE.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_is_read(name, tmp_path):
    target = TARGETS[name]
    seeds = target.seeds()
    assert seeds
    for number, content in enumerate(seeds):
        assert attempt(target, content, tmp_path) is True, f"seed {number} of {name}"


@pytest.mark.parametrize("name", TARGETS)
def test_a_seed_that_is_taken_apart_and_packed_again_is_read(name, tmp_path):
    target = TARGETS[name]
    for content in target.seeds():
        members = members_of(target.form, content)
        if members is not None:
            assert attempt(target, target.form.packed(members), tmp_path) is True


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_seeds_are_read_or_refused(name, tmp_path):
    target, rng = TARGETS[name], random.Random(name)
    seeds = target.seeds()
    outcomes = set()
    for number in range(30):
        content = mutated(target.form, rng.choice(seeds), 1 << 18, number, overwritten(rng))
        outcomes.add(attempt(target, content, tmp_path))
    assert outcomes & {True, False}


def overwritten(rng):
    """Return a small mutation function like that of the fuzzer."""

    def change(content, size):
        kept = bytearray(content[:size])
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(kept) + 1)
            kept[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
        return bytes(kept)

    return change


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_was_a_crash_is_read_or_refused(case, tmp_path):
    target = TARGETS[case.parent.name]
    assert attempt(target, case.read_bytes(), tmp_path) is not None
