from __future__ import annotations

import gzip
import re

import numpy as np
import pytest

import benchmark_output
from callpath_modeler.errors import DataError, InputError
from cells import cells
from cpmodel_guidelines.campaigns.campaign import Detail, experiment_of
from cpmodel_guidelines.suites.files import benchmark_files, read_campaign

HEAD = "#@nprocs=4\n"
PLAIN = HEAD + "test nrep count runtime_sec\n"
WINDOW = HEAD + "test nrep count errorcode runtime_sec\n"
PROCESSES = HEAD + "process test nrep count loc_tstart_sec loc_tend_sec gl_tstart_sec gl_tend_sec\n"
SUMMARY = HEAD + "test count total_nrep valid_nrep mean_sec median_sec min_sec max_sec\n"
NREP = HEAD + "test nrep count mean_runtime_sec median_runtime_sec pred_method pred_value\n"
OSU = "\n# OSU MPI Bcast Latency Test v5.6.1\n# Size       Avg Latency(us)\n"
IMB = ("#    Intel(R) MPI Benchmarks 2021.2, MPI-1 part\n# Benchmarking Bcast\n# #processes = 4\n"
       "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n")  # fmt: skip
SKAMPI = '# SKaMPI Version 5.0 rev. 191\nbegin result "MPI_Bcast-nodes-length"\n'
CSV = "call,p,size,repetition,latency_us\n"
CHECKER = "MPI Collective: MPI_Gather\nmockup message_size run_id runtime\n"


def campaign(tmp_path, *texts, name="out.p4.r{}.txt"):
    for number, text in enumerate(texts):
        (tmp_path / name.format(number)).write_text(text)
    files = benchmark_files([str(tmp_path / name.format(k)) for k in range(len(texts))])
    assert files is not None
    return read_campaign(files)


def times_of(found):
    return {
        (each.cell.function, each.cell.size, each.mpirun): each.times.tolist()
        for each in found.measurements
    }


# Forms of each suite.


@pytest.mark.parametrize("title", ["count", "msize", "msize_bytes"])
def test_observations_of_one_mpirun_stay_together(tmp_path, title):
    text = PLAIN.replace("count", title) + "MPI_Bcast 0 8 1e-6\nMPI_Bcast 1 8 3e-6\n"
    found = campaign(tmp_path, text, text.replace("3e-6", "5e-6"))
    assert times_of(found) == {
        ("MPI_Bcast", 8.0, 1): [1e-6, 3e-6],
        ("MPI_Bcast", 8.0, 2): [1e-6, 5e-6],
    }
    assert found.medians().tolist() == pytest.approx([2e-6, 3e-6])
    assert found.mpiruns() == {("", 4): 2}


def test_a_count_of_elements_is_converted_to_bytes(tmp_path):
    text = "#@datatype_size_bytes=8\n" + PLAIN + "MPI_Bcast 0 16 1e-6\n"
    assert {size for _, size, _ in times_of(campaign(tmp_path, text))} == {128.0}
    text = text.replace("count", "msize_bytes")
    assert {size for _, size, _ in times_of(campaign(tmp_path, text))} == {16.0}


def test_repetitions_with_an_error_code_are_dropped_and_told(tmp_path):
    found = campaign(tmp_path, WINDOW + "MPI_Bcast 0 8 3 9e-6\nMPI_Bcast 1 8 0 2e-6\n")
    assert times_of(found) == {("MPI_Bcast", 8.0, 1): [2e-6]}
    assert [(each.code, each.message) for each in found.findings] == [
        ("CPM305", "1 line not used, the first is 3")
    ]


@pytest.mark.parametrize(("kind", "expected"), [("local", 5.0), ("global", 9.0)])
def test_times_of_processes_are_joined_as_the_file_says(tmp_path, kind, expected):
    rows = "0 MPI_Bcast 0 8 0 2 10 12\n1 MPI_Bcast 0 8 0 5 14 19\n"
    text = f"#@runtime_type={kind}\n" + PROCESSES.replace("nprocs=4", "nprocs=2") + rows
    assert times_of(campaign(tmp_path, text)) == {("MPI_Bcast", 8.0, 1): [expected]}


