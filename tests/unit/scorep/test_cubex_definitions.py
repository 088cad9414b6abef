"""Definitions: the call tree, and the properties of a run."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from msgspec import structs

import cube_writer as cw
from callpath_modeler.profile.calltree import subtree_ends
from callpath_modeler.profile.pruning import without_call_sites
from callpath_modeler.profile.schema import PROGRAM, Extent, base_unit
from callpath_modeler.profile.unify import unify
from callpath_modeler.readers.base import API_VERSION, ProfileReader, VerifyingReader
from cells import cells
from cpmodel_scorep import CubexReader, anchor, anchor_expat, anchor_fast
from cpmodel_scorep.container import Container, opened
from cpmodel_scorep.tree import Latest, layout_of

NOTHING = [cw.MetricToWrite("visits", np.zeros((0, 0)), dtype="UINT64")]


def same(first, second):
    for one, other in ((first.call_paths, second.call_paths), (first.locations, second.locations)):
        for name in one.__slots__:
            left, right = getattr(one, name), getattr(other, name)
            if isinstance(left, np.ndarray):
                assert left.tolist() == right.tolist(), name
            else:
                assert left == right, name
    assert first.attributes == second.attributes
    assert first.metrics == second.metrics
    assert first.regions == second.regions


def profile_of(tmp_path, tree, machine=None, metrics=None, attributes=""):
    machine = machine or cw.Machine([1])
    metrics = metrics or [cw.MetricToWrite("visits", np.ones((len(tree), machine.locations)))]
    content = dict(cw.members_of(tree, metrics, machine))
    content["anchor.xml"] = cw.anchor(tree, metrics, machine, attributes=attributes).encode()
    path = cw.pack(tmp_path / "profile.cubex", content.items())
    return CubexReader().open(path)


def test_both_parsers_agree_on_generated_definitions():
    tree = cw.random_tree(50, roots=3, seed=2)
    tree.names[5:8] = ["a<b> & c", "MPI_Send", "caf\u00e9 'x'"]
    tree.ids = list(range(100, 150))
    machine = cw.Machine([2, 3, 1], gpus=1, ids=[5, 4, 3, 2, 1, 0, 6, 7, 8])
    text = cw.anchor(tree, NOTHING, machine).encode()
    fast = anchor_fast.parse(text)
    assert fast is not None
    same(fast, anchor_expat.parse(text))
    assert fast.call_paths.parents.tolist() == tree.parents


def test_both_parsers_agree_on_parameters_and_places_of_call_paths():
    tree = cw.random_tree(20, seed=4)
    tree.line = ' line="7" mod="b 3.c"'
    for row in (0, 3, 19):
        tree.parameters[row] = f'<parameter partype="numeric" parkey="n" parvalue="{row}"/>\n'
    text = cw.anchor(tree, NOTHING, cw.Machine([1])).encode()
    fast = anchor_fast.parse(text)
    assert fast is not None
    assert fast.call_paths.parameters == {row: (("n", str(row)),) for row in (0, 3, 19)}
    same(fast, anchor_expat.parse(text))


def test_profiles_with_the_same_call_paths_share_their_layout():
    latest = Latest()

    def layout(tree):
        text = cw.anchor(tree, NOTHING, cw.Machine([1])).encode()
        return latest.layout_of(anchor.parse(text, "here", latest)[0])

    one = layout(cw.Tree([-1, 0, 0], ["main", "f", "g"]))
    assert layout(cw.Tree([-1, 0, 0], ["main", "f", "g"])) is one
    renamed = layout(cw.Tree([-1, 0, 0], ["main", "f", "h"]))
    assert renamed.tree.paths(range(3)) == ["main", "main/f", "main/h"]
    moved = layout(cw.Tree([-1, 0, 1], ["main", "f", "g"]))
    assert moved.tree.paths(range(3)) == ["main", "main/f", "main/f/g"]


def test_definitions_beside_known_call_paths_are_repaired():
    latest, text = Latest(), cw.anchor(cw.random_tree(9, seed=4), NOTHING, cw.Machine([1])).encode()
    whole, repaired = anchor.parse(text, "here", latest)
    assert not repaired
    damaged = text.replace(b"<name>f1</name>", b"<name>f1 & f2</name>")
    assert damaged != text
    definitions, repaired = anchor.parse(damaged, "here", latest)
    assert repaired
    assert definitions.regions[1].name == "f1 & f2"
    np.testing.assert_array_equal(definitions.call_paths.parents, whole.call_paths.parents)


def test_control_characters_in_call_paths_are_damage():
    latest, text = Latest(), cw.anchor(cw.random_tree(9, seed=4), NOTHING, cw.Machine([1])).encode()
    anchor.parse(text, "here", latest)
    damaged = text.replace(b"</cnode>\n</program>", b"\x01</cnode>\n</program>")
    assert damaged != text
    assert anchor.parse(damaged, "here", latest)[1]


def test_calls_from_several_lines_are_apart():
    tree = cw.Tree([-1, 0, 0, 0], ["main", "f", "f", "f"])
    text = cw.anchor(tree, NOTHING, cw.Machine([1]))
    for row, line in enumerate((-1, 31, 57, 80)):
        text = text.replace(f'<cnode id="{row}" ', f'<cnode id="{row}" line="{line}" mod="main.c" ')
    fast = anchor_fast.parse(text.encode())
    assert fast is not None
    same(fast, anchor_expat.parse(text.encode()))
    layout = layout_of(fast)
    assert layout.tree.site.tolist() == [-1, 31, 57, 80]
    united = unify([layout.tree]).tree
    assert united.paths(range(4)) == ["main", "main/f:31", "main/f:57", "main/f:80"]
    joined = unify([without_call_sites(layout.tree)]).tree
    assert joined.paths(range(2)) == ["main", "main/f"]


@cells(
    ("old", "new"),
    [
        ("</cnode>\n</program>", '<attr key="a" value="b"/></cnode>\n</program>'),
        ("<program>", "<program><!-- a comment -->"),
        ("<name>f1</name>", "<name><![CDATA[f1]]></name>"),
        ('mod="a.c"', "mod='a.c'"),
        ('<cnode id="1" calleeId="1">', '<cnode calleeId="1" id="1">'),
        ("<type>thread</type>", ""),
    ],
)
def test_an_unusual_layout_is_left_to_the_full_parser(old, new):
    tree = cw.random_tree(9, seed=4)
    text = cw.anchor(tree, NOTHING, cw.Machine([1]))
    assert old in text
    changed = text.replace(old, new, 1).encode()
    assert anchor_fast.parse(changed) is None
    definitions, repaired = anchor.parse(changed, "here")
    assert not repaired
    same(definitions, anchor_expat.parse(text.encode()))


def test_both_parsers_agree_on_measured_definitions(shared_data):
    seen = 0
    for path in sorted(
        [
            *(shared_data / "scorep").rglob("*.cubex"),
            *(shared_data / "third_party").rglob("*.cubex"),
        ]
    ):
        if path.parent.name.endswith(("r2", "r3", "r4", "r5")):
            continue
        with opened(path) as container:
            text = anchor._unpacked(content(container), str(path))
        fast = anchor_fast.parse(text)
        if fast is not None:
            same(fast, anchor_expat.parse(text))
            seen += 1
    assert seen > 50


def content(container: Container) -> bytes:
    return container.content(container.members["anchor.xml"])


def test_the_program_root_goes_by_one_name_and_its_own_is_kept(tmp_path):
    tree = cw.Tree([-1, 0], ["bt.C.64", "main"], {"bt.C.64": "artificial"})
    with profile_of(tmp_path, tree) as profile:
        assert profile.call_tree.name(0) == PROGRAM
        assert profile.call_tree.path(1) == "main"
        assert profile.metadata["program"] == "bt.C.64"
        assert profile.metadata["command line"] == "bt.C.64 -n 3"
        assert profile.metadata["creator"] == "test"
        assert profile.metadata["cube version"] == "4.4"


def test_ordinary_roots_keep_their_names(tmp_path):
    tree = cw.Tree([-1, 0], ["int main(int, char**)", "f"])
    with profile_of(tmp_path, tree) as profile:
        assert profile.call_tree.path(1) == "int main(int, char**)/f"
        assert "program" not in profile.metadata


def test_iterations_lose_their_number_and_parameters_become_annotations(tmp_path):
    tree = cw.Tree([-1, 0, 0, 0], ["main", "instance=1", "iteration=22", "f"])
    tree.parameters[3] = (
        '<parameter partype="numeric" parkey="n" parvalue="4"/>'
        '<parameter partype="string" parkey="phase" parvalue="p1"/>'
    )
    with profile_of(tmp_path, tree) as profile:
        names = [profile.call_tree.name(row) for row in range(4)]
    assert names == ["main", "instance=*", "iteration=*", "f[n=4,phase=p1]"]


def test_subtrees_end_where_the_call_tree_says(tmp_path):
    tree = cw.random_tree(60, roots=4, seed=8)
    with profile_of(tmp_path, tree) as profile:
        ends = subtree_ends(np.array(tree.parents, np.int32))
        assert profile.call_tree.end.tolist() == ends.tolist()


def test_what_definitions_tell_of_trouble_is_found(tmp_path):
    tree = cw.Tree([-1, 0], ["main", "COLLAPSE"])
    machine = cw.Machine([2, 1], gpus=1, nodes=1)
    clustering = '<attr key="CLUSTERING" value="ON"/>\n'
    with profile_of(tmp_path, tree, machine, attributes=clustering) as profile:
        found = {finding.code: finding.count for finding in profile.findings()}
        assert found == {"CPM106": 1, "CPM110": 2, "CPM120": 1}
        assert profile.extent == Extent(processes=2, threads=2, nodes=1)


@pytest.mark.parametrize("parse", [anchor_fast.parse, anchor_expat.parse])
def test_machines_are_told_by_their_names_and_hosts_without_their_numbers(parse):
    text = cw.anchor(cw.Tree([-1], ["main"]), NOTHING, cw.Machine([1, 1], nodes=2))
    for old, new in (("m", "machine J&amp;W"), ("n", "node jwc09n12.cluster"), ("n", "node x")):
        text = text.replace(f"<name>{old}</name>\n<class>", f"<name>{new}</name>\n<class>", 1)
    definitions = parse(text.encode())
    assert definitions.locations.machines == {"machine J&W", "node jwc*n*", "node x"}
    assert definitions.locations.nodes == 2


@pytest.mark.parametrize(
    "name", ["aggregated threads", "fastest thread", "master thread", "cluster 3"]
)
def test_pseudo_threads_leave_the_number_of_threads_open(tmp_path, name):
    tree = cw.Tree([-1], ["main"])
    machine = cw.Machine([1, 1], thread_names=(name,))
    with profile_of(tmp_path, tree, machine) as profile:
        assert profile.extent.threads == 0
        assert [finding.code for finding in profile.findings()] == ["CPM108"]


@cells(
    ("text", "unit", "factor"),
    [
        ("sec", "s", 1.0),
        ("10^-6 s", "s", 1e-6),
        ("usec", "s", 1e-6),
        ("ns", "s", 1e-9),
        ("bytes", "B", 1.0),
        ("occ", "1", 1.0),
        ("#", "1", 1.0),
        ("", "1", 1.0),
        ("10^-9 J", "J", 1e-9),
        ("furlong", "furlong", 1.0),
    ],
)
def test_units_become_base_units(text, unit, factor):
    assert base_unit(text) == (unit, pytest.approx(factor))


def test_metrics_are_declared_with_unit_and_description(tmp_path):
    tree = cw.Tree([-1], ["main"])
    metric = cw.MetricToWrite("cycles", np.array([[7.0]]), unit="usec")
    with profile_of(tmp_path, tree, metrics=[metric]) as profile:
        (declared,) = profile.metrics
    assert declared.metric.unit == "s"
    assert declared.metric.description == "of cycles"
    assert declared.metric.is_time


def test_repair_leaves_sound_definitions_as_they_are():
    tree = cw.random_tree(30, seed=1)
    tree.names[3] = "a<b, c> & 'd' \"e\""
    machine = cw.Machine([1, 2])
    text = cw.anchor(tree, NOTHING, machine).encode()
    same(anchor_expat.parse(anchor.repair(text)), anchor_expat.parse(text))


def test_the_reader_keeps_its_contract():
    reader = CubexReader()
    assert isinstance(reader, VerifyingReader)
    checked: ProfileReader = reader
    assert checked.api_version == API_VERSION
    assert checked.name == "scorep"


def test_importing_the_plugin_does_not_import_numpy():
    code = "import sys, cpmodel_scorep; sys.exit('numpy' in sys.modules)"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, check=False).returncode == 0


def test_the_fast_parser_does_not_see_what_is_not_there():
    text = cw.anchor(cw.random_tree(3), NOTHING, cw.Machine([1])).encode()
    assert anchor_fast.parse(text.replace(b"<system>", b"<sys>")) is None
    assert structs.replace(anchor_fast.parse(text), metrics=()).metrics == ()


@pytest.mark.parametrize("other", ["b", "tab&#9;b", "&#x3c;b&#62;"])
def test_escaped_names_mean_the_same_to_both_parsers(other):
    tree = cw.Tree([-1, 0, 0], ["main", "a", "b"])
    text = cw.anchor(tree, NOTHING, cw.Machine([1])).encode()
    escaped = b"f&lt;&amp;lt;&gt;(&quot;x&quot;, &apos;&amp;&apos;) &amp;copy;"
    text = text.replace(b"<name>a</name>", b"<name> %b\n</name>" % escaped)
    text = text.replace(b"<name>b</name>", b"<name>%b</name>" % other.encode())
    fast = anchor_fast.parse(text)
    assert fast is not None
    same(fast, anchor_expat.parse(text))
    assert "f<&lt;>(\"x\", '&') &copy;" in {region.name for region in fast.regions.values()}
