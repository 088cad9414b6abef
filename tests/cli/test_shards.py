"""`fit --shard` and `merge`: the store is that of one `fit`, to the last bit."""

from __future__ import annotations

import shutil
from dataclasses import replace

import msgspec
import pytest

from callpath_modeler import shards
from callpath_modeler.errors import InputError
from callpath_modeler.studies import loading
from cells import cells
from fuzz.forms import HEAD, checked
from two_stores import check_same_stores


@pytest.fixture
def written(run, tmp_path):
    """Write shards of runs; return their files."""

    def written(runs, count, *words):
        files = [tmp_path / f"part{k}.cpm" for k in range(1, count + 1)]
        for k, file in enumerate(files, start=1):
            done = run("fit", runs, "--shard", f"{k}/{count}", "-o", file, *words)
            assert done.status == 0, done.err
        return files

    return written


@pytest.mark.parametrize("count", [1, 3, 8])
def test_merged_shards_are_one_fit(run, samples, written, tmp_path, count):
    files = written(samples / "stencil", count)
    merged = run("merge", *reversed(files), "-o", tmp_path / "merged.cpm")
    one = run("fit", samples / "stencil", "-o", tmp_path / "one.cpm")
    assert merged.status == one.status == 0, merged.err
    assert merged.out == one.out.replace("one.cpm", "merged.cpm")
    check_same_stores(tmp_path / "merged.cpm", tmp_path / "one.cpm")


def test_more_shards_than_profiles(run, samples, written, tmp_path):
    files = written(samples / "stencil", 17)
    assert run("merge", *files, "-o", tmp_path / "merged.cpm").status == 0


def test_what_was_said_of_profiles_is_said_when_they_are_merged(run, samples, written, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(samples / "stencil", runs)
    damaged = sorted(runs.rglob("*.cubex"))[4]
    damaged.write_bytes(damaged.read_bytes()[:3000])
    words = "-m", "time", "--locations", "max"
    files = written(runs, 4, *words)
    merged = run("merge", *files, "-o", tmp_path / "merged.cpm", "--where", "p>8")
    one = run("--no-progress", "fit", runs, "-o", tmp_path / "one.cpm", "--where", "p>8", *words)
    assert one.err.count("CPM101") == 1
    assert merged.err == one.err
    check_same_stores(tmp_path / "merged.cpm", tmp_path / "one.cpm")


def test_a_table_with_several_runs_keeps_them(run, written, tmp_path):
    for name, noise in ("a", 0.0), ("b", 0.01):
        rows = [f"main/f,{p},{p * 1.5 + noise}" for p in (2, 4, 8, 16, 32)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["callpath,p,time", *rows]) + "\n")
    tables = tmp_path / "a.csv"
    files = written(tables, 2)
    assert run("merge", *files, "-o", tmp_path / "merged.cpm").status == 0
    assert run("fit", tables, "-o", tmp_path / "one.cpm").status == 0
    check_same_stores(tmp_path / "merged.cpm", tmp_path / "one.cpm")


def test_shards_that_do_not_belong_together(run, samples, written, tmp_path):
    runs, to = samples / "stencil", tmp_path / "x.cpm"
    files = written(runs, 3)
    run("merge", *files[:2], "-o", to).fails(4, "1 of 3 shards are missing: 3", "--shard 3/3")
    run("merge", *files, files[0], "-o", to).fails(4, "shard 1 of 3 is given twice")
    other = tmp_path / "other.cpm"
    run("fit", runs, "--shard", "3/3", "-o", other, "--locations", "max")
    run("merge", *files[:2], other, "-o", to).fails(4, "--locations differ from those of")
    run("fit", samples / "lulesh", "--shard", "3/3", "-o", other, "--force")
    run("merge", *files[:2], other, "-o", to).fails(4, "profiles differ from those of")
    run("merge", *files, "-o", to, "--locations", "max").fails(2, "--locations is for reading")
    run("merge", runs, "-o", to).fails(3, "Is a directory")
    assert not to.exists()


def test_a_shard_is_not_an_experiment(run, samples, written):
    (file,) = written(samples / "stencil", 1)
    run("rank", file, "--target", "64").fails(2, "one shard of an experiment", "cpmodel merge")


