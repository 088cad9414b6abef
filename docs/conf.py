"""Configuration of Sphinx; `make docs` builds the site."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(_ROOT / "docs" / "scripts"))

project = "callpath_modeler"
author = "the callpath_modeler developers"
project_copyright = f"2026, {author}"
release = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "heading_anchors", "array_types"]
html_theme = "furo"
html_title = f"callpath_modeler {release}"
html_show_sphinx = False

myst_heading_anchors = 4
myst_heading_slug_func = "heading_anchors.slug"

# A name in a docstring links to its entry, if there is one.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80
numpydoc_show_class_members = False
# Users copy options and quotes from the pages.
smartquotes = False
highlight_language = "text"
