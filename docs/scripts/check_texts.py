"""Check texts and names: pages, man pages, findings, docstrings, modules and classes.

``make texts`` runs this script. It prints one line per problem.
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from itertools import chain
from pathlib import Path

import click
from msgspec import Struct

import callpath_modeler
from build_site import BESIDE
from callpath_modeler.cli.group import cpmodel
from callpath_modeler.diagnostics import KINDS
from callpath_modeler.diagnostics.findings_of_profiles import FindingKind
from command_tree import ROOT, CommandText, command_texts
from man_pages import escaped, man_page
from reference_pages import NAMES, pages

PACKAGE, PLUGINS, DOCS = ROOT / "callpath_modeler", ROOT / "plugins", ROOT / "docs"
MODELING, METHODS = PACKAGE / "modeling", DOCS / "explanation"
PAGES = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
"""Pages with examples and pictures."""

WIDEST_LINE, LONGEST_SENTENCE, LARGEST_PICTURE = 120, 25, 150_000
WITHOUT_A_NOUN = {
    "again", "wanted", "known", "held", "look", "facts", "usual", "together", "ahead", "place",
    "surroundings", "asking", "gathering", "retelling", "alike", "turning", "tried", "reach",
    "utils", "helpers", "common", "misc",
}  # fmt: skip
"""Words that do not say what a module contains."""
FROM_THE_LITERATURE = (
    *("fit", "check", "compare", "explain", "advise", "losses", "measured_excess", "excess_work"),
)
"""Functions with a published method."""

_SECTION = re.compile(r"^(\w+)\n-+$", re.MULTILINE)
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
_TYPES = re.compile(r"^- ((?:`\w+`(?:, )?)+(?:\.\.\.)?) \(((?:`[\w./]+`(?:, )?)+)\)", re.MULTILINE)
_METHOD_PAGE = re.compile(r"docs/explanation/([\w-]+\.md)(?:,\s+'([^']+)')?(?:\s+and\s+'([^']+)')?")


# Findings.


def problems_of_a_kind(kind: FindingKind) -> Iterator[str]:
    """Yield what is wrong with the texts of a kind of finding."""
    sentences = kind.why, kind.remedy
    for text in (kind.what, *sentences, kind.example):
        if text != text.strip() or not (text.isascii() and text.isprintable()):
            yield f"{text!r} has spaces at its ends, or characters that are not printable ASCII"
    if not kind.what[:1].isupper() or kind.what.endswith("."):
        yield "the headline needs a capital letter, and no full stop"
    for text in sentences:
        if not (text[:1].isupper() and text.endswith(".")):
            yield f"{text!r} is not a sentence"
    parts = [part for text in (kind.what, *sentences) for part in text.split(". ")]
    for part in parts:
        if len(part.split()) > LONGEST_SENTENCE:
            yield f"{part!r} has more than {LONGEST_SENTENCE} words"
    if re.search(r"--where '?\w+[<>=!]", kind.remedy):
        yield "the remedy has a condition on a parameter that the runs may lack"
    subject, _, message = kind.example.partition(": ")
    if not (subject and message):
        yield "the example needs a subject, a colon and a message"


def findings() -> Iterator[str]:
    """Yield problems of all kinds of findings, and of their pages."""
    made = pages()
    for code, kind in KINDS.items():
        yield from (f"{code}: {problem}" for problem in problems_of_a_kind(kind))
        page = made[f"reference/findings/{code}.md"]
        if not all(part in page for part in (kind.what, kind.why, kind.remedy, kind.example)):
            yield f"{code}: its page on the site lacks a part of its text"


# Man pages.


def man_page_problems(text: CommandText) -> Iterator[str]:
    """Yield what is wrong with the man page of a command."""
    page = man_page(text, "1.0")
    if not text.options:
        yield "it has no options"
    for spelling, _ in chain.from_iterable(text.options.values()):
        if f"\\fB{escaped(spelling)}\\fR" not in page:
            yield f"its man page lacks {spelling}"
    if shutil.which("groff"):
        command = ["groff", "-ww", "-man", "-Tascii", "-z"]
        done = subprocess.run(command, input=page.encode("ascii"), capture_output=True, check=True)
        if done.stderr:
            yield f"groff warns: {done.stderr.decode()}"


def commands() -> Iterator[str]:
    """Yield problems of the man pages of all commands."""
    for text in command_texts():
        yield from (f"{text.name}: {problem}" for problem in man_page_problems(text))


# Pages.


def blocks(page: Path) -> list[str]:
    """Return the fenced blocks of a page that are neither programs nor files."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [text for language, text in fenced if language in {"", "console"}]


