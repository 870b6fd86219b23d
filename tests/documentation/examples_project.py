"""The project of one page, in which its examples run as a reader would run them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from documentation.blocks import Block, Page
from documentation.meaning import means
from e2e.project import environment

_ALLOW_TORCH_PROFILER = "OPPROF_TESTS_ALLOW_TORCH_PROFILER"
_HERE = Path(__file__).parent
_REPOSITORY = _HERE.parents[1]
_TIMEOUT_S = 300
# The plugins that pages mention; others would change the output or shuffle the tests.
_PYTEST = "-p opprof -p xdist -p benchmark -W ignore::pytest.PytestAssertRewriteWarning"
_COLUMNS = "100"  # as wide as outputs are shown
_MARKED = re.compile(r"^@pytest\.mark\.profile", re.MULTILINE)


class ExamplesProject:
    """A folder, empty at first, and the page's hidden Python code."""

    def __init__(self, page: Page, folder: Path) -> None:
        self._page = page
        self._folder = folder
        self._before = ""
        tools = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
        }
        if "torch" in page.needs:
            shutil.copy(_HERE / "models.py", folder)
            shutil.copy(_HERE / "model_fixtures.py", folder / "conftest.py")
        # A page may show torch's profiler beside ours.
        tools[_ALLOW_TORCH_PROFILER] = "a page of the docs"
        self._environment = environment({"PYTEST_ADDOPTS": _PYTEST, "COLUMNS": _COLUMNS, **tools})

    def run(self, block: Block) -> None:
        """Run one example.

        Raises:
            AssertionError: It ends with another exit code, or prints something other than shown.
        """
        if block.file is not None:
            path = self._folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{block.text}\n", encoding="utf-8")
        elif block.language == "console":
            self._console(block)
        elif block.language == "python":
            self._python(block)
        else:
            raise AssertionError(f"{self._where(block)}: nobody says which file this {block.language} is")

    def _python(self, block: Block) -> None:
        """Run a marked test by pytest, and all else as a program; later blocks start with a hidden block."""
        if _MARKED.search(block.text):
            name = f"test_line_{block.line}.py"
            (self._folder / name).write_text(
                f"import pytest\n{self._before}\n{block.text}\n", encoding="utf-8"
            )
            self._check(block, ["pytest", "-q", name])
        elif block.hidden:
            self._before += f"{block.text}\n"
        else:
            path = self._folder / f"line_{block.line}.py"
            path.write_text(f"{self._before}{block.text}\n", encoding="utf-8")
            before = set(self._folder.iterdir())
            printed = self._check(block, [sys.executable, str(path)])
            assert block.prints in printed, f"{self._where(block)}: it prints no {block.prints!r}\n{printed}"
            written = set(self._folder.iterdir()) - before
            empty = [one.name for one in written if one.is_file() and not one.stat().st_size]
            assert not empty, f"{self._where(block)}: it writes empty files: {', '.join(empty)}"

    def _console(self, block: Block) -> None:
        """Run each command and compare its output with the lines below it, if any."""
        _, *typed = re.split(r"^\$ ", f"\n{block.text}", flags=re.MULTILINE)
        assert typed, f"{self._where(block)}: a console without a command"
        parts = [part.partition("\n") for part in typed]
        if block.instead:
            parts = [(block.instead, "", "\n".join(shown for _, _, shown in parts))]
        for place, (command, _, shown) in enumerate(parts, start=1):
            exit_code = block.exit_code if place == len(parts) else 0
            ran = command.replace("{repository}", str(_REPOSITORY))
            printed = self._check(block, ["bash", "-c", ran], exit_code=exit_code)
            assert not shown.strip() or means(printed, shown), (
                f"{self._where(block)}: {command}\n--- it prints\n{printed}\n--- the page shows\n{shown}"
            )

    def _check(self, block: Block, command: list[str], *, exit_code: int = 0) -> str:
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
        told = f"{self._where(block)}: {' '.join(command)} ended with {done.returncode}\n{done.stdout}"
        assert done.returncode == exit_code, told
        return done.stdout

    def _where(self, block: Block) -> str:
        return f"{self._page.path.name}:{block.line}"
