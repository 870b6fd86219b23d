"""The command line: run a command, and print its error as a sentence.

A command is a module of this package with ``HELP``, ``EXAMPLE``, ``add_arguments(parser)`` and ``run(args) ->
int``, which may raise any `OpprofError`. Its name in `GROUPS` registers it. Only the requested command is
imported.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TextIO

from pytest_opprof.errors import OpprofError, StoreError, UsageError

GROUPS = {
    "set up": ("init", "doctor", "prepare", "env"),
    "compare runs": ("show", "compare", "accept", "report", "view", "comment"),
    "keep runs": ("baseline", "history", "merge", "import-benchmarks", "validate"),
    "measure": ("run", "ab", "replay", "bisect", "attach", "trace", "recover"),
    "judge jobs of many ranks": ("fleet",),
    "serve": ("mcp",),
}
COMMANDS = tuple(command for commands in GROUPS.values() for command in commands)
# The commands that need the collector.
RECORDING = frozenset(
    {"ab", "attach", "bisect", "env", "fleet", "prepare", "recover", "replay", "run", "trace"}
)
_SHELLS = ("bash", "zsh", "tcsh")
# Other arguments that may name a file: a run is a file or a baseline's name.
_MAY_BE_FILES = frozenset({"RUN", "BASE", "HEAD", "SCRIPT"})
_SIGNALLED = 128
_SIGPIPE = 13  # Windows does not name it


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``opprof``; return 0 if passed, 1 if a gate failed, 2 on usage, 3 and up on trouble (`errors`)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        _make_usable()
        code = _run(arguments)
        # Flush here: at exit nobody could catch an error.
        sys.stdout.flush()
    except OpprofError as error:
        _say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted")
        return _SIGNALLED + signal.SIGINT
    except BrokenPipeError:
        # As in `opprof show run.json | head`.
        _drop(sys.stdout)
        return _SIGNALLED + _SIGPIPE
    except OSError as error:
        # Often stdout's own, of a full disk.
        try:
            sys.stdout.flush()
        except OSError:
            _drop(sys.stdout)
        _say(str(error))
        return StoreError.exit_code
    return code


def whole_parser() -> argparse.ArgumentParser:
    """The parser with every command, as the reference and ``opprof --help`` show it."""
    return _parser({name: _module(name) for name in COMMANDS})


def _run(arguments: list[str]) -> int:
    if not arguments:
        whole_parser().print_help()
        return 0
    asked = arguments[0] if arguments[0] in COMMANDS else None
    if asked is None and not arguments[0].startswith("-"):
        near = difflib.get_close_matches(arguments[0], COMMANDS, n=1)
        hint = f" (did you mean 'opprof {near[0]}'?)" if near else ""
        raise UsageError(f"unknown command {arguments[0]!r}{hint}. To list the commands: opprof --help")
    modules = {name: _module(name) for name in ([asked] if asked else COMMANDS)}
    parser = _parser(modules)
    args, others = parser.parse_known_args(arguments)
    args.given = arguments
    if others and "pytest_args" not in args:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    if others:
        args.pytest_args = others  # this command passes unknown arguments to pytest
    if args.command in RECORDING:
        from pytest_opprof.capture.native import require  # it loads the collector

        require()
    code: int = modules[args.command].run(args)
    return code


def _parser(modules: dict[str, ModuleType]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="opprof",
        description="Look at what pytest-opprof measured, compare runs, set a project up.",
        formatter_class=_Grouped,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    parser.add_argument(
        "--print-completion",
        action=_PrintCompletion,
        choices=_SHELLS,
        help='print a completion script, and exit: eval "$(opprof --print-completion bash)"',
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    for name, module in modules.items():
        command = subparsers.add_parser(name, help=module.HELP, epilog=f"Example: {module.EXAMPLE}")
        module.add_arguments(command)
    _describe(subparsers)
    return parser


def _describe(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Begin each command's help with its sentence in the list of commands."""
    for choice in subparsers._choices_actions:  # noqa: SLF001 - argparse shows its actions nowhere else
        command, text = subparsers.choices[choice.dest], choice.help or ""
        command.description = " ".join(filter(None, (f"{text[:1].upper()}{text[1:]}.", command.description)))
        for action in command._actions:  # noqa: SLF001 - see above
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - see above
                _describe(action)


class _Grouped(argparse.HelpFormatter):
    """Prints each group's title above its first command."""

    def _format_action(self, action: argparse.Action) -> str:
        titles = {commands[0]: title for title, commands in GROUPS.items()}
        text = super()._format_action(action)
        is_command = isinstance(action, argparse._SubParsersAction._ChoicesPseudoAction)  # noqa: SLF001
        return f"\n  {titles[action.dest]}:\n{text}" if is_command and action.dest in titles else text


class _Version(argparse.Action):
    """Like argparse's own, but looks up the version only on request: that imports a parser of e-mail."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from pytest_opprof.release import version

        print(f"opprof {version()}")
        parser.exit()


class _PrintCompletion(argparse.Action):
    """Prints what a shell needs to complete commands, options and files."""

    def __call__(self, parser: argparse.ArgumentParser, _: object, shell: object, *__: object) -> None:
        try:
            import shtab  # an extra
        except ModuleNotFoundError as error:
            raise UsageError("--print-completion needs shtab: pip install shtab") from error
        _complete_files(parser, shtab.FILE)
        print(shtab.complete(parser, str(shell)))
        parser.exit()


def _complete_files(parser: argparse.ArgumentParser, file: object) -> None:
    for action in parser._actions:  # noqa: SLF001  # argparse shows its actions nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for command in action.choices.values():
                _complete_files(command, file)
        elif action.type is Path or action.metavar in _MAY_BE_FILES:
            action.complete = file  # type: ignore[attr-defined]  # shtab looks for it there


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"pytest_opprof.cli.{name.replace('-', '_')}")


def _say(message: str) -> None:
    """Print an error, with its control characters escaped: it may quote an untrusted file."""
    from pytest_opprof.report.text import escaped

    text = "\n".join(map(escaped, message.splitlines()))
    try:
        print(f"opprof: {text}", file=sys.stderr)
    except OSError:
        _drop(sys.stderr)


def _make_usable() -> None:
    """Print escapes for characters that the terminal lacks, rather than fail; stand in for closed streams."""
    # Python has None for a closed stream.
    sys.stdin = sys.stdin or Path(os.devnull).open()  # noqa: SIM115  # it stays
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115  # it stays
    if not sys.stdout:
        # The next file that is opened would get what is printed.
        raise StoreError("standard output is closed. To print nothing, send it to /dev/null")
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _drop(stream: TextIO) -> None:
    """Drop what a stream could not write: Python would report it again when it closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
