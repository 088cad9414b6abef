"""Constants of models: all in one package, each with its unit, its meaning and its evidence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from callpath_modeler import modeling
from cells import cells

FOLDER = Path(modeling.__file__).parent
PROJECT = FOLDER.parents[1]
TABLES = sorted(path for path in (FOLDER / "constants").glob("*.py") if path.stem != "__init__")
CODES = {
    ("classic_search.py", "CONSTANT, WITH_CONSTANT, WITHOUT_CONSTANT, EDGE"),
    ("stored.py", "_VERSION"),
    ("products_of_factors.py", "_NO_PAIRS"),
    ("expected_growth.py", "_ONE, _ZERO"),
}
"""Numbers that stand for something, and judge nothing."""
FUNCTIONS = {"Fraction", "float", "int", "math", "np", "range"}
DOC = re.compile(r"(?s)(.+?)\n\nUnit: ([^.]+)\. Evidence: (.+)\.")


def assigned(path: Path) -> Iterator[tuple[str, ast.expr, str]]:
    """Return the names, the value and the docstring of every assignment of a module."""
    body = ast.parse(path.read_text()).body
    for statement, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            value = after.value if isinstance(after, ast.Expr) else None
            doc = value.value if isinstance(value, ast.Constant) else ""
            yield ast.unparse(target).strip("()"), statement.value, str(doc).strip()


def is_judgement(value: ast.expr) -> bool:
    """Return whether an expression consists of numbers alone."""
    parts = list(ast.walk(value))
    numbers = [part.value for part in parts if isinstance(part, ast.Constant)]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    plain = not any(isinstance(part, ast.Lambda | ast.comprehension) for part in parts)
    numeric = [type(each) in (int, float) for each in numbers]
    return plain and names <= FUNCTIONS and bool(numeric) and all(numeric)


def test_numbers_of_modules_are_in_the_tables_of_constants() -> None:
    found = {
        (path.relative_to(FOLDER).as_posix(), names)
        for path in FOLDER.rglob("*.py")
        if path not in TABLES
        for names, value, _ in assigned(path)
        if is_judgement(value)
    }
    assert found == CODES


@cells(
    ("text", "expected"),
    [
        ("0.3", True),
        ("1e-3, 2", True),
        ("np.log(30.0)", True),
        ("{2: 0.3, 3: -0.05}", True),
        ("(Fraction(1, 2), 1)", True),
        ("4 / AGREES", False),
        ("Drift(10.0)", False),
        ("'text'", False),
        ("[2 * k for k in range(3)]", False),
    ],
)
def test_a_judgement_is_an_expression_of_numbers(text: str, expected: bool) -> None:
    assert is_judgement(ast.parse(text, mode="eval").body) is expected


def rules() -> set[str]:
    """Return the names of the rules of the ablation."""
    tree = ast.parse((PROJECT / "benchmarks" / "ablation.py").read_text())
    tables = [each for each in tree.body if isinstance(each, ast.AnnAssign)]
    named = [each.value for each in tables if ast.unparse(each.target) in ("OF_ONE", "OF_SEVERAL")]
    keys = [key for each in named if isinstance(each, ast.Dict) for key in each.keys]
    return {str(key.value) for key in keys if isinstance(key, ast.Constant)}


@cells("table", TABLES)
def test_each_constant_has_a_unit_a_meaning_and_evidence(table: Path) -> None:
    known = rules()
    assert known
    every = list(assigned(table))
    assert every
    for names, _, doc in every:
        parts = DOC.fullmatch(doc)
        assert parts is not None, names
        kind, _, source = parts[3].partition(", ")
        assert kind in ("ablation", "by convention", "mathematics", "measured", "paper"), names
        assert bool(source) == (kind != "by convention"), names
        assert kind != "ablation" or source in known, names


def test_each_constant_is_used() -> None:
    modules = [path for path in FOLDER.parent.rglob("*.py") if path not in TABLES]
    words = {word for path in modules for word in re.findall(r"\w+", path.read_text())}
    for table in TABLES:
        for names, *_ in assigned(table):
            for name in names.split(", "):
                assert name in words, f"{table.stem}.{name}"
