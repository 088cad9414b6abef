"""Files of definitions are damaged if their records do not lead to their end."""

from __future__ import annotations

import pytest

from cells import cells
from cpmodel_otf2.anchor import damage_of

BLOCK = 256 << 10


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """Definitions in several blocks; some records are longer than 254 bytes."""
    import otf2

    folder = tmp_path_factory.mktemp("records") / "trace"
    with otf2.writer.open(str(folder), chunk_size_definitions=BLOCK) as archive:
        definitions = archive.definitions
        node = definitions.system_tree_node("node")
        group = definitions.location_group("process", system_tree_parent=node)
        definitions.location("thread", group=group)
        for number in range(25000):
            long = "x" * 300 if number % 100 == 0 else ""
            definitions.region(f"region {number} {long}")
    return (folder / "traces.def").read_bytes()


def damage(tmp_path, content, block=BLOCK):
    path = tmp_path / "traces.def"
    path.write_bytes(content)
    return damage_of(path, block)


def test_an_intact_file_of_several_blocks_is_not_damaged(intact, tmp_path):
    assert len(intact) > 2 * BLOCK
    assert damage(tmp_path, intact) is None


@cells("at", [18, 100, 5000, BLOCK + 18, 2 * BLOCK + 40])
def test_zeros_in_a_record_are_found(intact, tmp_path, at):
    content = bytearray(intact)
    content[at : at + 600] = bytes(600)
    assert "no record begins at byte" in (damage(tmp_path, bytes(content)) or "")


@cells(
    ("change", "reason"),
    [
        (lambda _: b"", "the file is cut off"),
        (lambda content: content[:10], "the file is cut off"),
        (lambda content: content[:-1], "the file is cut off"),
        (lambda content: content[:BLOCK], "no record begins at byte"),
        (lambda content: content + b"\x01", "no record begins at byte"),
        (lambda content: b"\x04" + content[1:], "no block begins at byte 0"),
        (lambda content: content[:1] + b"L" + content[2:], "no block begins at byte 0"),
        (lambda content: content[:BLOCK] + bytes(20) + content[BLOCK + 20 :], "no block begins"),
        (lambda content: content[:18] + b"\xff" * 30 + content[48:], "the file is cut off"),
    ],
)
def test_other_damages_have_their_reasons(intact, tmp_path, change, reason):
    assert reason in (damage(tmp_path, change(intact)) or "")


def test_blocks_of_no_size_end(intact, tmp_path):
    assert "no record begins" in (damage(tmp_path, intact, block=0) or "")
