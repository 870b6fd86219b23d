"""Every report format by name: commands and options take those registered here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

from pytest_opprof.baselines.git import Git
from pytest_opprof.errors import UsageError
from pytest_opprof.report.annotations import Folders, github_annotations
from pytest_opprof.report.badge import badge
from pytest_opprof.report.html.page import html_report
from pytest_opprof.report.junit import junit
from pytest_opprof.report.markdown import gitlab_note, job_summary, markdown_comment
from pytest_opprof.report.openmetrics import openmetrics
from pytest_opprof.report.summary import Judged
from pytest_opprof.wording import did_you_mean

# Each makes a text from a comparison that was read from an untrusted document.
FORMATS: Mapping[str, Callable[[Judged], str]] = MappingProxyType(
    {
        "html": html_report,
        "markdown": markdown_comment,
        "summary": job_summary,
        "gitlab": gitlab_note,
        "junit": junit,
        "annotations": github_annotations,
        "openmetrics": openmetrics,
        "badge": badge,
    }
)


def renderer(
    name: str,
    *,
    where: str,
    besides: Sequence[str] = (),
    folders: Callable[[], tuple[Path, Path]] | None = None,
) -> Callable[[Judged], str]:
    """The renderer of this format; an error names the option `where`, which takes the names `besides` too.

    GitHub wants paths from the repository's top: `folders` are where pytest was started, and its root folder.
    """
    if name == "annotations" and folders is not None:
        start, root = (Git(folder).prefix for folder in folders())
        return partial(github_annotations, folders=Folders(start=start, root=root))
    if name in FORMATS:
        return FORMATS[name]
    raise UsageError(f"{where}: unknown format {name!r} ({did_you_mean(name, [*FORMATS, *besides])})")