def test_summaries_and_predictions_have_one_median(tmp_path):
    found = campaign(tmp_path, SUMMARY + "MPI_Bcast 8 20 20 9e-6 2e-6 1e-6 5e-5\n")
    assert times_of(found) == {("MPI_Bcast", 8.0, 1): [2e-6]}
    assert {each.detail for each in found.measurements} == {Detail.MEDIANS}
    rows = "MPI_Bcast 50 8 9e-6 3e-6 rse 0.01\nMPI_Bcast 50 8 9e-6 3e-6 cov_mean 0.02\n"
    assert times_of(campaign(tmp_path, NREP + rows)) == {("MPI_Bcast", 8.0, 1): [3e-6]}


def test_the_table_of_the_published_code_names_its_mpiruns(tmp_path):
    text = (
        "test,msize,nexp,ci_lower,ci_upper,tmean,ssize,sd,tmedian,q1,q3\n"
        "MPI_Bcast,8,1,1,1,9e-6,44,1,2e-6,1,1\nMPI_Bcast,8,2,1,1,9e-6,44,1,3e-6,1,1\n"
    )
    assert times_of(campaign(tmp_path, text)) == {
        ("MPI_Bcast", 8.0, 1): [2e-6],
        ("MPI_Bcast", 8.0, 2): [3e-6],
    }


def test_messages_of_the_system_between_rows_are_told(tmp_path):
    text = PLAIN + "MPI_Bcast 0 8 1e-6\n[node1:22] WARNING: no device\nMPI_Bcast 1 8 3e-6\n"
    found = campaign(tmp_path, text)
    assert times_of(found) == {("MPI_Bcast", 8.0, 1): [1e-6, 3e-6]}
    assert found.findings[0].message == "1 line not used, the first is 4"


def test_each_start_of_a_benchmark_in_a_file_is_an_mpirun(tmp_path):
    part = "#Command-line arguments: x\n" + PLAIN + "MPI_Bcast 0 8 1e-6\n"
    assert campaign(tmp_path, part * 3).mpiruns() == {("", 4): 3}
    assert campaign(tmp_path, (OSU + "8 1.5\n") * 2).mpiruns() == {("", 4): 2}


@cells(
    ("text", "sizes"),
    [
        (OSU.replace("Bcast", "Reduce_scatter") + "64 1.5\n", {16.0}),
        (OSU.replace("Bcast", "Gather") + "64 1.5\n", {64.0}),
        (IMB.replace("Bcast", "Reduce_scatter_block") + "64 1000 1 2 1.5\n", {16.0}),
        (IMB.replace("Bcast", "Allgather") + "64 1000 1 2 1.5\n", {64.0}),
        (SKAMPI.replace("Bcast", "Reduce_scatter") + "nodes= 4 count= 64 64 1.5 0.1 54\n", {16.0}),
        (PLAIN + "MPI_Reduce_scatter 0 64 1.5e-6\n", {64.0}),
    ],
)
def test_every_suite_has_its_convention_of_sizes(tmp_path, text, sizes):
    found = campaign(tmp_path, text)
    assert {each.cell.size for each in found.measurements} == sizes
    assert [each.times.tolist() for each in found.measurements] == [pytest.approx([1.5e-6])]


@cells(
    ("title", "function"),
    [
        ("OSU MPI All-to-All Personalized Exchange Latency Test v5.6.1", "MPI_Alltoall"),
        ("OSU MPI All-to-Allv Personalized Exchange Latency Test v7.3", "MPI_Alltoallv"),
        ("OSU MPI Broadcast Latency Test v7.0", "MPI_Bcast"),
        ("OSU MPI-CUDA Allreduce Latency Test v5.9", "MPI_Allreduce"),
        ("OSU MPI Reduce_scatter Latency Test v6.2", "MPI_Reduce_scatter"),
        ("OSU MPI Latency Test v5.6.1", "Latency"),
    ],
)
def test_titles_of_osu_name_functions(tmp_path, title, function):
    text = f"# {title}\n# Datatype: MPI_CHAR.\n# Size          Latency (us)\n64 1.5\n"
    assert {name for name, *_ in times_of(campaign(tmp_path, text))} == {function}


