"""Install the project as its users do, in new environments, and use it there.

``python tests/tools/installations.py DIST`` takes the sdist and the wheel in DIST, and copies the
files that git tracks. It installs from this folder, from both packages, and from fetched wheels
without an index. It does so with a C compiler on the path, and without one, where the build fetches
one. The main job then runs in an empty folder. Three installations also pass ``tests/installed``
and the contract tests: the wheels of both compilers with the newest versions of all requirements,
and the wheel with the oldest versions that ``pyproject.toml`` allows.

Only the standard library is used. An index of packages and the package `build` are needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = "parquet,caliper,plot"
TESTERS = ("pytest>=8", "hypothesis>=6.100")
"""What the tests need besides the program."""
USED = ("tests", "sample_profiles", "README.md", "pyproject.toml")
"""What the tests read of the sources."""


def run(words: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> str:
    """Run a command and return what it prints; end this program with its output if it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        sys.exit(f"failed with status {done.returncode}: {' '.join(map(str, words))}")
    return done.stdout


def environment(*, compiler: bool, empty: Path) -> dict[str, str]:
    """Return the variables of a new user; without a compiler, the path has no program at all.

    The compiler optimises little, which takes a third of the time. The wheel of DIST is optimised.
    """
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "CC")
    found = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**found, "CFLAGS": "-O1"} | ({} if compiler else {"PATH": str(empty)})


class Workplace:
    """A folder with the copied sources, the packages, and environments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources = folder / "sources"
        self.empty = folder / "empty"
        self.empty.mkdir()
        listed = run(["git", "ls-files", "-z"], ROOT, os.environ).split("\0")
        for name in filter(None, listed):
            if (ROOT / name).is_file():
                copy = self.sources / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy)
        # The tests run in a folder that has no package of the sources beside it.
        self.tests = folder / "tests"
        self.tests.mkdir()
        for name in USED:
            kept = self.sources / name
            (shutil.copytree if kept.is_dir() else shutil.copy2)(kept, self.tests / name)

    def plain_packages(self) -> Path:
        """Build sdist and wheel in isolation, without a compiler, and return their folder."""
        folder = self.folder / "dist"
        command = [sys.executable, "-m", "build", "--outdir", folder, self.sources]
        run(command, self.empty, environment(compiler=False, empty=self.empty))
        return folder

    def wheels(self, name: str, package: Path, *, compiler: bool) -> Path:
        """Fetch and build all wheels of an offline installation, and return their folder."""
        maker, folder = self.folder / f"maker-{name}", self.folder / f"wheels-{name}"
        venv.create(maker, with_pip=True)
        command = [maker / "bin" / "python", "-m", "pip", "wheel", "--quiet", "-w", folder]
        run([*command, package], self.empty, environment(compiler=compiler, empty=self.empty))
        return folder

    def install(self, name: str, words: Iterable[str | Path], *, compiler: bool) -> Path:
        """Install with pip in a new environment, and return its folder of programs."""
        where = self.folder / name
        venv.create(where, with_pip=True)
        programs = where / "bin"
        # Bytecode is compiled when it is used, which saves half of the time.
        command = [programs / "python", "-m", "pip", "install", "--quiet", "--no-compile", *words]
        run(command, self.empty, environment(compiler=compiler, empty=self.empty))
        library = Path("lib") / f"python{sysconfig.get_python_version()}" / "site-packages"
        compiled = where / library / "callpath_modeler" / "modeling" / "compiled"
        found = sorted(compiled.glob("modeler-*.so"))
        if not found:
            sys.exit(f"{name}: no compiled library")
        return programs

    def use(self, programs: Path) -> None:
        """Run the main job in an empty folder."""
        samples = self.tests / "sample_profiles" / "stencil"
        words = [programs / "cpmodel", "rank", samples, "--target", "1024"]
        answer = run(words, self.empty, environment(compiler=True, empty=self.empty))
        if "\nstencil will run 132 ms at p = 1024 (" not in f"\n{answer}":
            sys.exit(f"{programs}: another answer\n{answer}")

    def test(self, programs: Path) -> None:
        """Run the tests of an installation, and the contract tests of all readers."""
        command = [programs / "python", "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        options = ["-o", "pythonpath=tests", "--rootdir", self.tests]
        tests = [self.tests / "tests" / name for name in ("installed", "contract")]
        variables = environment(compiler=True, empty=self.empty)
        print(run([*command, *options, *tests], self.tests, variables).splitlines()[-1])


def oldest() -> list[str]:
    """Return the oldest version that the project allows of each of its libraries."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    stated = [
        *project["dependencies"],
        *(each for name in EXTRAS.split(",") for each in extras[name]),
    ]
    return [each.replace(">=", "==") for each in stated]


def main(dist: Path) -> None:
    """Try every form of installation."""
    with tempfile.TemporaryDirectory(prefix="installations-") as folder:
        work = Workplace(Path(folder))
        for compiler, packages in ((True, dist), (False, work.plain_packages())):
            (sdist,), (wheel,) = packages.glob("*.tar.gz"), packages.glob("*.whl")
            kind = "own compiler" if compiler else "fetched compiler"
            # To fetch and unpack a compiler takes a minute, so it is done for one of the sources.
            wheels = work.wheels(kind, work.sources if compiler else wheel, compiler=compiler)
            of_sources = {"folder": [work.sources], "sdist": [sdist]}
            forms: dict[str, list[str | Path]] = {
                **(of_sources if compiler else {"sdist": [sdist]}),
                "wheel": [f"{wheel}[{EXTRAS}]", *TESTERS],
                "offline": ["--no-index", "--find-links", wheels, "callpath-modeler"],
            }
            for form, words in forms.items():
                print(f"{kind}: {form}", flush=True)
                programs = work.install(f"{kind}-{form}", words, compiler=compiler)
                work.use(programs)
                if form == "wheel":
                    work.test(programs)
                shutil.rmtree(programs.parent)
        print("oldest versions", flush=True)
        constraints = work.folder / "oldest.txt"
        constraints.write_text("\n".join(oldest()) + "\n")
        (wheel,) = dist.glob("*.whl")
        words = ["-c", constraints, f"{wheel}[{EXTRAS}]", *TESTERS]
        work.test(work.install("oldest", words, compiler=True))
    print("all forms of installation work")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
