"""Hooks of xdist's controller. Every distributed session loads this, so it loads little."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from pytest_opprof.experiment.place import Place
from pytest_opprof.plugin.stash import COLLECTED, LOST, NOTES, OPTIONS, SESSION, WRITTEN, XDIST


class ControllerHooks:
    """Makes a folder for the workers' results, and joins them; registered if xdist distributes."""

    def __init__(self) -> None:
        self._place = Place("workers").__enter__()
        self._folder = self._place.folder
        self._lost: list[str] = []
        self._written: list[str] = []
        self._notes: list[str] = []
        self._given: dict[str, Any] = {"folder": str(self._folder)}

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_setupnodes(self, config: pytest.Config) -> None:
        """Find the baseline before the workers start, and print the header."""
        if not config.stash[OPTIONS].asks_for_something:
            return
        from pytest_opprof.plugin.arguments import own_options  # noqa: PLC0415  # where there is work
        from pytest_opprof.plugin.opening import header, open_controller  # noqa: PLC0415  # as above

        self._given["options"] = own_options(config)
        open_controller(config, self._folder)
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            for line in header(config):
                reporter.write_line(line)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where to put its results, the baseline, and how to rerun a test."""
        node.workerinput[XDIST] = self._given

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Read a worker's report, or find what a dead worker left.

        If it refused to run, it could not say so itself: this raises `pytest.UsageError`.
        """
        if error:
            self._tell_of_deaths(node.config)
        output = getattr(node, "workeroutput", {})
        if output.get(XDIST):
            raise pytest.UsageError(*output[XDIST])
        self._lost += output.get(LOST, ())
        self._written += output.get(WRITTEN, ())
        self._notes += output.get(NOTES, ())

    def _tell_of_deaths(self, config: pytest.Config) -> None:
        from pytest_opprof.plugin.flight import tell_of_deaths  # noqa: PLC0415  # where there is work
        from pytest_opprof.report.text import escaped  # noqa: PLC0415  # as above

        reporter = config.pluginmanager.get_plugin("terminalreporter")
        for line in tell_of_deaths(config.rootpath):
            if reporter is not None:
                reporter.write_line(f"opprof: {escaped(line)}")

    # Registered after the plugin's own hooks, so it comes before them.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Make our session if only the workers knew that there is something to join."""
        is_new = SESSION not in session.config.stash and any(self._folder.glob(f"*{COLLECTED}"))
        if is_new and session.exitstatus != pytest.ExitCode.USAGE_ERROR:
            from pytest_opprof.plugin.opening import open_controller  # noqa: PLC0415  # where there is work

            open_controller(session.config, self._folder)
            self._tell_of_deaths(session.config)
        if SESSION in session.config.stash:
            ours = session.config.stash[SESSION]
            ours.failures += self._lost
            ours.handed_over += self._written
            ours.notes |= dict.fromkeys(self._notes)
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """By now the results are read."""
        self._place.__exit__()