@cells("text", ["0/3", "4/3", "3", "a/b", "1/", "1/9999999", "-1/2", ""])
def test_nonsense_is_a_usage_error(run, samples, tmp_path, text):
    done = run("fit", samples / "stencil", "--shard", text, "-o", tmp_path / "x")
    done.fails(2, "is not K/N", "3/64")


def test_options_that_a_shard_cannot_have(run, samples, tmp_path):
    words = "fit", samples / "stencil", "--shard", "1/2"
    run(*words).fails(2, "--shard needs a name for its file")
    done = run(*words, "-o", tmp_path / "x", "--split-ranks", "auto")
    done.fails(2, "--split-ranks auto needs the times of all profiles")


def damaged(content, change):
    """Return a shard whose decoded content is changed, with the right checksum."""
    told = msgspec.msgpack.decode(content[HEAD:])
    change(told)
    return checked(msgspec.msgpack.encode(told))


def _run_of(told):
    return told["profiles"][0]["runs"][0]


CHANGES = {
    "tree out of range": lambda told: _run_of(told).update(tree=99),
    "negative tree": lambda told: _run_of(told).update(tree=-1),
    "cut values": lambda told: _run_of(told)["values"]["time"].update(exclusive=b"12345678"),
    "odd bytes": lambda told: _run_of(told)["values"]["time"].update(exclusive=b"123"),
    "cut columns": lambda told: told["trees"][0].update(columns=b"1234" * 5),
    "callers": lambda told: told["trees"][0].update(columns=b"\x7f" * 16 * 25),
    "infinite": lambda told: _run_of(told)["values"]["time"].update(total=float("inf")),
    "undeclared": lambda told: _run_of(told).update(declared=[]),
    "unknown finding": lambda told: told["findings"].append(
        {"code": "X", "subject": "", "message": "", "count": 1}
    ),
    "number": lambda told: told.update(number=5),
    "type": lambda told: told.update(count="many"),
    "no runs": lambda told: told["profiles"][0].update(runs=[]),
    "processes": lambda told: _run_of(told)["extent"].update(processes=-8),
    "parameter": lambda told: told["profiles"][0]["file"].update(parameters={"p": float("nan")}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_hostile_shard_is_one_error(run, samples, written, tmp_path, name):
    (file,) = written(samples / "stencil", 1)
    file.write_bytes(damaged(file.read_bytes(), CHANGES[name]))
    run("merge", file, "-o", tmp_path / "x.cpm").fails(3, f"{file}: damaged: ", "--shard K/N")
    assert not (tmp_path / "x.cpm").exists()


def test_damage_of_any_byte_is_seen(samples, written):
    (file,) = written(samples / "stencil", 1)
    content = file.read_bytes()
    for place in range(0, len(content), len(content) // 50):
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(InputError):
            shards.read(file)
    for length in 0, 5, 11, len(content) - 1:
        file.write_bytes(content[:length])
        with pytest.raises(InputError):
            shards.read(file)


def test_control_characters_of_a_shard_do_not_reach_the_terminal(run, samples, written, tmp_path):
    (file,) = written(samples / "stencil", 1)

    def hostile(told):
        told["trees"][0]["regions"][0]["name"] = "\x1b[2J"
        _run_of(told)["name"] = "\x1b[31m"

    file.write_bytes(damaged(file.read_bytes(), hostile))
    done = run("merge", file, "-o", tmp_path / "x.cpm")
    assert "\x1b" not in done.out + done.err
    shown = run("info", tmp_path / "x.cpm")
    assert "\x1b" not in shown.out + shown.err


def test_a_shard_reads_only_its_profiles(samples):
    part = loading.load_shard([samples / "stencil"], loading.LoadOptions(), 2, 4)
    assert len(part.outcomes) == 4


def test_a_shard_of_a_huge_number_of_shards_is_refused_at_once(run, samples, written, tmp_path):
    (first, *_) = written(samples / "stencil", 3)
    huge, one = tmp_path / "huge.cpm", shards.read(first)
    shards.write(replace(one, count=10**15), huge)
    run("merge", huge, "-o", tmp_path / "x.cpm").fails(4, "shards are missing: 2, 3, 4, 5, 6, ...")


def test_a_shard_that_is_nested_too_deeply_is_damaged(run, tmp_path):
    path = tmp_path / "deep.cpm"
    path.write_bytes(checked(b"\x91" * 5000))
    run("merge", path, "-o", tmp_path / "x.cpm").fails(3, "damaged")
