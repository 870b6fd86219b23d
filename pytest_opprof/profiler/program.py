"""Record a script, a module or code in this process, run as ``python`` itself runs it."""

from __future__ import annotations

import builtins
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from pytest_opprof.capture import cuda
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.torch_ops import on_torch_import
from pytest_opprof.errors import UsageError
from pytest_opprof.profiler.activities import ProfilerActivity
from pytest_opprof.profiler.profile import profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to run."""

    name: str  # the script's path, or the module's name
    is_module: bool
    arguments: tuple[str, ...]  # its own arguments

    @property
    def label(self) -> str:
        """The name of its run: the module's, or the script's file name."""
        return self.name if self.is_module else Path(self.name).name

    def enter(self) -> Callable[[], object]:
        """Set ``sys.argv``, ``sys.path[0]`` and ``__main__`` for this program; return what runs it.

        Raises a `UsageError` if there is no such script or module, and a `SyntaxError` if it is not Python.
        """
        if not sys.flags.safe_path:  # else Python has added no entry
            sys.path[0] = str(Path.cwd() if self.is_module else Path(self.name).resolve().parent)
        # Finding a module imports its package, which may read sys.argv.
        sys.argv = ["-m" if self.is_module else self.name, *self.arguments]
        code, names = _module(self.name) if self.is_module else _script(self.name)
        if self.is_module:
            sys.argv[0] = str(names["__file__"])
        main = ModuleType("__main__")
        vars(main).update(names, __builtins__=builtins)
        sys.modules["__main__"] = main  # for pickle, and for processes that multiprocessing spawns
        # Called as a function, a module's code runs in its globals, and no call of exec is recorded.
        return FunctionType(code, vars(main))


def run_program(program: Program, **options: Any) -> tuple[profile, BaseException | None]:
    """Run a program to its end and record it, as one step: the profile, and the program's exception.

    That may be ``SystemExit`` or ``KeyboardInterrupt``. The errors of `Program.enter` are raised.
    """
    if program.is_module:  # finding it imports its packages, which is the program's work
        return _record(program.enter, options)
    main = program.enter()
    return _record(lambda: main, options)


def run_code(code: CodeType, names: dict[str, Any], **options: Any) -> tuple[profile, BaseException | None]:
    """Run a module's code in a namespace and record it, as one step; returns the same as `run_program`.

    The options are those of `profile`.
    """
    main = FunctionType(code, names)
    return _record(lambda: main, options)


def _record(
    enter: Callable[[], Callable[[], object]], options: dict[str, Any]
) -> tuple[profile, BaseException | None]:
    """Record `enter`, and the function that it returns.

    A CUDA driver, if the machine has one, is started first: a window that opens without it lacks CUDA.
    """
    activities = [ProfilerActivity.CPU]
    if cuda.has_driver() and cuda.start_driver() is None:
        activities.append(ProfilerActivity.CUDA)
    collector = Collector.instance()
    recorder = profile(activities=activities, **options)
    raised: BaseException | None = None
    with on_torch_import(collector.join_torch), recorder:
        collector.step_begin(0)
        main = enter()
        try:
            main()
        except BaseException as error:  # noqa: BLE001  # it is the program's, and told as Python tells it
            raised = error
        if collector.recording:  # else this is a child that the program forked
            collector.step_end()
            collector.pause(paused=True)  # closing the window makes calls that are not the program's
    return recorder, raised


def _script(name: str) -> tuple[CodeType, dict[str, object]]:
    path = str(Path.cwd() / name)
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{name} cannot be run: {error.strerror}") from error
    loader = SourceFileLoader("__main__", path)
    names: dict[str, object] = {"__file__": path, "__loader__": loader, "__cached__": None}
    return loader.source_to_code(source, path), names


def _module(name: str) -> tuple[CodeType, dict[str, object]]:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            return _module(f"{name}.__main__")
        # Namespace packages have no loader before Python 3.13, and a loader without code since.
        code = None if spec is None else getattr(spec.loader, "get_code", lambda _: None)(name)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{name} cannot be run: {error}") from error
    if spec is None or code is None:
        raise UsageError(f"{name} cannot be run: there is no such module, or it has no Python code")
    names: dict[str, object] = {
        "__file__": spec.origin,
        "__loader__": spec.loader,
        "__cached__": spec.cached,
        "__package__": spec.parent,
        "__spec__": spec,
    }
    return code, names
