"""Chromium without a window, which runs a page and a script of a test behind it."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")
_TELL = """<script>(async () => {{
  const ready = async () => {{
    while (!document.documentElement.dataset.ready) await new Promise((go) => setTimeout(go, 20));
  }};
  let told;
  try {{
    told = await (async () => {{ {act} }})();
  }} catch (error) {{ told = {{ error: error.stack }}; }}
  const out = document.createElement("pre");
  out.id = "told";
  out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(told))));
  document.body.append(out);
}})();</script></body>"""


def opened(path, *switches):
    """Return the document of a page after its scripts, and the messages of the browser."""
    words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    words += [f"--user-data-dir={path.parent / 'browser'}", "--virtual-time-budget=60000"]
    done = subprocess.run(
        [*words, *switches, "--dump-dom", path.as_uri()],
        capture_output=True, check=True, timeout=240, text=True,
    )  # fmt: skip
    return done.stdout, done.stderr


def driven(text, act, path, width=1400):
    """Return what the script `act`, the body of an async function, returns on a page.

    The policy of the page allows no script of a test, so it is taken off here. `await ready()`
    waits until the page has read its data.
    """
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    path.write_text(text.replace("</body>", _TELL.format(act=act)), encoding="utf-8")
    shown, said = opened(path, f"--window-size={width},1000")
    found = re.search(r'<pre id="told">([^<]*)</pre>', shown)
    assert found, said
    told = json.loads(base64.b64decode(found[1]).decode())
    assert not (isinstance(told, dict) and "error" in told), told
    return told