def test_a_barrier_has_no_size(tmp_path):
    text = "# OSU MPI Barrier Latency Test v5.6.1\n# Avg Latency(us)\n   7.47\n"
    assert times_of(campaign(tmp_path, text)) == {("MPI_Barrier", 0.0, 1): [pytest.approx(7.47e-6)]}
    text = IMB.replace("Bcast", "Barrier").replace("#bytes ", "       ") + " 1000 1 2 7.47\n"
    assert times_of(campaign(tmp_path, text)) == {("MPI_Barrier", 0.0, 1): [pytest.approx(7.47e-6)]}


def test_a_table_of_the_checker_names_functions_by_its_title(tmp_path):
    text = CHECKER + "default 8 0 0.000002\ngather_as_reduce 8 0 0.000003\n"
    found = campaign(tmp_path, text)
    assert times_of(found) == {
        ("MPI_Gather", 8.0, 1): [2e-6],
        ("gather_as_reduce", 8.0, 1): [3e-6],
    }
    text = "MPI Collective: MPI_Gather\nmessage_size mockup median_ms\n8 default 0.002\n"
    assert times_of(campaign(tmp_path, text)) == {("MPI_Gather", 8.0, 1): [2e-6]}


GROUPED = """MPI Collective: MPI_Gather
collective  count  N  ppn  n  default_median  slowdown  fastest_mockup  mockup_median
MPI_Gather  8      2  4    50 0.055953
MPI_Gather  1024   2  4    50 0.035328        1.4       gather_as_gatherv  0.025000
"""


def test_a_grouped_table_of_the_checker_has_times_of_its_collective(tmp_path):
    found = campaign(tmp_path, GROUPED)
    times = {(each.cell.function, each.cell.size): each.times for each in found.measurements}
    # Mock-ups are in the table only where they are faster, so they are a biased sample.
    assert times == {
        ("MPI_Gather", 8.0): pytest.approx([55.953e-6]),
        ("MPI_Gather", 1024.0): pytest.approx([35.328e-6]),
    }
    assert {(each.processes, each.detail) for each in found.measurements} == {(8, Detail.MEDIANS)}
    (told,) = found.findings
    assert (told.code, told.count) == ("CPM305", 1)
    assert "1 time of mock-ups not used: this table only has those that are faster" in told.message


def test_a_row_of_a_grouped_table_is_checked(tmp_path):
    with pytest.raises(InputError, match="line 3: 5 cells instead of 9"):
        campaign(tmp_path, GROUPED.replace(" 50 0.055953", " 50"))
    with pytest.raises(InputError, match="line 3: time 'x' is not a number"):
        campaign(tmp_path, GROUPED.replace("0.055953", "x"))


RATIOS = "MPI Collective: MPI_Gather\nmessage_size mockup relative_runtime\n8 default 1\n"


def test_a_table_of_ratios_is_refused_with_the_reason(tmp_path):
    folder = tmp_path / "rel_runtime"
    folder.mkdir()
    (folder / "MPI_Gather.txt").write_text(RATIOS)
    for source in (folder, folder / "MPI_Gather.txt"):
        with pytest.raises(InputError, match="has ratios, and no times") as caught:
            benchmark_files([str(source)])
        assert "raw" in caught.value.hint


def test_a_table_of_ratios_beside_times_is_left_out(tmp_path):
    (tmp_path / "rel.txt").write_text(RATIOS)
    (tmp_path / "raw.p4.txt").write_text(CHECKER + "default 8 0 0.000002\n")
    found = benchmark_files([str(tmp_path)])
    assert [each.path.name for each in found.files] == ["raw.p4.txt"]


