"""``make pictures`` draws the pages' pictures of a report: the demo's failure, light and dark."""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from benchmarks.browser import Browser, Tab, find_browser, started
from examples.demo import MUTATIONS, copied

PICTURES = Path(__file__).parents[1] / "pictures"
_WIDTH = 1100


def write_pictures(program: str) -> None:
    """Run the demo's first regression and write ``report-light.png`` and ``report-dark.png``."""
    with tempfile.TemporaryDirectory(prefix="opprof-pictures-") as folder, started(program) as browser:
        suite = copied(Path(folder))
        page = Path(folder, "report.html")
        suite.pytest("--opprof-save=main", report="base")
        with suite.regressed(MUTATIONS[0]):
            suite.pytest("--opprof-baseline=main", f"--opprof-report=html:{page}", report="head")
        for scheme in ("light", "dark"):
            PICTURES.joinpath(f"report-{scheme}.png").write_bytes(_drawn(browser, page, scheme))


def _drawn(browser: Browser, page: Path, scheme: str) -> bytes:
    tab = Tab(browser, width=_WIDTH, scheme=scheme)
    tab.open(page.as_uri())
    height = tab.run("Math.ceil(document.documentElement.getBoundingClientRect().height)")
    clip = {"x": 0, "y": 0, "width": _WIDTH, "height": height, "scale": 1}
    drawn = tab.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    tab.close()
    return base64.b64decode(drawn["data"])


if __name__ == "__main__":
    if (found := find_browser()) is None:
        sys.exit("there is no Chromium on this machine (Debian, Ubuntu: apt install chromium)")
    write_pictures(found)
