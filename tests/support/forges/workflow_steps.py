"""GitHub workflows and composite actions, parsed, and their run blocks executed as a runner does.

Steps that use a third-party action are not run; `Steps.run` returns their names.
"""

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[3]
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
ACTIONS = sorted((REPOSITORY / ".github" / "actions").glob("*/action.yml"))
# GitHub's commands for `shell: bash`, and for a step without a shell
_BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
_NO_SHELL = ("bash", "-e")
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_TOKEN = re.compile(r"\s*('(?:[^']|'')*'|&&|\|\||==|!=|[!(),]|[\w.-]+)")


def parsed(path: Path) -> dict[str, Any]:
    """A YAML file; YAML 1.1 reads `on` as true."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return {("on" if key is True else key): value for key, value in document.items()}


def jobs(path: Path) -> Mapping[str, Any]:
    """The jobs of a workflow; of an action, its steps as a job."""
    document = parsed(path)
    found: Mapping[str, Any] = document["jobs"] if "jobs" in document else {"": document["runs"]}
    return found


def steps(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each step of a file, with a name that includes its position."""
    for job, content in jobs(path).items():
        for number, step in enumerate(content.get("steps", ())):
            name = step.get("name") or step.get("uses") or number
            yield f"{path.parent.name}/{path.name}: {job}: {name}", step


def expressions(value: Any) -> list[str]:
    """The contents of ``${{`` and ``}}`` in a value, recursively."""
    if isinstance(value, Mapping):
        return [found for each in value.values() for found in expressions(each)]
    if isinstance(value, list):
        return [found for each in value for found in expressions(each)]
    return _EXPRESSION.findall(value) if isinstance(value, str) else []


@dataclass(kw_only=True)
class Expression:
    """A GitHub Actions expression, as far as these files use them.

    Attributes:
        context: The values of names such as `inputs.store`; a missing one is an empty text.
    """

    context: Mapping[str, str]
    _tokens: list[str] = field(default_factory=list)

    def text(self, value: str) -> str:
        """A value with its expressions replaced."""
        return _EXPRESSION.sub(lambda found: str(self.value(found[1])), value)

    def value(self, expression: str) -> Any:
        """The value of an expression."""
        self._tokens = [found[1] for found in _TOKEN.finditer(expression)]
        result = self._either()
        assert not self._tokens, f"not understood: {expression}"
        return result

    def _either(self) -> Any:
        result = self._both()
        while self._takes("||"):
            other = self._both()
            result = result or other
        return result

    def _both(self) -> Any:
        result = self._compared()
        while self._takes("&&"):
            other = self._compared()
            result = result and other
        return result

    def _compared(self) -> Any:
        result = self._single()
        if self._takes("=="):
            return result == self._single()
        if self._takes("!="):
            return result != self._single()
        return result

    def _single(self) -> Any:
        if self._takes("!"):
            return not self._single()
        if self._takes("("):
            result = self._either()
            assert self._takes(")")
            return result
        token = self._tokens.pop(0)
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if self._takes("("):
            return self._called(token)
        return self.context.get(token, "")

    def _called(self, name: str) -> Any:
        arguments = []
        while not self._takes(")"):
            arguments.append(self._either())
            self._takes(",")
        functions: Mapping[str, Callable[..., Any]] = {
            "startsWith": lambda text, start: str(text).startswith(start),
            "cancelled": lambda: False,
        }
        return functions[name](*arguments)

    def _takes(self, token: str) -> bool:
        if self._tokens and self._tokens[0] == token:
            self._tokens.pop(0)
            return True
        return False


@dataclass(kw_only=True)
class Runner:
    """Runs steps one after the other, as a runner does.

    Attributes:
        folder: The checkout.
        temporary: RUNNER_TEMP, which also holds files such as GITHUB_OUTPUT.
        variables: The environment of each step, without this process's own.
        context: The values that expressions may read.
        used: Third-party actions, which are not run, and their inputs.
        printed: The output of the steps.
        failed: The name of the first step that failed, and its exit code.
    """

    folder: Path
    temporary: Path
    variables: Mapping[str, str]
    context: dict[str, str] = field(default_factory=dict)
    used: dict[str, Mapping[str, str]] = field(default_factory=dict)
    printed: str = ""
    failed: tuple[str, int] | None = None

    @property
    def summary(self) -> str:
        """The job's summary page."""
        path = self.temporary / "summary"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def action(self, path: Path, **inputs: str) -> None:
        """Run a composite action with these inputs; a dash in a name is written as an underscore."""
        document = parsed(path)
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert given.keys() <= document["inputs"].keys()
        for name, declared in document["inputs"].items():
            default = Expression(context=self.context).text(declared.get("default", ""))
            self.context[f"inputs.{name}"] = given.get(name, default)
        self.context["github.action_path"] = str(path.parent)
        self.steps(document["runs"]["steps"])

    def steps(self, listed: list[Mapping[str, Any]]) -> None:
        """Run these steps; after a failure, only those whose condition asks for it."""
        for step in listed:
            condition = str(step.get("if", ""))
            expression = Expression(context=self.context)
            if self.failed and "cancelled()" not in condition:
                continue
            if condition and not expression.value(_EXPRESSION.sub(r"\1", condition)):
                continue
            if "uses" in step:
                given = {name: expression.text(str(value)) for name, value in step.get("with", {}).items()}
                self.used[step.get("name", step["uses"])] = given
                continue
            self._run(step, expression)

    def _run(self, step: Mapping[str, Any], expression: Expression) -> None:
        output = self.temporary / "output"
        output.write_text("", encoding="utf-8")
        script = self.temporary / "step.sh"
        script.write_text(expression.text(step["run"]), encoding="utf-8")
        own = {name: expression.text(str(value)) for name, value in step.get("env", {}).items()}
        files = {
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.temporary / "summary"),
        }
        done = subprocess.run(
            [*(_BASH if step.get("shell") == "bash" else _NO_SHELL), str(script)],
            cwd=self.folder / expression.text(step.get("working-directory", ".")),
            env={**self.variables, **files, **own},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        self.printed += done.stdout + done.stderr
        # pytest shows this if a test fails
        print(done.stdout, done.stderr, sep="\n")
        if done.returncode and not self.failed:
            self.failed = step.get("name", ""), done.returncode
        for line in output.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            self.context[f"steps.{step.get('id')}.outputs.{name}"] = value
