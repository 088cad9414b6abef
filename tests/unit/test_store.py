from __future__ import annotations

import io
import json
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from callpath_modeler import store
from callpath_modeler.analysis.answer import rank
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError, OutputError
from synthetic import POINTS, fitted

P = np.array(POINTS)
VALUES = {
    "main": [1] * 5,
    "main/f@12": list(0.5 * P),
    "main/late": [float("nan")] * 3 + [1, 2],
}


def listed(directory):
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture(scope="module")
def fit():
    made = fitted(VALUES)
    finding = Finding("CPM102", "run é", "odd", 3)
    return replace(made, experiment=replace(made.experiment, findings=(finding,)))


@pytest.fixture
def path(fit, tmp_path):
    store.write([fit], tmp_path / "a.cpm")
    return tmp_path / "a.cpm"


def test_what_was_stored_reads_back_as_it_was(fit, path):
    read = store.read_experiment(path)
    kept = fit.experiment
    for name in ("name", "runs", "parameters", "constants", "declared", "reduction", "scaling"):
        assert getattr(read, name) == getattr(kept, name)
    assert read.findings == kept.findings
    assert read.tree.regions == kept.tree.regions
    assert read.tree.ids() == kept.tree.ids()
    assert np.array_equal(read.values("time"), kept.values("time"), equal_nan=True)
    assert read.columns["time"].metric == kept.columns["time"].metric


def test_stored_models_predict_the_same(fit, path):
    read = store.read_models(path, store.read_experiment(path), "time", fit.settings)
    assert read is not None
    assert np.array_equal(
        read.models.predict([64]).high, fit.models.predict([64]).high, equal_nan=True
    )
    one, other = rank(read, 64), rank(fit, 64)
    assert one.order.tolist() == other.order.tolist()
    assert one.total == other.total
    assert read.findings == fit.findings
    assert read["main/f"].formula() == fit["main/f"].formula()


def test_models_of_other_settings_or_metrics_are_not_found(fit, path):
    read = store.read_experiment(path)
    assert store.read_models(path, read, "time", {**fit.settings, "confidence": "0.5"}) is None
    assert store.read_models(path, read, "visits", fit.settings) is None