def problem_of_a_command(line: str) -> str:
    """Return what `cpmodel` cannot parse in a line of a page, or an empty text."""
    # A comment follows a command after a # or two spaces.
    words = shlex.split(re.split(r"   *|  #", line.removeprefix("$ "))[0], comments=True)[1:]
    command: click.Command | None = cpmodel
    name: str | None = "cpmodel"
    context = None
    try:
        while isinstance(command, click.Group):
            given = words
            context = command.make_context(name, words, parent=context, resilient_parsing=True)
            words = [*context._protected_args, *context.args]  # noqa: SLF001 - has no other name
            name, command, words = command.resolve_command(context, words)
        if command is None:
            return f"there is no command {' '.join(given)}"
        context = click.Context(command, info_name=name, parent=context)
        command.make_parser(context).parse_args(words)
    except click.UsageError as error:
        return error.format_message()
    return ""


def commands_on_pages() -> Iterator[str]:
    """Yield commands on pages that have options which do not exist."""
    count = 0
    for page in PAGES:
        for line in "\n".join(blocks(page)).splitlines():
            if line.startswith(("cpmodel ", "$ cpmodel ")):
                count += 1
                if problem := problem_of_a_command(line):
                    yield f"{page.name}: {line}: {problem}"
    if count < 200:
        yield f"pages: only {count} commands were found"


def wide_lines(text: str) -> list[int]:
    """Return the numbers of the lines of a page that are too wide."""
    return [n for n, line in enumerate(text.splitlines(), 1) if len(line) > WIDEST_LINE]


def page_layout() -> Iterator[str]:
    """Yield lines of pages that are too wide, and pages that do not exist."""
    beside = [ROOT / page for page in BESIDE]
    for page in (*beside, ROOT / "SECURITY.md", *DOCS.rglob("*.md")):
        if not page.is_file():
            yield f"{page.name}: the site contains it, but it does not exist"
        for number in wide_lines(page.read_text("utf-8")) if page.is_file() else ():
            yield f"{page.name}:{number}: the line is wider than {WIDEST_LINE} columns"


def pictures() -> Iterator[str]:
    """Yield pictures that are large, not shown, without a text, or that need another file."""
    taken, shown = set((DOCS / "pictures").iterdir()), set()
    for page in PAGES:
        for alternative, link in _PICTURE.findall(page.read_text("utf-8")):
            path = (page.parent / link).resolve()
            shown.add(path)
            if len(alternative.split()) < 5:
                yield f"{page.name}: {link} needs an alternative text of five words or more"
            if not path.is_file() or not 0 < path.stat().st_size <= LARGEST_PICTURE:
                yield f"{page.name}: {link} is absent, empty or larger than {LARGEST_PICTURE} bytes"
    for path in taken ^ shown:
        yield f"{path.name}: it is either not shown on a page, or not in docs/pictures"
    for path in taken:
        if path.suffix != ".png" and "url(" in path.read_text("utf-8").replace("url(#", ""):
            yield f"{path.name}: it loads something from elsewhere"


