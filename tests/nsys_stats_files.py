"""Small tables of `nsys stats --format csv`, of newer and of older versions."""

from __future__ import annotations

from pathlib import Path

TABLES = {
    "cuda_gpu_kern_sum": """\
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
75.0,300,3,100.0,100.0,90,110,8.2,"add(float *, int)"
25.0,100,1,100.0,100.0,100,100,0.0,mul
""",
    "cuda_gpu_mem_time_sum": """\
Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation
80.0,80,2,40.0,40.0,40,40,0.0,[CUDA memcpy Host-to-Device]
20.0,20,1,20.0,20.0,20,20,0.0,[CUDA memset]
""",
    "cuda_gpu_mem_size_sum": """\
Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation
4.000,2,2.000,2.000,2.000,2.000,0.000,[CUDA memcpy Host-to-Device]
""",
    "cuda_api_sum": """\
Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
60.0,"1,200",4,300.0,300.0,300,300,0.0,cudaLaunchKernel
40.0,800,1,800.0,800.0,800,800,0.0,cudaDeviceSynchronize
""",
}
OLD = """\
Generating CUDA Kernel Statistics...

Time(%),Total Time,Instances,Average,Minimum,Maximum,Name
100.0,300,3,100.0,90,110,add(float*)

Time(%),Total Time,Calls,Average,Minimum,Maximum,Name
100.0,1200,4,300.0,300,300,cudaLaunchKernel
"""


def write(folder: Path, report: str = "report1") -> Path:
    """Write all tables of a report; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in TABLES.items():
        (folder / f"{report}_{name}.csv").write_text(text)
    return folder
