"""Small tables in the forms that are read: main takes 1, and main/solve 2.5 or about that."""

from __future__ import annotations

CSV = """callpath,p,repetition,time[ms],visits
main,4,1,1000,1
main,4,2,1100,1
main/solve,4,1,2500,10
main/solve,4,2,2400,10
main,8,1,1000,1
main/solve,8,1,5000,10
main/io,8,1,1,2
"""
JSON_LINES = """{"params": {"p": 4}, "callpath": "main", "metric": "time", "value": 1.0}
{"params": {"p": 4}, "callpath": "main->solve", "metric": "time", "value": 2.5}
{"params": {"p": 8}, "callpath": "main", "metric": "time", "value": 1}
{"params": {"p": 8}, "callpath": "main->solve", "metric": "time", "value": 5}
{"params": {"p": 8}, "callpath": "main->solve", "metric": "time", "value": 6}
"""
EXTRAP_TEXT = """# comment
PARAMETER p
POINTS 4 8
METRIC time
REGION main
DATA 1.0 1.1
DATA 1.0
REGION main->solve
DATA 2.5 2.4
DATA 5
"""
FOLDED = "main 1\nmain;solve 2.5\nmain;solve;MPI_Send 4\n"
HATCHET = (
    '[{"name": "main", "frame": {"name": "main"}, "metrics": {"time (inc)": 3.5},'
    ' "children": [{"name": "f", "frame": {"name": "solve"},'
    ' "metrics": {"time (inc)": 2.5}}]}]'
)
