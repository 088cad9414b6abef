"""`rank --remember`, `cpmodel score` and `rank --calibrated`: predictions that keep score."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sqlite3
import zlib
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from callpath_modeler.errors import CallpathModelerError
from callpath_modeler.history import predictions as prediction_store
from callpath_modeler.history.history_store import read
from callpath_modeler.history.predictions import OutcomeRecord, PredictionRecord, scored

SCALES = (8, 16, 32, 64, 128)
NAMES = ("main", *(f"main/f{k}" for k in range(6)))


def cost(name, p):
    number = NAMES.index(name)
    return (1.0 + number) * (1 + 0.02 * p ** (0.25 * (number % 4)))


def write(path, scales, *, factor=1.0, repetitions=3, seed=1, noise=0.01, metric="time"):
    random = np.random.default_rng(seed)
    lines = [f"callpath,p,rep,{metric}"]
    lines += [
        f"{name},{p},{rep},{factor * cost(name, p) * np.exp(noise * random.standard_normal())}"
        for p in scales
        for rep in range(1, repetitions + 1)
        for name in NAMES
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def known(tmp_path):
    return write(tmp_path / "app.csv", SCALES)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "history.db"


def remember(run, known, store, *words, target="1024"):
    done = run("rank", known, "--target", target, "--remember", store, *words)
    assert done.status == 0, done.err
    return done


def header(run, store, *words):
    return json.loads(run("score", store, *words, "-f", "json").out)


def test_a_prediction_is_kept_with_all_that_belongs_to_it(run, known, store):
    done = remember(run, known, store, "--label", "machine=A", "--confidence", "0.9")
    assert "7 predictions: remembered" in done.err
    (record,) = prediction_store.predictions(store)
    rows = csv.DictReader(
        io.StringIO(run("rank", known, "--target", "1024", "--confidence", "0.9", "-f", "csv").out)
    )
    shown = {row["callpath"]: row for row in rows}
    assert set(record.callpaths) == set(shown)
    for name, band, trust, model in zip(
        record.callpaths, record.bands, record.trust, record.models, strict=True
    ):
        row = shown[name]
        assert band == tuple(
            float(row[f"{each}[s]"]) for each in ("value_at_target", "low", "high")
        )
        assert (trust, model) == (int(row["trust"]), row["model"])
    assert (record.metric, record.unit, record.scale, record.level) == ("time", "s", 1024.0, 0.9)
    assert (record.scales, record.labels) == (SCALES, {"machine": "A"})
    assert len(record.runs) == 15
    assert "in the history already" in remember(
        run, known, store, "--label", "machine=A", "--confidence", "0.9"
    ).err  # fmt: skip
    assert len(prediction_store.predictions(store)) == 1
    assert read(store) == ()


def test_later_runs_are_held_against_the_prediction(run, known, store, tmp_path):
    remember(run, known, store)
    before = run("score", store)
    assert "No remembered prediction was measured yet." in before.out
    assert "Not measured yet, at p = 1024: 1 remembered ranking." in before.out
    far = write(tmp_path / "far.csv", (1024,), seed=2, repetitions=1)
    verified = json.loads(
        run("rank", known, "--target", "1024", "--verify", far, "-f", "json").out
    )["verification"]
    found = header(run, store, far)
    (total,) = found["totals"]
    for name in ("predicted", "low", "high", "measured", "error", "holds"):
        assert total[name] == pytest.approx(verified["total"][name]), name
    assert total["callpaths"] == verified["callpaths"]
    assert total["callpaths_held"] == verified["held"]
    assert found["calibration"]["predictions"] == verified["callpaths"]
    rows = list(csv.DictReader(io.StringIO(run("score", store, "-f", "csv").out)))
    assert float(rows[0]["error"]) == pytest.approx(
        float(rows[0]["predicted[s]"]) / float(rows[0]["measured[s]"]) - 1
    )
    again = header(run, store, far)
    assert len(again["totals"]) == 1
    text = run("score", store).out
    assert "in 1 independent set of runs" in text
    assert "marks  predictions" in text


def test_score_and_verify_allow_for_the_scatter_of_few_runs(run, known, store, tmp_path):
    remember(run, known, store)
    far = write(tmp_path / "far.csv", (1024,), factor=1.02, repetitions=1, noise=0.02)
    asked = ("rank", known, "--target", "1024", "--verify", far, "-f", "json")
    verified = json.loads(run(*asked).out)["verification"]
    run("score", store, far)
    (record,), (outcome,) = prediction_store.predictions(store), prediction_store.outcomes(store)
    (case,) = scored([record], [outcome]).cases
    assert (len(case.holds), case.holds.sum()) == (verified["callpaths"], verified["held"])
    (alone,) = scored([replace(record, noise=())], [outcome]).cases
    assert alone.holds.sum() < case.holds.sum()


def test_predictions_of_a_version_that_kept_no_noise_are_read(run, known, store):
    remember(run, known, store)
    (record,) = prediction_store.predictions(store)
    assert len(record.noise) == len(record.callpaths)
    content = msgspec.msgpack.decode(msgspec.msgpack.encode(replace(record, time=0.0)))
    del content["noise"]
    earlier = hashlib.blake2b(b"PredictionRecord", digest_size=20)
    earlier.update(msgspec.msgpack.encode(content))
    assert prediction_store._digest(replace(record, noise=())) == earlier.digest()


def test_missed_bands_are_said_and_widen_later_ones(run, known, store, tmp_path):
    remember(run, known, store)
    slow = write(tmp_path / "slow.csv", (1024,), seed=2, factor=3.0)
    done = run("score", store, slow)
    assert done.status == 0
    assert "the band does NOT hold" in done.out
    assert " NO " in done.out
    assert "A single set of runs never suffices." in done.out
    factor = header(run, store)["calibration"]["factor"]
    assert factor > 1.2
    asked = ("rank", known, "--target", "2048", "-f", "json")
    plain, wide = (json.loads(run(*asked, *more).out) for more in ((), ("--calibrated", store)))
    assert wide["calibration"]["factor"] == factor
    for one, other in zip(plain["rows"], wide["rows"], strict=True):
        assert one["value_at_target"] == other["value_at_target"]
        for end in ("low", "high"):
            ratio = np.log(other[end] / one["value_at_target"])
            assert ratio == pytest.approx(factor * np.log(one[end] / one["value_at_target"]))
        assert other["trust"] <= one["trust"]
    text = run("rank", known, "--target", "2048", "--calibrated", store).out
    said = " ".join(text.split())
    assert "This rests on 7 scored predictions in 1 independent set" in said
    whole = [each["total"] for each in (plain, wide)]
    for end in ("low", "high"):
        one, other = (np.log(each[end] / each["at_target"]) for each in whole)
        assert other == pytest.approx(factor * one)
    assert all(row["excess_low"] is None for row in wide["rows"])
    assert "times as wide" in said


def test_what_is_remembered_is_never_the_corrected_band(run, known, store, tmp_path):
    remember(run, known, store)
    run("score", store, write(tmp_path / "slow.csv", (1024,), factor=3.0))
    remember(run, known, store, "--calibrated", store, target="2048")
    remember(run, known, tmp_path / "other.db", target="2048")
    (plain,) = prediction_store.predictions(tmp_path / "other.db")
    assert prediction_store.predictions(store)[-1].bands == plain.bands


def test_a_history_without_scores_corrects_nothing(run, known, store):
    remember(run, known, store)
    done = run("rank", known, "--target", "2048", "--calibrated", store)
    assert "has no scored prediction like these" in " ".join(done.out.split())
    plain = run("rank", known, "--target", "2048", "-f", "csv").out
    assert run("rank", known, "--target", "2048", "--calibrated", store, "-f", "csv").out == plain


def test_sets_of_runs_are_independent_only_without_a_common_run(run, store, tmp_path):
    for number in range(4):
        remember(run, write(tmp_path / f"app{number}.csv", SCALES, seed=number), store)
    assert header(run, store, write(tmp_path / "far.csv", (1024,)))["calibration"]["sets"] == 1
    other = tmp_path / "apart.db"
    for number in range(4):
        known = write(tmp_path / f"app{number}.csv", SCALES, seed=number)
        remember(run, known, other, "--label", f"run={number}")
        far = write(tmp_path / f"far{number}.csv", (1024,), seed=50 + number)
        run("score", other, far, "--label", f"run={number}")
    assert header(run, other)["calibration"]["sets"] == 4
    assert header(run, other, "--label", "run=2")["calibration"]["sets"] == 1


def test_another_machine_or_statistic_is_not_compared(run, known, store, tmp_path):
    remember(run, known, store, "--label", "machine=A")
    far = write(tmp_path / "far.csv", (1024,))
    run("score", store, far, "--label", "machine=B").fails(4, "has these labels")
    run("score", store, write(tmp_path / "f.csv", (512,))).fails(4, "no run is at", "p = 1024")
    run("score", store, far, "-m", "visits").fails(2, "no remembered prediction of 'visits'")


def test_the_directory_of_all_runs_is_no_part_of_a_prediction(run, store, tmp_path):
    for name in ("s44", "s45"):
        (tmp_path / name).mkdir()
    remember(run, write(tmp_path / "s44" / "app.csv", SCALES), store)
    done = run("score", store, write(tmp_path / "s45" / "far.csv", (1024,), seed=2))
    assert (done.status, "prediction bands hold" in done.out) == (0, True), done.err


def test_inclusive_predictions_are_held_against_inclusive_values(run, known, store, tmp_path):
    remember(run, known, store, "--inclusive")
    run("score", store, write(tmp_path / "far.csv", (1024,), noise=0))
    rows = {
        r["callpath"]: r for r in csv.DictReader(io.StringIO(run("score", store, "-f", "csv").out))
    }
    assert float(rows["main"]["measured[s]"]) == pytest.approx(sum(cost(n, 1024) for n in NAMES))
    assert rows["main"]["values"] == "inclusive"


def test_only_predictions_can_be_remembered_and_corrected(run, known, store):
    for option in ("--remember", "--calibrated"):
        run("rank", known, "--target", "inf", option, store).fails(2)
        run("rank", known, "--target", "128", option, store).fails(2)
        run("rank", known, "--target", "1024", "--group-by", "p", option, store).fails(
            2, f"{option} and --group-by exclude each other"
        )
    run("rank", known, "--target", "128", "--predicted", "--remember", store).fails(2, "are known")
    assert not store.exists()
    run("score", store).fails(3, "no such history")
    run("rank", known, "--target", "1024", "--label", "x").fails(2, "malformed")


def test_a_history_of_commits_keeps_predictions_in_the_same_file(run, known, store, tmp_path):
    added = run("watch", "add", store, known, "--commit", "c1", "--target", "1024")
    assert added.status == 0, added.err
    (record,) = prediction_store.predictions(store)
    assert record.commit == "c1"
    found = header(run, store, write(tmp_path / "far.csv", (1024,)))
    assert found["calibration"]["predictions"] == len(NAMES)
    assert [each.commit for each in read(store)] == ["c1"]
    assert run("watch", "status", store).status == 0


def test_a_history_without_predictions_says_so(run, known, store):
    run("watch", "add", store, known, "--commit", "c1")
    run("score", store).fails(4, "has no prediction", "--remember")


def test_the_page_needs_no_other_file(run, known, store, tmp_path):
    remember(run, known, store)
    run("score", store, write(tmp_path / "slow.csv", (1024,), factor=3.0))
    page = tmp_path / "scores.html"
    assert run("score", store, "-o", page).status == 0
    text = page.read_text()
    assert "main/f3" in text
    assert "does NOT hold" in text
    assert "http" not in text.replace("http://www.w3.org", "").replace("http-equiv", "")
    run("score", store, "-o", page).fails(6, "exists", "--force")
    assert run("score", store, "-o", page, "--force").status == 0


ODD = [None, True, -1, 0, 1.5, float("nan"), float("inf"), 1e308, 2**63, "x", "", "a\x1b[31m",
       "x" * 10_000, [], [1], {}, {"a": "b\nc"}, b"\xff\xfe"]  # fmt: skip


def changed(store, sql, *values):
    with sqlite3.connect(store) as database:
        database.execute(sql, values)
    database.close()


def digest_of(content, kind):
    """Return the digest that a hostile writer would compute; none if the types are wrong."""
    try:
        return prediction_store._digest(msgspec.msgpack.decode(content, type=kind))
    except msgspec.DecodeError:
        return b"none"


@pytest.mark.parametrize("kind", [PredictionRecord, OutcomeRecord])
def test_hostile_records_are_one_error_or_numbers(run, known, store, tmp_path, kind):
    """Every field gets odd values, with a correct checksum and a correct digest."""
    remember(run, known, store)
    run("score", store, write(tmp_path / "far.csv", (1024,)))
    table = prediction_store.PREDICTIONS if kind is PredictionRecord else prediction_store.OUTCOMES
    read_again = getattr(prediction_store, f"{table}s")
    original = msgspec.msgpack.decode(msgspec.msgpack.encode(read_again(store)[0]))
    statuses = set()
    for name, value in original.items():
        others = [value[:-1], value[::-1], [*value, *value]] if isinstance(value, list) else []
        for odd in [*ODD, *others, *([[each] * len(value) for each in ODD] if others else [])]:
            content = msgspec.msgpack.encode({**original, name: odd})
            payload = zlib.compress(content)
            changed(
                store,
                f"UPDATE {table} SET payload = ?, checksum = ?, digest = ?",  # noqa: S608
                *(payload, zlib.crc32(payload), digest_of(content, kind)),
            )
            try:
                read_again(store)
            except CallpathModelerError as error:
                refused = error
            else:
                refused = None
            if refused is None:
                done = run("score", store, "-f", "json")
                statuses.add(done.status)
                assert done.status == 0, (name, odd, done.err)
                assert run("rank", known, "--target", "2048", "--calibrated", store).status == 0
            else:
                assert refused.message.isprintable()
                assert refused.hint
    assert statuses == {0}


@pytest.mark.parametrize("column", ["payload", "digest", "time", "commit_id"])
def test_changed_columns_are_one_error(run, known, store, column):
    remember(run, known, store)
    changed(store, f"UPDATE prediction SET {column} = ?", b"\xff\x00")  # noqa: S608
    run("score", store).fails(3, "damaged")
    run("rank", known, "--target", "2048", "--calibrated", store).fails(3, "damaged")


def test_changed_bytes_of_the_file_are_one_error_or_nothing(run, known, store):
    remember(run, known, store)
    changed(store, "PRAGMA journal_mode = DELETE")
    whole = store.read_bytes()
    random = np.random.default_rng(3)
    for _ in range(60):
        content = bytearray(whole)
        for place in random.integers(0, len(whole), 5).tolist():
            content[place] = int(random.integers(0, 256))
        store.write_bytes(bytes(content))
        done = run("score", store)
        assert done.status in {0, 3}
        assert "Traceback" not in done.err
