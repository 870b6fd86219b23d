"""How Sphinx builds the site: `make docs`."""

import importlib.metadata
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for opprof_docs

project = "pytest-opprof"
author = "The pytest-opprof developers"
release = importlib.metadata.version("pytest-opprof")
version = release.rpartition(".")[0]
html_title = f"pytest-opprof {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "opprof_docs"]
exclude_patterns = ["opprof_docs"]
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False

# Nothing is fetched: no intersphinx, no fonts, no scripts of other servers.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

# Docstrings write code in single backticks, as Markdown does.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # a dataclass describes its fields twice else
# Shells and tests show prompts and outputs; what is no language stays as it is.
highlight_language = "text"
