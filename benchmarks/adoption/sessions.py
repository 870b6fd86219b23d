"""Runs one session of a project and reads its results."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, Final

from benchmarks.adoption.projects import Project, Session
from benchmarks.adoption.results import Cell

_FOLDER: Final = Path(__file__).parent
_LIMIT_S: Final = 3600
_RAN: Final = re.compile(r"(\d+) (passed|failed|errors?)\b")
# The default of `--opprof-fail-on`.
_FAILING: Final = ("regressed", "missing", "inconclusive", "error")


def run(project: Project, session: Session, *, python: Path, checkout: Path, folder: Path) -> Cell:
    """Run a session once in a release's checkout; `folder` receives the log and the comparison."""
    log, document, collected = (folder / f"{session.title}{end}" for end in (".log", ".json", ".collected"))
    document.unlink(missing_ok=True)
    collected.unlink(missing_ok=True)
    store = [f"--opprof-store=dir:{folder / 'store'}"] if "--opprof-mark=." in session.options else []
    report = [f"--opprof-report=json:{document}"] if session.compares else []
    words = pytest_words(python, "stopwatch")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*words, *project.options, *session.options, *store, *report, *project.tests],
            cwd=checkout,
            env=variables(project, f"{checkout}{os.pathsep}{_FOLDER}")
            | {"ADOPTION_COLLECTED": str(collected)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    whole_s = used.ru_utime + used.ru_stime
    counts: Counter[str] = Counter()
    text = log.read_text(encoding="utf-8", errors="replace")
    summary = next((line for line in reversed(text.splitlines()) if _RAN.search(line) and " in " in line), "")
    for count, what in _RAN.findall(summary):
        counts[what] += int(count)
    verdicts, causes, failures = read_verdicts(document) if session.compares else ({}, {}, {})
    return Cell(
        code=process.returncode,
        tests=sum(counts.values()),
        failed=sum(counts.values()) - counts["passed"],
        whole_s=whole_s,
        tests_s=whole_s - float(collected.read_text()) if collected.exists() else whole_s,
        peak_mib=used.ru_maxrss / 1024,
        verdicts=verdicts,
        causes=causes,
        failures=failures,
    )


def pytest_words(python: Path, plugin: str) -> list[str]:
    """The command that runs pytest with a plugin, in any project."""
    plugins = ("-p", "no:cacheprovider", "-p", plugin)
    return [str(python), "-P", "-m", "pytest", "-q", *plugins, "--rootdir=.", "--color=no"]


def variables(project: Project, path: str) -> dict[str, str]:
    """The environment: no plugins but named ones, and one thread, as more would use CPU while they wait."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPPROF_", "PYTEST_")) and name != "PYTHONDONTWRITEBYTECODE"
    }
    return kept | {
        "PYTHONPATH": path,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "OMP_NUM_THREADS": "1",
        **dict(project.variables),
    }


def read_verdicts(document: Path) -> tuple[dict[str, int], dict[str, int], dict[str, str]]:
    """Tests by verdict and failures by cause, both most frequent first; and the cause of each failure."""
    if not document.exists():
        return {"no comparison": 1}, {}, {}
    tests = json.loads(document.read_text(encoding="utf-8"))["tests"]
    failures = {test["node_id"]: _cause(test) for test in tests if test["verdict"] in _FAILING}
    verdicts = Counter(test["verdict"] or "not run" for test in tests)
    return dict(verdicts.most_common()), dict(Counter(failures.values()).most_common()), failures


def _cause(test: dict[str, Any]) -> str:
    """The first op that rose, as the document puts the cause first; else a total, or the reason."""
    of_ops = [change for change in test["changes"] if change["op"] or change["rewrite"]]
    failing = [change for change in (*of_ops, *test["changes"]) if change["verdict"] in _FAILING]
    first = next(iter(failing or of_ops), None)
    if first is None:
        return f"{test['verdict']}: {re.split('[;.] ', test['reason'])[0]}"
    rewrite, op = first["rewrite"], first["op"]
    if rewrite:
        op = f"{' + '.join(rewrite['before'])} -> {' + '.join(rewrite['after'])}"
    if op is None:  # only the first function: the rest and the amounts differ between tests of one cause
        return f"{test['verdict']}: {first['metric']}, {(first['cause'] or first['reason']).split(' (')[0]}"
    return f"{test['verdict']}: {op}, {first['cause'] or first['reason']}"
