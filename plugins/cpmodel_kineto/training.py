"""Parameters of a training run that a trace states, such as its batch and the layers of its model.

A program calls `torch.profiler.profile.add_metadata` or `add_metadata_json`, and PyTorch writes
the entries beside the events. Megatron-LM, DeepSpeed, torchtitan and Transformers have options of
these names. `distributedInfo.pg_config` states the sizes of parallel groups, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

_NAMES: Mapping[str, tuple[str, ...]] = {
    "batch": (
        "batch", "batch_size", "local_batch_size", "per_device_batch_size",
        "per_device_train_batch_size",
    ),
    "micro_batch": ("micro_batch_size", "train_micro_batch_size_per_gpu"),
    "global_batch": ("global_batch_size", "train_batch_size"),
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
    "cp": re.compile(r"(?:^|[^a-z])cp(?:[^a-z]|$)|context", re.IGNORECASE),
}
"""Descriptions of groups of processes: ``mesh_tp``, ``TENSOR_MODEL_PARALLEL_GROUP``."""
_OTHER_GROUPS = re.compile(
    r"(?:^|[^a-z])(?:f?s?dp|ep|replicate|shard)(?:[^a-z]|$)|data|expert|embedding", re.IGNORECASE
)
"""Descriptions of groups that split something else, also together with the model."""
_LARGEST = 1e9


class Group(Struct):
    """One group of processes.

    Attributes
    ----------
    description : what the program calls it
    size : number of processes; None = not stated
    """

    description: str = msgspec.field(default="", name="pg_desc")
    size: int | None = msgspec.field(default=None, name="pg_size")


def training_parameters(entries: Mapping[str, bytes], groups: bytes) -> dict[str, float]:
    """Return the parameters that a file states.

    Parameters
    ----------
    entries : entries beside the events, as JSON
    groups : list of the groups of processes, as JSON

    Returns
    -------
    dict
        Positive numbers. Parallel groups of one process are left out.
    """
    found = {}
    known = _groups(groups)
    for parameter, names in _NAMES.items():
        stated = (_number(entries[name]) for name in names if name in entries)
        value = next((each for each in stated if each is not None), None)
        if value is None and parameter in _GROUPS:
            sizes = [float(each.size or 0) for each in known if _is_of(parameter, each)]
            value = max(sizes, default=None)
        if value is not None and (value > 1 or parameter not in _GROUPS):
            found[parameter] = value
    return found


def _is_of(parameter: str, group: Group) -> bool:
    """Return whether a group splits the model in this way, and in no other one."""
    text = group.description
    ways = [name for name, words in _GROUPS.items() if words.search(text)]
    is_size = group.size is not None and 0 < group.size < _LARGEST
    return is_size and ways == [parameter] and _OTHER_GROUPS.search(text) is None


def _groups(text: bytes) -> Sequence[Group]:
    try:
        return msgspec.json.decode(text, type=list[Group])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


def _number(text: bytes) -> float | None:
    """Return a positive number, also from text; None = no such number."""
    try:
        value = msgspec.json.decode(text.strip(b'" \n'), type=float)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if 0 < value < _LARGEST else None
