"""Names of regions, and keys that match them between builds and machines."""

from __future__ import annotations

import re

from callpath_modeler.profile.schema import PROGRAM, Region

UNKNOWN_PROCEDURE = "<unknown procedure>"
_ROOTS = {"<program root>": PROGRAM, "main thread": PROGRAM, "<thread root>": "application thread"}
_PLACEHOLDERS = frozenset(
    {"application thread", "unknown entry", "<no activity>", "<partial call paths>"}
)

# Suffixes that compilers append to specialized functions; they change with every build.
_CLONE = re.compile(
    r" \[clone [^\[\]]*\]|((?:\.(?:isra|constprop|part|cold|lto_priv)(?:\.\d+)*)+)(\w?)"
)
_MODULE = re.compile(r"(?<=\[)[^\[\]]+(?=\]$)")
_VERSION = re.compile(r"-\d+(?:\.\d+)+(?=\.so)|(?<=\.so)(?:\.\d+)+$")

_LIBRARIES = (
    (
        "mpi",
        re.compile(r"p?mpix?_\w", re.IGNORECASE),
        re.compile(
            r"lib(mpi|mpich|mpifort|pmpi|pmix?|open-pal|open-rte|uc[mpstg]|psm|infinipath"
            r"|ibverbs|rdmacm|fabric|mlx\d|cxi)(?![a-z])"
        ),
    ),
    (
        "openmp",
        re.compile(r"GOMP_|gomp_|omp_[gsitud]|__kmpc?_"),
        re.compile(r"lib[gi]?omp\d?(?!\w)"),
    ),
    ("pthread", re.compile(r"pthread_\w"), re.compile(r"libpthread(?!\w)")),
    (
        "cuda",
        re.compile(r"cu(da)?[A-Z]\w|hip[A-Z]\w|<gpu "),
        re.compile(r"lib(cuda|cudart|cupti|amdhip64|hsa-runtime64|ze_loader)(?!\w)"),
    ),
    ("measurement", re.compile(r"(hpcrun|monitor)_"), re.compile(r"lib(hpcrun|monitor)(?!\w)")),
)


def match_key(name: str) -> str:
    """Return the part of a function's name that is equal in every build and on every machine.

    Versions of shared libraries and suffixes of compiler clones are removed. Template arguments and
    parameter lists remain, because they distinguish functions.

    >>> match_key("poll [libc-2.28.so]"), match_key("solve<double>(int) [clone .isra.3]")
    ('poll [libc.so]', 'solve<double>(int)')
    """
    key = _CLONE.sub(_without_clone, name) if " [clone " in name or "." in name else name
    if key.endswith("]"):
        key = _MODULE.sub(lambda module: _VERSION.sub("", module[0]), key)
    return key or name


def _without_clone(found: re.Match[str]) -> str:
    # A word that only begins like a suffix, as in ".partial", belongs to the name.
    return found[0] if found[2] else ""


def function_region(name: str, module: str = "", file: str = "", line: int = 0) -> Region:
    """Return the region of a function; the roots of a database get common names."""
    root = _ROOTS.get(name, name)
    if root != name or root in _PLACEHOLDERS:
        return Region(root, role="artificial")
    key = match_key(name)
    return Region(
        name,
        file="" if file == "<unknown file>" else file,
        line=line if line > 0 else -1,
        paradigm=_paradigm(name, base_name(module)),
        role="function",
        module=base_name(module),
        key="" if key == name else key,
    )


def loop_region(file: str, line: int) -> Region:
    """Return the region of a loop."""
    place = file.rpartition("/")[2] or "<unknown file>"
    known = line > 0
    name = f"loop at {place}:{line if known else 0}"
    return Region(name, file=file, line=line if known else -1, role="loop")


def anonymous(module: str, offset: int) -> str:
    """Return a name for code without a function name."""
    return f"<{base_name(module)}+{offset:#x}>" if module else UNKNOWN_PROCEDURE


def base_name(path: str) -> str:
    """Return the part after the last slash."""
    return path.rpartition("/")[2]


def _paradigm(name: str, module: str) -> str:
    """Return the library of a function, which distinguishes it from functions of the program."""
    for paradigm, names, modules in _LIBRARIES:
        if names.match(name) or modules.match(module):
            return paradigm
    return ""
