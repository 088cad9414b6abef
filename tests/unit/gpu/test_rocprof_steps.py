"""Steps in files of rocprofv3: ranges of ROCTx with a number."""

import numpy as np
import pytest

from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.base import StepRange
from cpmodel_gpu import RocpdReader, RocprofReader
from cpmodel_gpu.steps import NumberedRange, steps_of
from tests.rocpd_writer import Database

STEPS = 6
_CALLS = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp"
_KERNELS = "Kernel_Name,Agent_Id,Queue_Id,Correlation_Id,Start_Timestamp,End_Timestamp"


def windows():
    """Yield number, start and end of the steps, which take 1000 to 1050 ns."""
    at = 1000
    for step in range(STEPS):
        yield step, at, at + 1000 + 10 * step
        at += 1200


def database(path):
    written = Database(path)
    written.range("main", 0, 20_000, 900)
    for step, start, end in windows():
        written.range(f"step {step}", start, end, 100 + step)
        written.call("hipLaunchKernel", start + 10, start + 20, 200 + step)
        written.kernel("add(int)", start + 30, start + 300, 200 + step)
    written.close()
    return path


def traces(folder):
    folder.mkdir()
    ranges = ["MARKER_CORE_API,main,7,7,900,0,20000"]
    calls, kernels = [], []
    for step, start, end in windows():
        ranges.append(f"MARKER_CORE_API,step {step},7,7,{100 + step},{start},{end}")
        calls.append(f"HIP,hipLaunchKernel,7,7,{200 + step},{start + 10},{start + 20}")
        kernels.append(f"add(int),4,1,{200 + step},{start + 30},{start + 300}")
    for name, titles, rows in (
        ("marker_api", _CALLS, ranges), ("hip_api", _CALLS, calls), ("kernel", _KERNELS, kernels)
    ):  # fmt: skip
        (folder / f"77_{name}_trace.csv").write_text("\n".join((titles, *rows)) + "\n")
    return folder


FORMS = {
    "rocpd": (RocpdReader, lambda folder: database(folder / "77_results.db")),
    "csv": (RocprofReader, lambda folder: traces(folder / "run")),
}


@pytest.fixture(params=FORMS)
def profile(request, tmp_path):
    reader, write = FORMS[request.param]
    with reader().open(write(tmp_path)) as found:
        yield found


def visits(profile, metric):
    tree = profile.call_tree
    found = profile.reduce(metric, Reduction.MAX).exclusive
    rows = range(1, len(tree))
    return {tree.path(row): found[row] for row in rows if found[row]}


def test_numbered_ranges_are_one_call_path(profile):
    assert visits(profile, "visits") == {
        "main": 1, "main/step": STEPS, "main/step/hipLaunchKernel": STEPS
    }  # fmt: skip
    assert [each.role for each in profile.call_tree.regions].count("step") == 1
    assert profile.metadata["steps"] == str(STEPS)
    spent = 1000 + 10 * np.arange(STEPS)
    scatter = float(profile.metadata["step scatter"])
    assert scatter == pytest.approx(spent.std() / spent.mean(), rel=1e-5)


def test_selected_steps_have_their_events_only(profile):
    some = profile.with_steps(StepRange.of("4-"))
    assert visits(some, "visits") == {"step": 2, "step/hipLaunchKernel": 2}
    assert visits(some, "visits on GPU streams") == {"step/hipLaunchKernel/add": 2}
    assert "CPM189" in [each.code for each in some.findings()]
    with pytest.raises(InputError, match="no selected step"):
        profile.with_steps(StepRange.of("9-"))


@pytest.mark.parametrize("overlap", [0, 1, 250, 500])
def test_steps_that_overlap_by_rounding_follow_each_other(overlap):
    ranges = [
        NumberedRange("step", k, 0, 0, 1000 * k, 1000 * (k + 1) + overlap) for k in range(STEPS)
    ]
    found = steps_of([*ranges, NumberedRange("step", 7, 0, 0, 10, 90)])
    assert found.number.tolist() == [*range(STEPS)]
    assert (found.end[:-1] == found.start[1:]).all()


def test_ranges_with_damaged_times_are_no_steps_and_may_follow_calls(tmp_path):
    folder = traces(tmp_path / "run")
    path = folder / "77_marker_api_trace.csv"
    titles, *rows = path.read_text().splitlines()
    damaged = [f"MARKER_CORE_API,step 9,7,7,{k},{times}" for k, times in enumerate(
        ("abc,def", "-5,1e9", "1,99999999999999999999999")
    )]  # fmt: skip
    path.write_text("\n".join([titles, "HIP,hipFree,7,7,1,1,2", *damaged, *rows]) + "\n")
    with RocprofReader().open(folder) as profile:
        assert profile.metadata["steps"] == str(STEPS)
