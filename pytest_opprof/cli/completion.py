"""``opprof --print-completion``: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_opprof.errors import UsageError

_SHELLS = ("bash", "zsh", "tcsh")
# Other things that may be a file: a run is a file or a baseline's name.
_MAY_BE_FILES = frozenset({"RUN", "BASE", "HEAD", "SCRIPT"})


class PrintCompletion(argparse.Action):
    """Prints the script for a shell, and ends, as ``--version`` does."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Print it.

        Raises:
            UsageError: Shtab is not installed.
        """
        del namespace, option_string
        try:
            import shtab  # noqa: PLC0415  # an extra
        except ModuleNotFoundError as error:
            raise UsageError("--print-completion needs shtab: pip install shtab") from error
        _complete_files(parser, shtab.FILE)
        print(shtab.complete(parser, str(values)))
        parser.exit()


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Tell the command line of the option."""
    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=_SHELLS,
        help='print a completion script, and exit: eval "$(opprof --print-completion bash)"',
    )


def _complete_files(parser: argparse.ArgumentParser, file: object) -> None:
    for action in parser._actions:  # noqa: SLF001  # argparse shows its actions nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for command in action.choices.values():
                _complete_files(command, file)
        elif action.type is Path or action.metavar in _MAY_BE_FILES:
            action.complete = file  # type: ignore[attr-defined]  # shtab looks for it there
