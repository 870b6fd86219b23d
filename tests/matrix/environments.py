"""Makes each row's environment, once: a virtual environment, on this machine or in a Debian folder."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from matrix.rows import Row

REPOSITORY: Final = Path(__file__).parents[2]
STOPPED: Final = 124  # as of timeout(1)
# what a newcomer installs on Debian, as in the README
_README_PACKAGES: Final = ("build-essential", "git", "python3-dev", "python3-venv", "ca-certificates")
# This machine's bundle, copied after ca-certificates is installed, which rewrites it.
_NETWORK_FILES: Final = ("etc/ssl/certs/ca-certificates.crt", "etc/hosts", "etc/resolv.conf")
# in its own namespace, so that nothing stays mounted
_ENTER: Final = (
    'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && mount -t tmpfs none "$0/dev/shm" '
    '&& exec chroot "$0" "$@"'
)


class UnavailableError(Exception):
    """This machine cannot have an environment; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An environment that is there.

    Attributes:
        folder: What is in it: a checkout, logs and, but for a fresh machine, a virtual environment.
        root: The distribution that it lives in; None for this machine's own.
    """

    folder: Path
    root: Path | None = None

    @property
    def place(self) -> Path:
        """The folder as its commands see it."""
        return Path("/") / self.folder.relative_to(self.root) if self.root else self.folder

    def run(self, command: str, log: Path, *, limit_s: float | None = None) -> int:
        """Run a shell command in the checkout; its output goes to a log."""
        script = f"cd {shlex.quote(str(self.place / 'checkout'))} && {command}"
        words = ["bash", "-eu", "-o", "pipefail", "-c", script]
        with log.open("wb") as out:
            process = subprocess.Popen(
                _entered(self.root, words),
                env=self._variables(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
            try:
                return process.wait(limit_s)
            except subprocess.TimeoutExpired:
                return STOPPED
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, 9)
                    process.wait()

    def _variables(self) -> dict[str, str]:
        venv = self.place / "venv"
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in {"PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"}
            and not name.startswith("OPPROF_")
        }
        variables |= {"PATH": f"{venv / 'bin'}:{variables.get('PATH', os.defpath)}"}
        if self.root:  # it contains none of this machine's folders
            kept = {
                name: value
                for name, value in variables.items()
                if name.startswith(("LANG", "PIP_CERT", "UV_INDEX"))
            }
            bundle = f"/{_NETWORK_FILES[0]}"
            variables = kept | {
                "PATH": f"{venv / 'bin'}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": "/root",
                "SSL_CERT_FILE": bundle,
                "OPPROF_TORCH": "skip",
            }
        return variables | {"OPPROF_CACHE_DIR": str(self.place / "observers")}


def environment_of(row: Row, base: Path) -> Environment:
    """Make it, or find it as an earlier run has made it, with the committed sources of now.

    Args:
        row: Of which one.
        base: The folder of all environments.

    Raises:
        UnavailableError: It cannot be had here.
    """
    root = _root(row, base) if row.suite else None
    environment = Environment(folder=(root / "src" if root else base / row.name), root=root)
    environment.folder.mkdir(parents=True, exist_ok=True)
    checkout = environment.folder / "checkout"
    if not checkout.exists():
        _do(["git", "clone", "--quiet", "--no-hardlinks", str(REPOSITORY), str(checkout)])
    _do(["git", "-C", str(checkout), "fetch", "--quiet", str(REPOSITORY), "HEAD"])
    _do(["git", "-C", str(checkout), "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"])
    if not row.whole:
        _install(row, environment, uv=_uv(base))
    return environment


def _root(row: Row, base: Path) -> Path:
    """A distribution in a folder, with the packages that the README names."""
    if os.getuid() != 0 or not shutil.which("debootstrap"):
        raise UnavailableError("debootstrap is not installed here, or this user is not root")
    root = base / row.name
    if (root / "src").exists():
        return root
    made = base / f"{row.name}.partial"
    shutil.rmtree(made, ignore_errors=True)
    _do(["debootstrap", "--variant=minbase", row.suite, str(made)])
    packages = [*_README_PACKAGES, *row.packages]
    _do(_entered(made, ["apt-get", "install", "--yes", "--no-install-recommends", *packages]))
    for file in _NETWORK_FILES:
        shutil.copyfile(f"/{file}", made / file)
    (made / "src").mkdir()
    made.rename(root)
    return root


def _uv(base: Path) -> Path:
    """The installer: its cache shares equal packages between all environments."""
    tools = base / "tools"
    if not (tools / "bin/uv").exists():
        _do([sys.executable, "-m", "venv", str(tools)])
        _do([str(tools / "bin/python"), "-m", "pip", "install", "--quiet", "uv"])
    return tools / "bin/uv"


def _install(row: Row, environment: Environment, *, uv: Path) -> None:
    """Install torch, the tests' requirements, and the package, built here from the checkout."""
    interpreter = f"python{row.python}"
    if (
        environment.root is None
        and subprocess.run([interpreter, "-c", ""], check=False, capture_output=True).returncode
    ):
        raise UnavailableError(f"there is no {interpreter} here")
    if environment.root:
        shutil.copy(uv, environment.root / "usr/local/bin/uv")
        uv = Path("/usr/local/bin/uv")
    wanted = environment.folder / "wanted.txt"
    wanted.write_text("\n".join(requirements(row)) + "\n", encoding="utf-8")
    cache, where = environment.place.parent / "uv-cache", environment.place / "venv"
    links = (
        f" --find-links {shlex.quote(os.environ['PIP_FIND_LINKS'])}" if "PIP_FIND_LINKS" in os.environ else ""
    )
    install = f"{uv} --cache-dir {cache} pip install --quiet --python {where}/bin/python"
    commands = [
        f"[ -e {where} ] || {interpreter} -m venv {'--system-site-packages' if row.packages else ''} {where}",
        f"{install} {'' if environment.root else links} --requirements {environment.place}/wanted.txt",
        f"{install} --reinstall-package pytest-opprof --no-deps --editable .",
    ]
    log = environment.folder / "install.log"
    if environment.run(" && ".join(commands), log):
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise UnavailableError(f"it cannot be installed: {' '.join(last)}")


def requirements(row: Row) -> list[str]:
    """The dev extra without CUDA's headers: torch has its own releases of those."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    torch = [f"torch=={row.torch}"] if row.torch else []
    return [*torch, *(requirement for requirement in asked if not requirement.startswith("nvidia-"))]


def _entered(root: Path | None, words: Sequence[str]) -> list[str]:
    if root is None:
        return list(words)
    return ["unshare", "--mount", "sh", "-c", _ENTER, str(root), *words]


def _do(words: Sequence[str]) -> None:
    done = subprocess.run(
        words, capture_output=True, text=True, errors="replace", check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise UnavailableError(f"`{' '.join(words[:4])}` failed: {' '.join(said)}")
