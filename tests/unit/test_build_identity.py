"""Identity of a build: it changes with the sources, and with nothing else."""

from __future__ import annotations

import pytest

from callpath_modeler.support import atomic
from callpath_modeler.support.atomic import same_build
from cells import cells


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of one source, whose digest is that of the build."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "one.py").write_text("x = 1\n")
    monkeypatch.setattr(atomic, "_own_packages", lambda: {"package": folder})
    atomic.build_identity.cache_clear()
    yield folder
    atomic.build_identity.cache_clear()


def identity():
    atomic.build_identity.cache_clear()
    return atomic.build_identity()


@pytest.mark.parametrize("name", ["one.py", "two.py", "inner/loops.c", "inner/loops.h"])
def test_a_change_of_any_source_is_another_build(package, name):
    before = identity()
    (package / name).parent.mkdir(exist_ok=True)
    (package / name).write_text("x = 2\n")
    assert not same_build(before, identity())


def test_other_files_and_the_commit_do_not_change_the_build(package, monkeypatch):
    before = identity()
    (package / "library.so").write_bytes(b"1")
    (package / "one.pyc").write_bytes(b"1")
    monkeypatch.setattr(atomic, "_commit", lambda _: "0123456789" * 4)
    after = identity()
    assert "commit 01234567" in after
    assert before != after
    assert same_build(before, after)


@cells("kind", ["branch", "packed", "detached", "worktree", "none", "hostile"])
def test_the_commit_of_a_checkout_is_read_without_git(tmp_path, kind):
    commit = "89abcdef01" * 4
    home = tmp_path / ".git"
    if kind == "worktree":
        home = tmp_path / "main" / "worktrees" / "one"
        (tmp_path / ".git").write_text(f"gitdir: {home}\n")
    if kind != "none":
        home.mkdir(parents=True)
        (home / "HEAD").write_text("ref: refs/heads/main\n")
    shared = home
    if kind == "worktree":
        (home / "commondir").write_text("../..\n")
        shared = tmp_path / "main"
    if kind in {"branch", "worktree"}:
        (shared / "refs" / "heads").mkdir(parents=True)
        (shared / "refs" / "heads" / "main").write_text(f"{commit}\n")
    if kind == "packed":
        (home / "packed-refs").write_text(f"# pack-refs\n{commit} refs/heads/main\n")
    if kind == "detached":
        (home / "HEAD").write_text(f"{commit}\n")
    if kind == "hostile":
        (home / "HEAD").write_text("ref: ../../outside\n")
        (tmp_path.parent / "outside").write_text(commit)
    expected = commit if kind not in {"none", "hostile"} else ""
    assert atomic._commit(tmp_path) == expected
