"""Stand-ins for sbatch, squeue and sacct, which run jobs at once and keep their states in files.

A file ``answers`` in the directory of the scheduler has one line per job: the states that squeue
tells one after the other. ``run`` executes the script, ``forget`` lets only sacct know the job, and
``lose`` lets none of the tools know it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

_TOOL = """#!{python}
import os, subprocess, sys
from pathlib import Path
here = Path({here!r})
name, words = Path(sys.argv[0]).name, sys.argv[1:]
with (here / "calls").open("a") as calls:
    calls.write(name + " " + " ".join(words) + "\\n")
if (here / "broken").exists() and (here / "broken").read_text().split()[0] == name:
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller")

def advance(job):
    states = (here / f"{{job}}.states").read_text().split()
    while states and states[0] in ("run", "forget", "lose"):
        word = states.pop(0)
        if word == "run":
            env = dict(os.environ, SLURM_JOB_NODELIST="node[1-2]", SLURM_PROCID="0")
            done = subprocess.run(["bash", here / f"{{job}}.sh"], env=env)
            states.insert(0, "COMPLETED" if done.returncode == 0 else "FAILED")
        else:
            (here / f"{{job}}.{{word}}").touch()
    state = states[0]
    (here / f"{{job}}.states").write_text(" ".join(states[1:] or states[:1]))
    return state

if name == "sbatch":
    answers = (here / "answers").read_text().splitlines() if (here / "answers").exists() else []
    job = str(1001 + len(list(here.glob("*.sh"))))
    (here / f"{{job}}.sh").write_text(Path(words[-1]).read_text())
    number = int(job) - 1001
    (here / f"{{job}}.states").write_text(answers[number] if number < len(answers) else "run")
    print(job + ";cluster")
elif name == "squeue":
    jobs = next(word.partition("=")[2] for word in words if word.startswith("--jobs"))
    for job in jobs.split(","):
        state = advance(job)
        if not ((here / f"{{job}}.forget").exists() or (here / f"{{job}}.lose").exists()):
            print(job, state)
        else:
            (here / f"{{job}}.states").write_text(state)
elif name == "sacct":
    jobs = next(word.partition("=")[2] for word in words if word.startswith("--jobs"))
    for job in jobs.split(","):
        if not (here / f"{{job}}.lose").exists():
            state = (here / f"{{job}}.states").read_text().split()[0]
            memory = "7|\\n7|1200K\\n7|2.5M"
            print(memory if "MaxRSS" in " ".join(words) else f"{{job}}|{{state}} by 1000")
elif name == "srun":
    words = words[2:] if words[0] == "-n" else words
    os.execvp(words[0], words)
"""


@pytest.fixture
def scheduler(tmp_path_factory, monkeypatch) -> Path:
    """Put stand-ins of Slurm into the search path, and return the directory of their states."""
    here = tmp_path_factory.mktemp("slurm")
    tools = here / "bin"
    tools.mkdir()
    for name in ("sbatch", "squeue", "sacct", "srun"):
        (tools / name).write_text(_TOOL.format(python=sys.executable, here=str(here)))
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return here
