"""Small CSV traces of rocprofv3, after its documentation."""

from __future__ import annotations

from pathlib import Path

_CALLS = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp"
TRACES = {
    "marker_api_trace": f"{_CALLS}\nMARKER_CORE_API,main,77,77,1,0,1000\n",
    "hip_api_trace": f"""\
"{_CALLS.replace(",", '","')}"
"HIP_RUNTIME_API","hipMemcpy",77,77,2,100,200
"HIP_RUNTIME_API","hipLaunchKernel",77,77,3,210,230
"HIP_RUNTIME_API","hipDeviceSynchronize",77,77,4,240,600
""",
    "kernel_trace": """\
Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp
KERNEL_DISPATCH,Agent 4,1,77,1,8,"void add<float>(float*, int)",3,250,350
KERNEL_DISPATCH,Agent 4,1,77,2,8,old(),99,10,20
""",
    "memory_copy_trace": """\
Kind,Direction,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,End_Timestamp
MEMORY_COPY,MEMORY_COPY_HOST_TO_DEVICE,Agent 0,Agent 4,2,120,190
""",
}


def write(folder: Path, *prefixes: str) -> Path:
    """Write the traces of processes; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for prefix in prefixes:
        for name, text in TRACES.items():
            (folder / f"{prefix}_{name}.csv").write_text(text)
    return folder