def test_a_file_of_the_checker_names_its_mock_up_in_its_name(tmp_path):
    path = tmp_path / "data_MPI_Gather_gather_as_reduce.dat"
    path.write_text(PLAIN + "MPI_Gather 0 8 1e-6\n")
    found = read_campaign(benchmark_files([str(path)]))
    assert {name for name, *_ in times_of(found)} == {"gather_as_reduce"}


def test_a_table_of_the_user_may_have_libraries_scales_and_mpiruns(tmp_path):
    text = "library,function,p,size,mpirun,time_us\nA,MPI_Bcast,4,8,1,2\nB,MPI_Bcast,8,8.0,1,3\n"
    found = campaign(tmp_path, text)
    assert {(each.series, each.cell.size) for each in found.measurements} == {
        (("A", 4), 8.0),
        (("B", 8), 8.0),
    }


def test_equal_sizes_in_different_notations_are_one_size(tmp_path):
    text = CSV + "MPI_Bcast,4,8,1,2\nMPI_Bcast,4,8.0,2,3\nMPI_Bcast,4,8e0,3,4\n"
    found = campaign(tmp_path, text)
    assert {each.cell.size for each in found.measurements} == {8.0}
    assert found.mpiruns() == {("", 4): 3}


def test_packed_files_are_read(tmp_path):
    path = tmp_path / "mpi_bench_r0.dat.gz"
    path.write_bytes(gzip.compress((PLAIN + "MPI_Bcast 0 8 1e-6\n").encode()))
    assert times_of(read_campaign(benchmark_files([str(tmp_path)]))) == {
        ("MPI_Bcast", 8.0, 1): [1e-6]
    }


def test_times_of_zero_are_told_with_their_line(tmp_path):
    found = campaign(tmp_path, OSU + "8 0.00\n16 1.5\n")
    assert {size for _, size, _ in times_of(found)} == {16.0}
    assert [(each.code, each.message) for each in found.findings] == [
        ("CPM303", "1 time of zero, the first in line 4")
    ]


# Files and folders.


def test_libraries_are_named_by_the_user(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "r0.dat").write_text(PLAIN + "MPI_Bcast 0 8 1e-6\n")
    files = benchmark_files([f"Open MPI={tmp_path / 'a'}", f"MPICH={tmp_path / 'b'}"])
    assert read_campaign(files).mpiruns() == {("Open MPI", 4): 1, ("MPICH", 4): 1}


def test_the_user_states_the_number_of_processes(tmp_path):
    path = tmp_path / "osu_bcast.txt"
    path.write_text(OSU + "8 1.5\n")
    assert read_campaign(benchmark_files([str(path)], 16)).mpiruns() == {("", 16): 1}
    with pytest.raises(InputError, match="line 4: the number of processes is not stated"):
        read_campaign(benchmark_files([str(path)]))


def test_folders_above_the_given_one_say_nothing_about_processes(tmp_path):
    folder = tmp_path / "p1234" / "osu.p8" / "latencies"
    folder.mkdir(parents=True)
    (folder / "osu_bcast.txt").write_text(OSU + "8 1.5\n")
    found = read_campaign(benchmark_files([str(folder.parent)]))
    assert found.mpiruns() == {("", 8): 1}
    with pytest.raises(InputError, match="the number of processes is not stated"):
        read_campaign(benchmark_files([str(folder)]))


def test_functions_that_are_measured_by_other_programs_have_their_own_mpiruns(tmp_path):
    for number in range(3):
        for name in ("Bcast", "Reduce"):
            text = OSU.replace("Bcast", name) + f"8 1.{number}\n"
            (tmp_path / f"osu_{name}.p4.r{number}.txt").write_text(text)
    found = read_campaign(benchmark_files([str(tmp_path)]))
    assert {each.mpirun for each in found.measurements} == {1, 2, 3}
    assert len(found.measurements) == 6


