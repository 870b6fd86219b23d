"""Shells complete ``opprof`` commands with the script that it prints for them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_opprof.cli.main import COMMANDS, main

SHELLS = ("bash", "zsh", "tcsh")
# Bash's completion on Tab, without the terminal; prints one completion per line.
COMPLETE = """\
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
$(complete -p opprof | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "completion"
    command = [sys.executable, "-m", "pytest_opprof", "--print-completion", "bash"]
    path.write_bytes(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    (tmp_path / "base.json").touch()
    return path


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["com"], ["compare", "comment"]),
        ([""], list(COMMANDS)),
        (["compare", "--fai"], ["--fail-on"]),
        (["compare", "--fail-on", "none", "--re"], ["--rename"]),
        (["baseline", "pu"], ["push", "pull"]),
        (["baseline", "list", "--js"], ["--json"]),
        (["compare", "bas"], ["base.json"]),
        (["show", "bas"], ["base.json"]),
        (["run", "-o", "bas"], ["base.json"]),
        (["run", "bas"], ["base.json"]),
        (["--print-completion", ""], list(SHELLS)),
    ],
    ids=" ".join,
)
def test_bash_completes(script: Path, typed: list[str], completed: list[str]) -> None:
    done = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE, "bash", script.name, "opprof", *typed],
        cwd=script.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert set(done.stdout.split()) == set(completed)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_has_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", shell])
    assert ended.value.code == 0
    script = capsys.readouterr().out
    for command in COMMANDS:
        assert command in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=60)


def test_missing_shtab_shows_the_install_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["--print-completion", "bash"]) == 2
    assert capsys.readouterr().err == "opprof: --print-completion needs shtab: pip install shtab\n"