def rows_of(page: Path, heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, without its head."""
    section = page.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def architecture() -> Iterator[str]:
    """Yield names on the page on the architecture that do not exist in their files."""
    page = METHODS / "architecture.md"
    for term, meaning, quoted, path in rows_of(page, "Glossary"):
        name, file = quoted.strip("`"), PACKAGE / path.strip("`")
        source = file.read_text("utf-8") if file.is_file() else ""
        if not re.search(rf"^(class|def) {re.escape(name)}\b", source, re.MULTILINE):
            yield f"{page.name}: {term}: {name} is not defined in {path}"
        if not 0 < len(meaning.split()) <= LONGEST_SENTENCE:
            yield f"{page.name}: {term}: its meaning needs 1 to {LONGEST_SENTENCE} words"
    listed = _TYPES.findall(page.read_text("utf-8"))
    if len(listed) <= 40:
        yield f"{page.name}: only {len(listed)} entries in the list of types were found"
    for names, paths in listed:
        source = "\n".join(path.read_text("utf-8") for path in _files_of(paths))
        for name in re.findall(r"`(\w+)`", names):
            if not re.search(rf"^(?:class |def |){name}\b", source, re.MULTILINE):
                yield f"{page.name}: {name} is not defined in {paths}"


def _files_of(paths: str) -> Iterator[Path]:
    """Yield the files that an entry names; a bare name lies in the folder of the name before."""
    folder = PACKAGE
    for path in re.findall(r"`([\w./]+)`", paths):
        homes = [home / path for home in (folder, PACKAGE, ROOT)]
        found = next((each for each in homes if each.exists()), None)
        if found is not None:
            folder = found if found.is_dir() else found.parent
            yield from sorted(found.rglob("*.py")) if found.is_dir() else [found]


def contributing() -> Iterator[str]:
    """Yield files and folders of the page for contributors that do not exist."""
    page = ROOT / "CONTRIBUTING.md"
    changes = rows_of(page, "Where a change begins")
    if len(changes) < 10:
        yield f"{page.name}: only {len(changes)} changes were found"
    for change, first in changes:
        paths = re.findall(r"`([\w./]+/[\w./]*)`", first)
        if not paths:
            yield f"{page.name}: {change}: it has no first file"
        for path in paths:
            if not ((ROOT if path.startswith("plugins/") else PACKAGE) / path).exists():
                yield f"{page.name}: {change}: {path} does not exist"
    for folder, _ in rows_of(page, "Where things are"):
        if not (ROOT / folder.strip("`")).is_dir():
            yield f"{page.name}: {folder} does not exist"


def code_of_the_example() -> Iterator[str]:
    """Yield code on the page on readers that the example plugin does not contain."""
    page = DOCS / "how-to" / "write-a-reader.md"
    text = page.read_text("utf-8")
    shown = re.findall(r"^```(python|toml)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    files = [path for path in (PLUGINS / "example").iterdir() if path.suffix in {".py", ".toml"}]
    example = [path.read_text("utf-8") for path in files]
    # It shows the reader, the profile, the test, the package and the command.
    if [kind for kind, _ in shown] != ["python", "python", "python", "toml", "python"]:
        yield f"{page.name}: it needs four blocks of Python and one of TOML"
    for _, block in shown:
        if not any(block in text for text in example):
            yield f"{page.name}: plugins/example lacks this code: {block[:60]!r}"


def versions_and_names() -> Iterator[str]:
    """Yield a wrong version of the citation, and public names that are not on one page."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    version = f"version: {project['version']}"
    if version not in (ROOT / "CITATION.cff").read_text("utf-8").splitlines():
        yield f"CITATION.cff: it needs the line {version}"
    listed = Counter(name for names in NAMES.values() for name in names)
    public = Counter(callpath_modeler.__all__)
    for name in (listed - public) + (public - listed):
        yield f"reference_pages.py: {name} is not on exactly one page"


# Docstrings.


def sections(docstring: str) -> dict[str, str]:
    """Return the sections of a docstring by title; the summary has an empty title."""
    summary, *rest = _SECTION.split(docstring)
    return {"": summary.strip(), **dict(zip(rest[::2], rest[1::2], strict=True))}


def documented(section: str) -> list[str]:
    """Return the names in a section of parameters or attributes."""
    heads = re.findall(r"^([\w, ]+) : \S", section, re.MULTILINE)
    return [name.strip() for head in heads for name in head.split(",")]


def docstring_problems(name: str, thing: object) -> Iterator[str]:
    """Yield what a public function or class does not document."""
    found = sections(inspect.getdoc(thing) or "")
    first = found[""].split("\n")[0]
    if not (first[:1].isupper() and first.endswith(".")):
        yield "it needs a sentence in the first line of its docstring"
    if inspect.isfunction(thing):
        if documented(found.get("Parameters", "")) != list(inspect.signature(thing).parameters):
            yield "it does not document its parameters in their order"
        if not found.get("Returns", "").strip():
            yield "it does not document its result"
        if not re.search(r"^\w+Error", found.get("Raises", ""), re.MULTILINE):
            yield "it does not document its errors"
        cited = re.search(r"\b(19|20)\d\d\b", found.get("References", ""))
        if name in FROM_THE_LITERATURE and not cited:
            yield "it does not name the source of its method"
    elif inspect.isclass(thing):
        yield from _class_problems(thing, found)


def _class_problems(of_class: type, found: dict[str, str]) -> Iterator[str]:
    """Yield attributes that are not documented, and members without a docstring."""
    listed = documented(found.get("Attributes", "") + found.get("Parameters", ""))
    attributes = _attributes(of_class)
    if attributes is not None and listed != attributes:
        yield f"it documents {listed} instead of {attributes}"
    for member, value in vars(of_class).items():
        is_method = inspect.isfunction(value)
        is_wrapped = isinstance(value, property | classmethod | staticmethod)
        if member[0] != "_" and (is_method or is_wrapped) and not inspect.getdoc(value):
            yield f"{member} has no docstring"


def _attributes(of_class: type) -> list[str] | None:
    """Return the public attributes of a class with a fixed list of them, or None."""
    if issubclass(of_class, enum.Enum):
        return [member.name for member in of_class]
    if is_dataclass(of_class):
        return [field.name for field in fields(of_class) if field.name[0] != "_"]
    if issubclass(of_class, Struct):
        return [name for name in of_class.__struct_fields__ if name[0] != "_"]
    return None


def public_docstrings() -> Iterator[str]:
    """Yield problems of the docstrings of all public names."""
    public = {name: getattr(callpath_modeler, name) for name in callpath_modeler.__all__}
    for name, thing in public.items():
        yield from (f"{name}: {problem}" for problem in docstring_problems(name, thing))
    for name in FROM_THE_LITERATURE:
        if not inspect.isfunction(public.get(name)):
            yield f"{name}: it is not a public function"


def unknown_parameters(source: str) -> dict[str, set[str]]:
    """Return the functions of a module that document parameters which they do not have."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            listed = documented(sections(ast.get_docstring(node) or "").get("Parameters", ""))
            parameters = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
            if unknown := set(listed) - parameters:
                found[node.name] = unknown
    return found


def parameters_in_docstrings() -> Iterator[str]:
    """Yield documented parameters that do not exist."""
    modules = [path for folder in (PACKAGE, PLUGINS) for path in folder.rglob("*.py")]
    if len(modules) <= 300:
        yield f"sources: only {len(modules)} modules were found"
    for path in modules:
        for function, names in unknown_parameters(path.read_text("utf-8")).items():
            yield f"{path.name}: {function} has no parameters {sorted(names)}"


# Names of modules and classes.


def shared_classes(sources: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the public classes that several modules define, with the paths of these."""
    homes = defaultdict(list)
    for path, source in sources:
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)
    return {name: paths for name, paths in homes.items() if len(paths) > 1}