def test_of_two_files_with_the_same_times_the_more_detailed_one_is_used(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "r0.dat").write_text(PLAIN + "MPI_Bcast 0 8 1e-6\n")
    (tmp_path / "summary.p4.csv").write_text("test,msize,nexp,tmedian\nMPI_Bcast,8,1,2e-6\n")
    found = read_campaign(benchmark_files([str(tmp_path)]))
    assert times_of(found) == {("MPI_Bcast", 8.0, 1): [1e-6]}
    assert [each.code for each in found.findings] == ["CPM304"]


def test_one_bad_file_of_several_is_told_and_the_others_are_used(tmp_path):
    good, bad = PLAIN + "MPI_Bcast 0 8 1e-6\n", PLAIN + "MPI_Bcast 0 8\n"
    found = campaign(tmp_path, good, bad)
    assert found.mpiruns() == {("", 4): 1}
    assert [each.code for each in found.findings] == ["CPM101"]
    with pytest.raises(InputError, match="line 3"):
        campaign(tmp_path, bad, bad)


def test_folders_of_pgmpi_have_their_list_and_their_number_of_processes(tmp_path):
    raw = tmp_path / "02-experiment_exec" / "jobs" / "raw_data"
    raw.mkdir(parents=True)
    (raw / "mpi_bench_r0.dat").write_text("test nrep msize runtime_sec\nMPI_Bcast 0 8 1e-6\n")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "guideline_conf.json").write_text('{"procs": 16, "nmpiruns": 5}')
    (tmp_path / "config" / "guideline_catalog.json").write_text("[]")
    files = benchmark_files([str(tmp_path)])
    assert [path.name for path in files.catalogues] == ["guideline_catalog.json"]
    assert read_campaign(files).mpiruns() == {("", 16): 1}


def test_other_files_are_no_benchmarks(tmp_path, samples):
    path = tmp_path / "notes.txt"
    path.write_text("MPI_Bcast is slow\n")
    assert benchmark_files([str(path)]) is None
    assert benchmark_files([str(samples / "lulesh")]) is None
    (tmp_path / "r0.dat").write_text(PLAIN + "MPI_Bcast 0 8 1e-6\n")
    with pytest.raises(InputError, match=r"notes\.txt: not the output of a known benchmark"):
        benchmark_files([str(tmp_path / "r0.dat"), str(path)])


def test_too_many_combinations_are_refused(tmp_path):
    rows = [f"F{k},4,{k},1,1\n" for k in range(6000)]
    found = campaign(tmp_path, CSV + "".join(rows))
    with pytest.raises(DataError, match="too many combinations"):
        experiment_of(found)


# Malformed files. Each has one fault, and the message names its line.

