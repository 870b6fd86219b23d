"""A coding agent: the MCP SDK's client, `opprof mcp` in its own process, and a project to ask about."""

import json
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from e2e.project import INI, Project, environment
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent, Tool

WORK = """\
    from pytest_opprof import record_function

    def work(times=2):
        for _ in range(times):
            with record_function("work"):
                pass
"""
TESTS = """\
    import pytest
    from pytest_opprof import record_function
    from work import work

    pytestmark = pytest.mark.profile

    def test_alone():
        work()
        with record_function("load"):
            pass

    def test_many(): work(), work()

    def test_other():
        with record_function("other"):
            pass
"""

# Makes a process report the files that it opens for writing, and other actions that may change something.
WATCHING = """
import json, os, sys
MAY_CHANGE = ("os.", "shutil.", "subprocess.", "sqlite3.connect", "socket.connect")
READS = {"os.listdir", "os.scandir", "os.walk", "os.putenv", "os.unsetenv", "os.chdir", "sqlite3.connect/handle"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
def watch(event, arguments):
    if event == "open":
        says = isinstance(arguments[0], (str, bytes)) and arguments[2] & WRITES  # else it is a pipe
    else:
        says = event.startswith(MAY_CHANGE) and event not in READS
    if says:
        parts = [each if isinstance(each, list) else str(each) for each in arguments]
        os.write(2, (json.dumps([event, *parts]) + chr(10)).encode())
sys.addaudithook(watch)
"""


@dataclass(frozen=True, kw_only=True)
class Agent:
    """A client that is connected to a server.

    Attributes:
        portal: Where its session lives.
        session: The SDK's.
        log: The server's stderr.
    """

    portal: BlockingPortal
    session: ClientSession
    log: Path

    def tools(self) -> list[Tool]:
        """The server's tools."""
        return self.portal.call(self.session.list_tools).tools

    def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """The server's response to a call, an answer or an error."""
        result = self.portal.call(self.session.call_tool, tool, arguments)
        assert isinstance(result, CallToolResult)
        return result

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The answer to a call, which is equal in both of its forms."""
        result = self.call(tool, arguments)
        (content,) = result.content
        assert isinstance(content, TextContent)
        assert not result.is_error, content.text
        answer: dict[str, Any] = json.loads(content.text)
        assert result.structured_content == answer
        return answer

    def refused(self, tool: str, arguments: dict[str, Any]) -> str:
        """The sentence with which a call is refused."""
        result = self.call(tool, arguments)
        (content,) = result.content
        assert isinstance(content, TextContent)
        assert result.is_error, content.text
        assert "\n" not in content.text
        assert "Traceback" not in content.text
        return content.text


@contextmanager
def agent_in(folder: Path, *arguments: str, before: str = "") -> Iterator[Agent]:
    """Start the command in a folder, and connect to it.

    Args:
        folder: Where it starts.
        arguments: Of the command.
        before: A program that the server's process runs first.
    """
    log = folder.parent / "stderr.txt"
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_session(folder, arguments, before, log)) as session,
    ):
        yield Agent(portal=portal, session=session, log=log)


@asynccontextmanager
async def _session(
    folder: Path, arguments: tuple[str, ...], before: str, log: Path
) -> AsyncIterator[ClientSession]:
    program = f"{before}\nimport sys\nfrom pytest_opprof.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    command = ["-c", program, "mcp", *arguments]
    server = StdioServerParameters(command=sys.executable, args=command, cwd=folder, env=environment())
    with log.open("w", encoding="utf-8") as stderr:
        async with stdio_client(server, errlog=stderr) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield session


def measure(project: Project) -> None:
    """Give a project a baseline of two commits and a last session with two regressions of one cause.

    The last session's run is in ``run.json``.
    """
    project.git("init", "-q", "-b", "main")
    project.write("pytest.ini", f"{INI}opprof_save_processes = 1\npythonpath = .\n")
    project.write("work.py", WORK)
    project.write("test_it.py", TESTS)
    for before, after in (("times=2", "times=3"), ("times=3", "times=4")):
        project.commit()
        assert project.pytest("--opprof-save=main").exit_code == 0
        project.replace("work.py", before, after)
    session = project.pytest("--opprof-baseline=main")
    assert session.exit_code == 1
    shutil.copy(session.document, project.folder / "run.json")
