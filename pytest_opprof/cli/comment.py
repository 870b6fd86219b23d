"""``opprof comment``: one comment on a pull request, kept up to date."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.cli.project import Project, add_gate, add_store, store_of
from pytest_opprof.errors import UsageError
from pytest_opprof.report.text import escaped

if TYPE_CHECKING:
    from pytest_opprof.forge.commenting import Done, Wish

HELP = "comment on this CI job's pull request"
EXAMPLE = "opprof comment comparison.json"

_GITHUB, _GITLAB = "github", "gitlab"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("comparison", nargs="?", type=Path, metavar="COMPARISON", help="its JSON file")
    parser.add_argument("--base", metavar="RUN", help="with --head: compare these two")
    parser.add_argument("--head", metavar="RUN", help="a run's file, a baseline's name, or NAME@COMMIT")
    parser.add_argument(
        "--from-event",
        action="store_true",
        help="in a workflow_run workflow of GitHub: compare the upload of the finished run",
    )
    parser.add_argument(
        "--baseline", metavar="NAME", help="with --from-event (default: the branch it would be merged into)"
    )
    add_store(parser)
    add_gate(parser, needs="with --from-event or --base: ")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="with --from-event: write the comparison"
    )
    parser.add_argument(
        "--forge", choices=(_GITHUB, _GITLAB), help="default: gitlab in a job of GitLab CI, else github"
    )
    parser.add_argument(
        "--configuration",
        default="default",
        metavar="ID",
        help="what was measured, such as cuda: each has a comment of its own; default: %(default)s",
    )
    parser.add_argument(
        "--when",
        choices=("always", "regressed"),
        default="always",
        help="regressed: no comment until the first test fails; default: %(default)s",
    )
    parser.add_argument("--author", metavar="LOGIN", help="the token's login, for an app such as my-app[bot]")
    parser.add_argument("--dry-run", action="store_true", help="print the comment, and write nothing")


def run(args: argparse.Namespace) -> int:
    """Comment, and say what was done."""
    from pytest_opprof.baselines.git import Git
    from pytest_opprof.forge.commenting import When, Wish

    _refuse_contradictions(args)
    wish = Wish(
        configuration=args.configuration,
        when=When(args.when),
        author=args.author,
        folder=Git(Path.cwd()).prefix,
        is_dry_run=args.dry_run,
    )
    done = _from_event(args, wish) if args.from_event else _of_comparison(args, wish)
    # Print a comment as it would be sent, but escape control characters.
    print("\n".join(map(escaped, done.told.splitlines())))
    return done.exit_code


def _refuse_contradictions(args: argparse.Namespace) -> None:
    if not args.from_event and (args.baseline or args.output):
        raise UsageError("--baseline and --output need --from-event")
    if args.from_event and (args.comparison or args.base or args.head):
        raise UsageError("--from-event compares what was uploaded: leave out COMPARISON, --base and --head")
    if args.from_event and args.forge == _GITLAB:
        raise UsageError(
            "--from-event works only on GitHub. In GitLab CI, comment from the job that compares"
        )


def _of_comparison(args: argparse.Namespace, wish: Wish) -> Done:
    from pytest_opprof.cli.comparison import comparison_of
    from pytest_opprof.forge.ci_environment import GitHubJob, GitLabJob
    from pytest_opprof.forge.commenting import (
        Done,
        comment_on_github,
        comment_on_gitlab,
        comment_text,
    )

    judged = comparison_of(args)
    forge = args.forge or (_GITLAB if os.environ.get("GITLAB_CI") else _GITHUB)
    if wish.is_dry_run:
        return Done(told=comment_text(judged, wish, is_gitlab=forge == _GITLAB))
    if forge == _GITLAB:
        return comment_on_gitlab(judged, GitLabJob.of(os.environ), wish)
    return comment_on_github(judged, GitHubJob.of(os.environ), wish)


def _from_event(args: argparse.Namespace, wish: Wish) -> Done:
    from pytest_opprof.forge.ci_environment import GitHubJob
    from pytest_opprof.forge.commenting import comment_from_event
    from pytest_opprof.forge.fork_verdict import Baselines

    baselines = Baselines(
        store=store_of(args.store),
        name=args.baseline,
        root=Path.cwd(),
        policy=Project.here().policy(args.gate),
    )
    return comment_from_event(
        GitHubJob.of(os.environ),
        wish,
        baselines=baselines,
        output=args.output,
        now=datetime.now(UTC),
    )