def test_values_stay_on_disk_until_they_are_used(path):
    values = store.read_experiment(path).values("time")
    assert isinstance(values.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        values[0, 0] = 1


def test_a_store_is_replaced_only_when_told(fit, path):
    with pytest.raises(OutputError, match="exists"):
        store.write([fit], path)
    store.write([fit], path, overwrite=True)
    assert listed(path.parent) == ["a.cpm"]


def test_a_writer_that_is_killed_at_any_moment_leaves_the_old_store_or_the_new(tmp_path):
    larger = {path: [10 * value for value in values] for path, values in VALUES.items()}
    stores = {}
    for name, values in (("old", VALUES), ("new", larger)):
        made = fitted(values)
        experiment = replace(made.experiment, name=name)
        store.write([replace(made, experiment=experiment)], tmp_path / f"{name}.cpm")
        stores[name] = name, float(np.nansum(experiment.values()))
    words = [sys.executable, str(Path(__file__).parents[1] / "killed_writer.py")]
    words += [str(tmp_path / name) for name in ("old.cpm", "new.cpm", "work")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    held = [tuple(each) for each in json.loads(done.stdout)]
    before = held.count(stores["old"])
    assert held == [stores["old"]] * before + [stores["new"]] * (len(held) - before)
    # Before the exchange, all files of a store were opened; after it, all were removed.
    files = len(listed(tmp_path / "new.cpm"))
    assert before > files
    assert len(held) - before > files


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_what_is_no_store_is_never_replaced(fit, tmp_path, kind):
    other = tmp_path / "data.cpm"
    if kind == "file":
        other.write_text("precious")
    else:
        other.mkdir()
        (other / "precious").touch()
    with pytest.raises(OutputError, match="in the way"):
        store.write([fit], other, overwrite=True)
    assert other.exists()


def test_a_failure_half_way_leaves_nothing(fit, tmp_path, monkeypatch):
    save, written = np.lib.format.write_array, []

    def failing(file, array, **options):
        written.append(file)
        if len(written) == 5:
            raise OSError(28, "No space left on device")
        save(file, array, **options)

    monkeypatch.setattr(np.lib.format, "write_array", failing)
    with pytest.raises(OutputError, match="the disk is full"):
        store.write([fit], tmp_path / "a.cpm")
    assert listed(tmp_path) == []


def test_a_store_is_known_by_its_name_or_its_header(path, tmp_path):
    path.rename(tmp_path / "renamed")
    assert store.is_stored(tmp_path / "renamed")
    assert store.is_stored(tmp_path / "missing.cpm")
    assert not store.is_stored(tmp_path)


def replaced(path, name, content):
    """Replace a file of a store and its checksum, as another program might."""
    (path / name).write_bytes(content)
    sums = path / "checksums.json"
    told = json.loads(sums.read_text(encoding="utf-8"))
    sums.write_text(json.dumps({**told, name: zlib.crc32(content)}), encoding="utf-8")


def array_file(array):
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def opened(path, fit):
    store.read_models(path, store.read_experiment(path), "time", fit.settings)


def test_every_missing_or_short_file_is_an_input_error_with_a_hint(path, fit):
    for file in sorted(path.iterdir()):
        content = file.read_bytes()
        for damaged in (None, b"", content[: len(content) // 2], content[:-1]):
            file.unlink()
            if damaged is not None:
                file.write_bytes(damaged)
            if damaged == content[:-1] and file.suffix == ".json":
                file.write_bytes(content[:-2])  # the last byte may be a newline
            with pytest.raises(InputError, match=r"a\.cpm") as caught:
                opened(path, fit)
            assert caught.value.hint
            file.write_bytes(content)
    opened(path, fit)


def test_a_bit_that_flipped_is_an_input_error_wherever_it_is(path, fit):
    for file in sorted(path.iterdir()):
        content = file.read_bytes()
        for place in {len(content) // 2, len(content) - 1, content.find(b"5.0")} - {-1}:
            damaged = bytearray(content)
            damaged[place] ^= 1
            file.write_bytes(damaged)
            with pytest.raises(InputError, match=r"a\.cpm"):
                opened(path, fit)
        file.write_bytes(content)
    opened(path, fit)


def test_what_is_too_large_to_be_checked_at_every_opening_is_when_asked(path, fit, monkeypatch):
    monkeypatch.setattr(store, "_SOON_READ", 0)
    values = path / "values-0.npy"
    damaged = bytearray(values.read_bytes())
    damaged[-3] ^= 1
    values.write_bytes(damaged)
    opened(path, fit)
    with pytest.raises(InputError, match=r"values-0\.npy: differs from its checksum"):
        store.verify(path)


def test_a_whole_store_is_found_to_be_so(path):
    assert store.verify(path) == len(listed(path)) - 1  # its checksums are in the last one


@pytest.mark.parametrize("name", ["tree", "ids", "values-0", "total-0", "models-0-measured"])
@pytest.mark.parametrize("array", [np.zeros(2), np.zeros((3, 5), "f4"), np.array(["a"])])
def test_an_array_of_another_shape_or_type_is_an_input_error(path, fit, name, array):
    replaced(path, f"{name}.npy", array_file(array))
    with pytest.raises(InputError, match=name):
        opened(path, fit)


def test_an_array_whose_header_does_not_end_is_an_input_error(path, fit):
    array = path / "total-0.npy"
    replaced(path, array.name, array.read_bytes().replace(b")", b" "))
    with pytest.raises(InputError, match="total-0"):
        opened(path, fit)


@pytest.mark.parametrize("column", [[-1, 0, 5], [0, 0, 0], [1, -1, 0]])
def test_a_tree_that_is_none_is_an_input_error(path, fit, column):
    tree = np.load(path / "tree.npy")
    tree[0] = column
    replaced(path, "tree.npy", array_file(tree))
    with pytest.raises(InputError, match="tree"):
        opened(path, fit)


def test_a_region_beyond_the_table_is_an_input_error(path, fit):
    tree = np.load(path / "tree.npy")
    tree[2, 0] = 99
    replaced(path, "tree.npy", array_file(tree))
    with pytest.raises(InputError, match="tree"):
        opened(path, fit)


def test_the_ids_of_a_store_are_those_of_its_call_paths(tmp_path):
    many = fitted({f"f{k}": [1] * 5 for k in range(60_000)})
    store.write([many], tmp_path / "many.cpm")
    tree, found = many.experiment.tree, store.read_experiment(tmp_path / "many.cpm").tree
    longer = tree.long_ids[0].tolist()
    assert longer
    some = [0, 5, *longer, len(tree) - 1]
    assert found.ids(some) == [tree.ids()[row] for row in some]
    assert found.ids() == tree.ids()
    assert len(set(found.ids())) == len(tree)


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b'{"schema": 4}', b'{"schema": "x"}', b"\x00", b"{", b"\x8a"]
)
def test_a_header_that_is_none_is_an_input_error(path, fit, content):
    (path / "header.json").write_bytes(content)
    with pytest.raises(InputError, match="broken store"):
        opened(path, fit)


def test_names_in_a_header_hold_no_control_character(path):
    header = json.loads((path / "header.json").read_text())
    header["name"] += "\x1b[31m"
    header["metrics"][0]["unit"] += "\x07"
    replaced(path, "header.json", json.dumps(header).encode())
    found = store.read_experiment(path)
    assert found.name.endswith("\\x1b[31m")
    (values,) = found.columns.values()
    assert values.metric.unit.endswith("\\x07")


def test_names_of_folded_chains_are_stored(fit, tmp_path):
    chains = {1: ("first", "second\x1b[31m"), 2: ("third",)}
    folded = replace(fit.experiment, chains=chains)
    path = tmp_path / "folded.cpm"
    store.write([replace(fit, experiment=folded)], path)
    assert store.read_experiment(path).chains == {1: ("first", "second\\x1b[31m"), 2: ("third",)}


def test_a_chain_that_leads_to_no_call_path_is_an_input_error(fit, tmp_path):
    path = tmp_path / "folded.cpm"
    chains = {len(fit.experiment.tree): ("first",)}
    store.write([replace(fit, experiment=replace(fit.experiment, chains=chains))], path)
    with pytest.raises(InputError, match="a chain leads to no call path"):
        store.read_experiment(path)


def test_a_store_of_another_version_says_so(path, fit):
    header = json.loads((path / "header.json").read_text())
    (path / "header.json").write_text(json.dumps({"schema": header["schema"] + 1}))
    with pytest.raises(InputError, match=f"schema {store.SCHEMA + 1}"):
        opened(path, fit)


@pytest.mark.parametrize("name", ["missing.cpm", "file.cpm"])
def test_no_store_at_all_is_an_input_error(tmp_path, name):
    (tmp_path / "file.cpm").touch()
    with pytest.raises(InputError, match="not a stored experiment"):
        store.read_experiment(tmp_path / name)
