"""Parameters of a training run that a trace states, such as its batch and the layers of its model.

A program calls `torch.profiler.profile.add_metadata` or `add_metadata_json`, and PyTorch writes
the entries beside the events. Megatron-LM, DeepSpeed, torchtitan and Transformers have options of
these names. `distributedInfo.pg_config` states the sizes of parallel groups, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import Struct

_NAMES: Mapping[str, tuple[str, ...]] = {
    "batch": (
        "batch", "batch_size", "local_batch_size", "per_device_batch_size",
        "per_device_train_batch_size",
    ),
    "micro_batch": ("micro_batch_size", "train_micro_batch_size_per_gpu"),
    "global_batch": ("global_batch_size", "train_batch_size"),
    "accumulation": ("gradient_accumulation_steps", "accumulate_grad_batches"),
    "layers": ("layers", "num_layers", "n_layers", "num_hidden_layers"),
    "hidden": ("hidden", "hidden_size", "hidden_dim", "d_model", "n_embd"),
    "sequence": ("sequence_length", "seq_length", "seq_len", "max_seq_len"),
    "tp": ("tp", "tp_size", "tensor_parallel_size", "tensor_parallel_degree",
           "tensor_model_parallel_size"),
    "pp": ("pp", "pp_size", "pipeline_parallel_size", "pipeline_parallel_degree",
           "pipeline_model_parallel_size"),
    "cp": ("cp", "cp_size", "context_parallel_size", "context_parallel_degree"),
}  # fmt: skip
"""Parameters with the names of their entries."""
ENTRIES = frozenset(name for names in _NAMES.values() for name in names)
"""Entries of a file that may be parameters."""
_GROUPS = {
    "tp": re.compile(r"(?:^|[^a-z])tp(?:[^a-z]|$)|tensor", re.IGNORECASE),
    "pp": re.compile(r"(?:^|[^a-z])pp(?:[^a-z]|$)|pipeline", re.IGNORECASE),
    "cp": re.compile(r"(?:^|[^a-z])[cs]p(?:[^a-z]|$)|context|ulysses", re.IGNORECASE),
}
"""Descriptions of groups of processes: ``mesh_tp``, ``TENSOR_MODEL_PARALLEL_GROUP``."""
_OTHER_GROUPS = re.compile(
    r"(?:^|[^a-z])(?:f?s?dp|ep|replicate|shard)(?:[^a-z]|$)|data|expert|embedding", re.IGNORECASE
)
"""Descriptions of groups that split something else, also together with the model."""
_LARGEST = 1e9
_LONGEST = 200
"""Longest description of a group."""
_Decoded = TypeVar("_Decoded")


_OF_BATCHES = ("batch", "global_batch")
"""Parameters that say nothing about a step if its number of batches is not known."""


class Group(Struct):
    """One group of processes.

    Attributes
    ----------
    description : what the program calls it
    stated_size : number of processes; None = not stated
    ranks : the processes; empty for all processes of some programs
    """

    description: str = msgspec.field(default="", name="pg_desc")
    stated_size: int | None = msgspec.field(default=None, name="pg_size")
    ranks: list[int] = []

    @property
    def size(self) -> int:
        """Return the number of processes; 0 = not known."""
        return len(self.ranks) if self.stated_size is None else self.stated_size


def training_parameters(entries: Mapping[str, bytes], groups: bytes) -> dict[str, float]:
    """Return the parameters that a file states.

    Parameters
    ----------
    entries : entries beside the events, as JSON
    groups : list of the groups of processes, as JSON

    Returns
    -------
    dict
        Positive whole numbers. Parallel groups of one process are left out.
    """
    found = {}
    sizes = dict[str, int]()
    for each in _groups(groups):
        if 0 < each.size < _LARGEST:
            kind = _kind(each.description[:_LONGEST])
            sizes[kind] = max(each.size, sizes.get(kind, 0))
    for parameter, names in _NAMES.items():
        stated = (_number(entries[name]) for name in names if name in entries)
        value = next((each for each in stated if each is not None), None)
        if value is None and parameter in sizes:
            value = float(sizes[parameter])
        if value is not None and (value > 1 or parameter not in _GROUPS):
            found[parameter] = value
    return found


def of_steps(
    parameters: Mapping[str, float], updates: Sequence[tuple[int, int]]
) -> tuple[dict[str, float], str]:
    """Return the parameters of the steps of a run, and what is not used.

    A program that accumulates gradients calls its optimizer after several batches. It ends a step
    of the profiler after each batch, or after each call of the optimizer. So a step has one batch,
    or all of them.

    Parameters
    ----------
    parameters : as `training_parameters` returns them
    updates : numbers of steps, and of calls of an optimizer in them, for each process

    Returns
    -------
    tuple
        `accumulation` is the number of batches in a step. A global batch is that of several steps
        if a step has one batch. If the number is not known, no batch is returned.
    """
    accumulated = parameters.get("accumulation", 1.0)
    if accumulated <= 1:
        return {**parameters}, ""
    if updates and all(1 < steps == calls for steps, calls in updates):
        return {**parameters}, ""
    of_one = all(calls > 0 and abs(calls * accumulated - n) < accumulated for n, calls in updates)
    if updates and of_one and all(calls < steps for steps, calls in updates):
        left = {name: value for name, value in parameters.items() if name != "global_batch"}
        return left | {"accumulation": 1.0}, ""
    unused = [name for name in ("accumulation", *_OF_BATCHES) if name in parameters]
    message = (
        f"calls of the optimizer do not tell whether a step has 1 or {accumulated:g} batches: "
        f"{', '.join(unused)} are not used"
    )
    left = {name: value for name, value in parameters.items() if name not in unused}
    return left, message if len(unused) > 1 else ""


@lru_cache(maxsize=1024)
def _kind(description: str) -> str:
    """Return the parameter of groups that split the model in this way, and in no other one."""
    ways = [name for name, words in _GROUPS.items() if words.search(description)]
    return ways[0] if len(ways) == 1 and _OTHER_GROUPS.search(description) is None else ""


def _groups(text: bytes) -> Sequence[Group]:
    """Return the groups; damaged ones are left out."""
    whole = _decoded(text, list[Group])
    if whole is not None:
        return whole
    found = []
    for each in _decoded(text, list[msgspec.Raw]) or []:
        group = _decoded(each, Group)
        if group is not None:
            found.append(group)
    return found


def _decoded(text: bytes | msgspec.Raw, kind: type[_Decoded]) -> _Decoded | None:
    """Return a value of JSON, whose numbers may be written as text; None = it has another form."""
    try:
        return msgspec.json.decode(text, type=kind, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _number(text: bytes) -> float | None:
    """Return a positive whole number, also from text; None = no such number."""
    value = _decoded(text.strip(b'" \n'), float)
    return value if value is not None and 0 < value < _LARGEST and value.is_integer() else None
