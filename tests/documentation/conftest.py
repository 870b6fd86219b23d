"""Report how many examples of the pages were run, and why the others were not."""

import pytest
from documentation.blocks import all_pages, count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    pages = all_pages()
    run = sum(count(page.run) for page in pages)
    left_out = [(page, block) for page in pages for block in page.left_out]
    terminalreporter.section("examples of README.md and docs/")
    terminalreporter.write_line(f"{run} to run, {len(left_out)} not run:")
    for page, block in left_out:
        terminalreporter.write_line(f"{page.path.name}:{block.line}: {block.reason}")
