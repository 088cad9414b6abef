"""Runs of a program in two parameters, p and n, with known laws."""

from __future__ import annotations

import numpy as np

import callpath_modeler as cpm
from callpath_modeler.store import write as store_experiment

P, N = (8, 16, 32, 64, 128), (10, 20, 30, 40)
LAWS = {
    "main/work": lambda p, n: n**3 / p,
    "main/send": lambda p, n: 0.1 * n * np.log2(p),
    "main/io": lambda *_: 5.0,
}
SLOW = {**LAWS, "main/work": lambda p, n: n**3 / p * (1.5 if n >= 30 else 1.0)}


def write_runs(file, laws, seed, *, p=P, n=N, noise=0.01):
    """Write three repetitions of laws with noise as a table."""
    rng = np.random.default_rng(seed)
    lines = ["callpath,p,n,rep,time[s]"]
    for path, law in laws.items():
        for p_, n_ in ((p_, n_) for p_ in p for n_ in n):
            for rep in (1, 2, 3):
                value = law(p_, n_) * np.exp(noise * rng.normal())
                lines.append(f"{path},{p_},{n_},{rep},{float(value)!r}")
    file.write_text("\n".join(lines) + "\n")
    return file


def stored(file):
    """Store runs with their models, so that the models are fitted once."""
    store = file.with_suffix(".cpm")
    store_experiment([cpm.fit(cpm.load(file))], store)
    return store
