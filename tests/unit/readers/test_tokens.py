from __future__ import annotations

from callpath_modeler.readers.tokens import NameWord, columns_of, tokens_in, word_of
from cells import cells


@cells(
    ("name", "found"),
    [
        ("app.p64.n1e6.r1", {"p": 64, "n": 1e6, "r": 1}),
        ("mm.x1000y1z1.r1", {"x": 1000, "y": 1, "z": 1, "r": 1}),
        ("mm.x1,25.y1,5", {"x": 1.25, "y": 1.5}),
        ("app_p=64_size=2.5", {"p": 64, "size": 2.5}),
        ("ntasks_16_threads_2", {"ntasks": 16, "threads": 2}),
        ("16_ranks_2_threads", {"ranks": 16, "threads": 2}),
        ("p_16_t_2", {"p": 16, "t": 2}),
        ("16ranks", {"ranks": 16}),
        ("2nodes-96tasks", {"nodes": 2, "tasks": 96}),
        ("lulesh-16cores", {"cores": 16}),
        ("num_ranks-16_ntasks-per-node_8", {"num_ranks": 16, "ntasks-per-node": 8}),
        ("n64k", {"n": 64000}),
        ("512MB", {"size": 512e6}),
        ("10x20x30", {"": 30}),
        ("16", {"": 16}),
        ("no numbers here", {}),
        ("", {}),
    ],
)
def test_numbers_in_names_belong_to_words(name, found):
    assert {t.word.replace("_per_", "-per-").replace("tasks_", "tasks-"): t.value
            for t in tokens_in(name)} == found  # fmt: skip


@cells(
    "name",
    [
        "2024-05-17T10:22:33Z",
        "20240517_102233",
        "run-550e8400-e29b-41d4-a716-446655440000",
        "a3f9c2e1b4",
        "x1000c0s0b0n1",
        "12345678901234567890",
    ],
)
def test_dates_hashes_and_nodes_are_no_numbers(name):
    assert tokens_in(name) == []


def test_words_have_meanings():
    words = {
        "nprocs": NameWord.PROCESSES,
        "OMP_NUM_THREADS": NameWord.THREADS,
        "jobid": NameWord.IDENTIFIER,
        "slurm_job_id": NameWord.IDENTIFIER,
        "problem_size": NameWord.SIZE,
        "trial": NameWord.REPETITION,
        "cells_per_rank": NameWord.SIZE,
        "solver": NameWord.OTHER,
    }
    assert {word: word_of(word) for word in words} == words


def test_what_the_file_lacks_is_taken_from_the_directories_above():
    columns = columns_of([["app_p16-n100", "p16"], ["app-n200", "p8"], ["app_p4", "n400"]])
    assert {c.label: c.values for c in columns} == {"p": (16, 8, 4), "n": (100, 200, 400)}


def test_numbers_of_the_directory_of_all_runs_are_marked():
    runs = [[f"app.p{p}.n30", "s44.n30", "old"] for p in (8, 16)]
    assert {c.label: c.common for c in columns_of(runs)} == {"p": False, "n": False, "s": True}
    apart = [["profile", f"p{p}.s44", "runs"] for p in (8, 16)]
    assert {c.label: c.common for c in columns_of(apart)} == {"p": False, "s": False}


def test_a_number_behind_a_count_is_another_number():
    names = [[f"lulesh.p{p}.{r}", "runs"] for p in (8, 27) for r in (1, 2)]
    assert [(c.label, c.values) for c in columns_of(names)] == [
        ("p", (8, 8, 27, 27)),
        ("", (1, 2, 1, 2)),
    ]
    sizes = [[f"x{x}", "runs"] for x in ("1.25", "1.5", "2")]
    assert [c.values for c in columns_of(sizes)] == [(1.25, 1.5, 2)]


def test_counts_under_several_words_are_one_column():
    names = [["x", "ntasks_4"], ["x", "p_8"], ["x", "16ranks"]]
    assert [c.values for c in columns_of(names)] == [(4, 8, 16)]
