"""The screen of a browser that gets keys from a test."""

from __future__ import annotations


class Screen:
    """The browser, and what is on its screen."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot
        self.session = app.session

    async def press(self, *keys):
        await self.pilot.press(*keys)
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def settle(self):
        """Wait until the screen stays, because a key may start work after it was handled."""
        before: list[str] = []
        while before != self.lines:
            before = self.lines
            await self.app.workers.wait_for_complete()
            await self.pilot.pause(0.05)

    @property
    def lines(self):
        """The lines of the screen as text."""
        width, height = self.app.size
        strips = self.app.screen._compositor.render_strips(self.app.size)
        return [strip.text[:width].rstrip() for strip in strips[:height]]

    def says(self, words):
        assert any(words in line for line in self.lines), "\n".join(self.lines)
