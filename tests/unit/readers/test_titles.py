from __future__ import annotations

from callpath_modeler.readers.paths import is_measured, is_processes, read_title
from cells import cells


@cells(
    ("title", "name", "unit", "factor", "inclusive", "additive"),
    [
        ("time", "time", "s", 1.0, None, True),
        ("time_incl_sum_s", "time_sum", "s", 1.0, True, True),
        ("time_excl_max_us", "time_max", "s", 1e-6, False, True),
        ("time_incl_max_us", "time_incl_max_us", "s", 1e-6, True, False),
        ("inclusive#sum#time.duration", "sum_time_duration", "s", 1.0, True, True),
        ("Total time (I)", "Total time", "I", 1.0, None, True),
        ("time (inc) [ms]", "time", "s", 1e-3, True, True),
        ("exclusive_s_sum", "time_sum", "s", 1.0, False, True),
        ("latency_us_median", "latency_median", "s", 1e-6, None, True),
        ("ms", "time", "s", 1e-3, None, True),
        ("s", "s", "1", 1.0, None, True),
        ("bytes_sent", "bytes_sent", "B", 1.0, None, True),
        ("energy[J]", "energy", "J", 1.0, None, True),
        ("time_ratio", "time_ratio", "1", 1.0, None, False),
        ("std of time", "std of time", "s", 1.0, None, False),
        ("PAPI_TOT_INS", "PAPI_TOT_INS", "1", 1.0, None, True),
        ("[]", "[]", "1", 1.0, None, True),
        ("", "", "1", 1.0, None, True),
    ],
)
def test_titles_tell_metric_unit_and_flavour(title, name, unit, factor, inclusive, additive):
    read = read_title(title)
    assert (read.name, read.unit, read.factor) == (name, unit, factor)
    assert (read.inclusive, read.additive) == (inclusive, additive)


def test_a_unit_that_is_said_elsewhere_counts():
    assert read_title("wait", "ms").factor == 1e-3
    assert read_title("time", "B").unit == "B"


def test_numbers_of_processes_have_many_names():
    names = ("p", "Ranks", "mpi.world.size", "n_procs", "ntasks", "Processes")
    assert all(map(is_processes, names))
    assert not any(map(is_processes, ("rank", "process", "n", "threads", "tasks", "size")))


def test_measured_quantities_are_told_from_parameters():
    assert all(
        map(is_measured, ("time", "seconds", "visits", "ci_left", "wait [ms]", "x (inc)", "bytes"))
    )
    assert not any(map(is_measured, ("n", "p", "s", "size", "grid [cells]", "threads")))
