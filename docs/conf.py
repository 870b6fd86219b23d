"""How Sphinx builds the site: `make docs`."""

import importlib.metadata

project = "pytest-opprof"
author = "The pytest-opprof developers"
release = importlib.metadata.version("pytest-opprof")
version = release.rpartition(".")[0]
html_title = f"pytest-opprof {release}"

extensions = ["myst_parser"]
exclude_patterns = ["opprof_docs"]
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False

# Nothing is fetched: no intersphinx, no fonts, no scripts of other servers.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

# Shells and tests show prompts and outputs; what is not a language stays as it is.
highlight_language = "text"
