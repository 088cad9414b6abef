"""Golden screens of `cpmodel browse`: scripted sessions, as text."""

from __future__ import annotations

import asyncio

import pytest
from golden_cases import Session, all_sessions
from golden_files import compare
from normal_form import normalised

from browser_screen import Screen
from callpath_modeler.cli.console import Console
from callpath_modeler.tui.app import Browser


async def screens(browser: Browser, session: Session) -> str:
    """Press keys, and return the screen after each."""
    parts = []
    async with browser.run_test(size=session.size) as pilot:
        await pilot.pause()
        screen = Screen(browser, pilot)
        for words, keys in session.keys:
            await screen.press(*keys)
            await screen.settle()
            lines = "".join(f"{line}\n" for line in screen.lines)
            parts.append(f"--- {words or 'start'}\n{lines}")
    return "".join(parts)


@pytest.mark.parametrize("session", all_sessions(), ids=lambda session: session.name)
def test_the_screens_are_the_golden_ones(perform, written, inputs, monkeypatch, session: Session):
    parts = []

    def run_with_keys(browser: Browser) -> None:
        parts.append(asyncio.run(screens(browser, session)))

    monkeypatch.setattr(Console, "is_interactive", True)
    monkeypatch.setattr(Browser, "run", run_with_keys)
    text = perform(session.step) + "".join(parts) + written()
    compare(session.file, normalised(text, inputs.folder))
