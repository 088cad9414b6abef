"""Platforms of the simulated cluster: topologies, networks, and the noise of a run, all seeded.

The machine has 1,536 nodes at every scale. A run gets blocks of eight nodes at random places, as
from a batch system, and bandwidth and latency that differ a little from run to run.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import exp

NODES = 1536
_BLOCK = 8
_BANDWIDTH_NOISE, _LATENCY_NOISE = 0.02, 0.03

TOPOLOGIES = {
    # Three levels; half as many links leave a switch of 16 nodes as enter it.
    "fat-tree": ("FAT_TREE", "3;16,16,6;1,8,6;1,1,1"),
    "torus": ("TORUS", "16,12,8"),
    # Groups, chassis, routers, nodes, each with its number of links. SimGrid needs at least as many
    # routers as groups.
    "dragonfly": ("DRAGONFLY", "8,16;4,4;12,1;4"),
}
"""Type and parameters of SimGrid's clusters, by name."""


@dataclass(frozen=True, slots=True)
class Network:
    """Bandwidth of a link in GB/s, and its latency in µs."""

    bandwidth: float
    latency: float


NETWORKS = {"fast": Network(12.5, 1.2), "slow": Network(3.125, 2.5)}


def platform(topology: str, network: str, seed: str) -> str:
    """Return a platform file of SimGrid, with the weather of one run."""
    draw = random.Random(f"network {seed}")
    link = NETWORKS[network]
    bandwidth = link.bandwidth * exp(_BANDWIDTH_NOISE * draw.gauss(0, 1))
    latency = link.latency * exp(_LATENCY_NOISE * draw.gauss(0, 1))
    kind, parameters = TOPOLOGIES[topology]
    return (
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1"><cluster id="c" prefix="node-" suffix="" '
        f'radical="0-{NODES - 1}" speed="1Gf" bw="{bandwidth:.6f}GBps" lat="{latency:.6f}us" '
        f'loopback_bw="20GBps" loopback_lat="0.2us" topology="{kind}" '
        f'topo_parameters="{parameters}"/></platform>\n'
    )


def hosts(processes: int, seed: str) -> str:
    """Return the file of hosts of one run: one process on each node."""
    draw = random.Random(f"allocation {seed}")
    blocks = sorted(draw.sample(range(NODES // _BLOCK), -(-processes // _BLOCK)))
    nodes = [block * _BLOCK + k for block in blocks for k in range(_BLOCK)]
    return "".join(f"node-{node}\n" for node in nodes[:processes])