MALFORMED = [
    (PLAIN + "MPI_Bcast 0 8 1e-6\nMPI_Bcast 1 8\n", 4, "3 cells instead of 4"),
    (PLAIN + "MPI_Bcast 0 8 1e-6 MPI_Bcast 1 8 1e-6\n", 3, "8 cells instead of 4"),
    (PLAIN + "MPI_Bcast 0 8 fast\n", 3, "time 'fast' is not a number"),
    (PLAIN + "MPI_Bcast 0 8 nan\n", 3, "time 'nan' is not a number"),
    (PLAIN + "MPI_Bcast 0 8 inf\n", 3, "time 'inf' is not a number"),
    (PLAIN + "MPI_Bcast 0 8 1e-6\nMPI_Bcast 1 8 -1e-6\n", 4, "a time of -1e-06 s is negative"),
    (PLAIN + "MPI_Bcast 0 8 1_0\n", 3, "time '1_0' is not a number"),
    (PLAIN + "MPI_Bcast 0 -8 1e-6\n", 3, "message size '-8'"),
    (PLAIN + "MPI_Bcast 0 8.5 1e-6\n", 3, "message size '8.5'"),
    (PLAIN + "MPI_Bcast 0 many 1e-6\n", 3, "message size 'many'"),
    (PLAIN.replace("=4", "=0") + "MPI_Bcast 0 8 1e-6\n", 1, "number of processes '0'"),
    (PLAIN.replace("=4", "=-2") + "MPI_Bcast 0 8 1e-6\n", 1, "number of processes '-2'"),
    (PLAIN.replace("=4", "=two") + "MPI_Bcast 0 8 1e-6\n", 1, "number of processes 'two'"),
    ("#@datatype_size_bytes=0\n" + PLAIN + "MPI_Bcast 0 8 1e-6\n", 1, "size of a datatype '0'"),
    (HEAD + "MPI_Bcast 0 8 1e-6\n", 2, "a row before the titles of the columns"),
    (HEAD, 1, "the titles of the columns are missing"),
    (WINDOW + "MPI_Bcast 0 8 x 1e-6\n", 3, "error code 'x'"),
    (PROCESSES + "0 MPI_Bcast 0 8 0 2 0 2\n", 3, "1 of 4 processes report repetition 0"),
    (PROCESSES + "0 MPI_Bcast 0 8 5 2 0 2\n", 3, "the end is before the begin"),
    (SUMMARY + "MPI_Bcast 8 20 20 9e-6 2e-6 1e-6\n", 3, "7 cells instead of 8"),
    (CSV + "MPI_Bcast,4,8,1,2\nMPI_Bcast,0,8,1,2\n", 3, "number of processes '0'"),
    (CSV + "MPI_Bcast,4,8,1,-2\n", 2, "is negative"),
    (CSV + "MPI_Bcast,4,8,1\n", 2, "4 cells instead of 5"),
    (CSV + ",4,8,1,2\n", 2, "the name of the function is missing"),
    (CSV + "MPI_Bcast,4,8,1.5,2\n", 2, "number of the mpirun '1.5'"),
    (CSV + "F" * 300 + ",4,8,1,2\n", 2, "is not the name of a function"),
    (OSU + "8 1.5\n16\n", 5, "1 cell instead of 2"),
    (OSU + "8 -1.5\n", 4, "is negative"),
    (OSU + "8.5 1.5\n", 4, "message size '8.5'"),
    ("# OSU MPI Bcast Latency Test v5.6.1\n8 1.5\n", 2, "a row before the titles"),
    (OSU, 3, "the file has no row"),
    (OSU.replace("Avg Latency(us)", "Bandwidth (MB/s)") + "8 1.5\n", 3, "is not a latency"),
    (OSU.replace("(us)", "(years)") + "8 1.5\n", 3, "the unit of"),
    (IMB + "8 1000 1 2\n", 5, "4 cells instead of 5"),
    (IMB + "8 1000 1 2 x\n", 5, "time 'x' is not a number"),
    (IMB.replace("= 4", "= 0") + "8 1000 1 2 1.5\n", 3, "number of processes '0'"),
    (IMB.replace("t_avg[usec]", "Mbytes/sec"), 4, "no column has times"),
    (SKAMPI + "nodes= 4 count= 8\n", 3, "has no time"),
    (SKAMPI + "nodes= 0 count= 8 8 1.5 0.1 54\n", 3, "number of processes '0'"),
    (SKAMPI + "nodes= 4 count= 8 8 x 0.1 54\n", 3, "time 'x' is not a number"),
    (CHECKER + "default 8 0\n", 3, "3 cells instead of 4"),
]  # fmt: skip


@cells(("text", "line", "what"), MALFORMED)
def test_a_malformed_file_is_one_error_at_its_line(tmp_path, text, line, what):
    with pytest.raises(InputError) as caught:
        campaign(tmp_path, text)
    assert re.search(rf"out\.p4\.r0\.txt: line {line}: .*{re.escape(what)}", caught.value.message)
    assert "\n" not in caught.value.message
    assert caught.value.hint