def names() -> Iterator[str]:
    """Yield modules with names that say little, and classes that share a name."""
    for folder in (PACKAGE, PLUGINS):
        for path in folder.rglob("*.py"):
            if path.stem in WITHOUT_A_NOUN:
                yield f"{path.relative_to(ROOT)}: name it after what it contains"
    # Classes of `testing` have the names that the files of another tool use.
    paths = [path for path in PACKAGE.rglob("*.py") if "testing" not in path.parts]
    sources = [(str(path.relative_to(PACKAGE)), path.read_text("utf-8")) for path in paths]
    for name, homes in shared_classes(sources).items():
        yield f"{name}: {', '.join(homes)} define a class of this name"


def method_pages(source: str) -> list[tuple[str, ...]]:
    """Return the pages that the docstring of a module names, each with its headings."""
    text = re.sub(r"\s+", " ", ast.get_docstring(ast.parse(source)) or "")
    return _METHOD_PAGE.findall(text)


def modules_and_pages() -> Iterator[str]:
    """Yield modules of modelling and pages on the method that do not name each other."""
    modules = sorted(MODELING.rglob("*.py"))
    named = {
        path.relative_to(MODELING).as_posix(): method_pages(path.read_text("utf-8"))
        for path in modules
    }
    for module, found in named.items():
        if not found:
            yield f"modeling/{module}: its docstring names no page on its method"
        for page, *headings in found:
            text = (METHODS / page).read_text("utf-8")
            there = re.findall(r"^#+ (.*?)(?: \{#.*)?$", text, re.MULTILINE)
            for heading in set(headings) - {""} - set(there):
                yield f"modeling/{module}: {page} has no heading {heading!r}"
    for page in sorted({page for found in named.values() for page, *_ in found}):
        section = (METHODS / page).read_text("utf-8").partition("\n## Modules\n")[2]
        listed = re.findall(r"^- `([\w/]+\.py)`:", section, re.MULTILINE)
        its = [module for module, found in named.items() if page in {name for name, *_ in found}]
        if listed != its:
            yield f"{page}: its section 'Modules' needs {', '.join(its)}"


CHECKS = (
    findings,
    commands,
    commands_on_pages,
    page_layout,
    pictures,
    architecture,
    contributing,
    code_of_the_example,
    versions_and_names,
    public_docstrings,
    parameters_in_docstrings,
    names,
    modules_and_pages,
)


def main() -> int:
    """Print all problems, and return 1 if there are some."""
    found = [problem for check in CHECKS for problem in check()]
    for problem in found:
        print(problem)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
