"""Arguments of generated programs in C: scaled computation and sizes, and lowered collectives."""

from __future__ import annotations

from collections.abc import Mapping

from cpmodel_commspec.generators.c.functions import CFunctions

_STEP = "    "


def options_of(functions: CFunctions) -> tuple[str, Mapping[str, str]]:
    """Return the options of a program, and the statements that apply them.

    Call it after all calls of the program, because functions decide which options it has.

    Returns
    -------
    options : the C text
    statements : by the name of their place in the main function
    """
    takes, rows = [], []
    ends = {"resize": "", "make_apart": ""}
    if functions.uses("scaled"):
        functions.use("resize")
        takes.append(functions.text("takes_scale_bytes"))
        rows.append('{"--scale-bytes", "a factor from 0 to 1e9", takes_scale_bytes},')
        ends["resize"] = (
            f"{_STEP}if (!resize()) {{\n{_STEP * 2}MPI_Finalize();\n{_STEP * 2}return 2;\n"
            f"{_STEP}}}\n"
        )
    lowered = list(functions.lowered)
    if lowered:
        replacements = "".join(
            f'{_STEP}{{"{name}={algorithm}", &lower_{name}, {function}}},\n'
            for name, algorithm, function in lowered
        )
        takes.append(functions.text("takes_lower").replace("@replacements@", replacements))
        # Adjacent literals are one text: lines stay short.
        known = "".join(f'\n{_STEP * 2}" {name}={algorithm}"' for name, algorithm, _ in lowered)
        rows.append(f'{{"--lower", "one of"{known},\n{_STEP}takes_lower}},')
        ends["make_apart"] = f"{_STEP}if (is_lowered)\n{_STEP * 2}make_apart();\n"
    text = functions.text("options").replace("@takes@", "".join(f"{one}\n" for one in takes))
    return text.replace("@arguments@", "".join(f"{_STEP}{row}\n" for row in rows)), ends