@cells(
    ("text", "hint"),
    [
        (PLAIN + "MPI_Bcast 0 8 0,0000042\n", "write decimal points, e.g. 0.0000042: "),
        (CSV.replace(",", ";") + "MPI_Bcast;4;8;1;4,25\n", "write decimal points, e.g. 4.25: "),
        (CSV + "MPI_Bcast,4,8,1,4,25\n", "if numbers have decimal commas, write points; "),
        (OSU + "8 1,5\n", "write decimal points, e.g. 1.5: "),
        (OSU + "8 fast\n", "run the benchmark again"),
    ],
)
def test_the_hint_for_decimal_commas_says_what_to_do(tmp_path, text, hint):
    with pytest.raises(InputError) as caught:
        campaign(tmp_path, text)
    assert caught.value.hint.startswith(hint)


@cells(
    ("text", "what"),
    [
        ("{}", "not a list of guidelines"),
        ("[1]", "guideline 1 is not an object"),
        ('[{"orig": 1}]', "orig and mock are not names"),
        ('[{"orig": "MPI_Bcast", "msizes": [true]}]', "msizes is not a list"),
        ('[{"orig": "MPI_Bcast", "what": 1}]', "unknown key 'what'"),
        ("[", "line 1: not JSON"),
    ],
)
def test_a_malformed_list_of_pgmpi_is_one_error(tmp_path, text, what):
    from cpmodel_guidelines.suites.pgmpi import read_catalogue

    path = tmp_path / "guideline_catalog.json"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(what)):
        read_catalogue(path)


# Measured files.


def test_measured_files_of_every_form_are_read(shared_data):
    home = shared_data / "mpi_guidelines"
    found = read_campaign(benchmark_files([str(home / "pgchecker_p4")]))
    assert found.mpiruns() == {("", 4): 2}
    assert {each.detail for each in found.measurements} == {Detail.OBSERVATIONS}
    assert len({each.cell.function for each in found.measurements}) == 9
    found = read_campaign(benchmark_files([str(home / "osu_p4")]))
    assert found.mpiruns() == {("", 4): 3, ("", 2): 1}
    for name, count in (("plain", 20), ("verbose", 5), ("roundtime", 50)):
        found = read_campaign(benchmark_files([str(home / "reprompi_new_p4" / f"{name}.dat")]))
        assert {len(each.times) for each in found.measurements} == {count}


def test_medians_are_those_of_the_published_code(shared_data):
    import csv

    for name in ("openmpi414_p4", "openmpi414_p8", "openmpi414_quiet_p2", "openmpi414_quiet_p4"):
        home = shared_data / "mpi_guidelines" / name
        with (home / "results" / "summary.csv").open() as file:
            known = {
                (row["test"], float(row["msize"]), int(row["nexp"])): float(row["tmedian"])
                for row in csv.DictReader(file)
            }
        found = read_campaign(benchmark_files([str(home / "raw_data")]))
        keys = [(each.cell.function, each.cell.size, each.mpirun) for each in found.measurements]
        assert {*keys} == {*known}
        expected = [known[key] for key in keys]
        np.testing.assert_allclose(found.medians(without_outliers=True), expected, rtol=1e-14)


@pytest.mark.parametrize("suite", ["reprompi", "osu", "imb", "skampi"])
def test_the_forms_of_one_library_have_the_same_sizes(tmp_path, suite):
    folder = benchmark_output.write(tmp_path, suite, benchmark_output.flawless, mpiruns=1)
    found = read_campaign(benchmark_files([str(folder)]))
    known = benchmark_output.times(benchmark_output.flawless, 0)
    assert {(each.cell.function, each.cell.size) for each in found.measurements} == {
        (f"MPI_{name}", size) for name, size in known
    }
    for each, time in zip(found.measurements, found.medians().tolist(), strict=True):
        key = each.cell.function.removeprefix("MPI_"), each.cell.size
        assert time == pytest.approx(known[key] * 1e-6, rel=2e-3)
