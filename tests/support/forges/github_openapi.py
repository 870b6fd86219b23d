"""Prism between a client and our server, to enforce GitHub's API description in both directions.

`make github-api` installs both from npm. Prism turns a request or a successful answer that violates the
description into an error, so the test fails.
"""

import copy
import json
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from support.forges.github_api import GitHubApi
from support.forges.loopback import Asked, Loopback, Reply

INSTALLED = Path(__file__).parents[3] / "build" / "github-api" / "node_modules"
_DESCRIPTION = INSTALLED / "@octokit" / "openapi" / "generated" / "api.github.com.json"
_PRISM = INSTALLED / ".bin" / "prism"
# The requests that we make. Prism would take minutes to read the whole description of 13 MB.
_USED = {
    "/user": ["get"],
    "/repos/{owner}/{repo}/pulls": ["get"],
    "/repos/{owner}/{repo}/pulls/{pull_number}": ["get"],
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ["get", "post"],
    "/repos/{owner}/{repo}/issues/comments/{comment_id}": ["patch", "delete"],
    "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts": ["get"],
    "/repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}": ["get"],
    "/repos/{owner}/{repo}/compare/{basehead}": ["get"],
}
# answer headers about the connection, not the content
_OF_THE_WAY = {"connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding"}


def is_installed() -> bool:
    """Whether GitHub's description and Prism are there."""
    return _DESCRIPTION.exists() and _PRISM.exists()


@dataclass(frozen=True, kw_only=True)
class Description:
    """The part of GitHub's description that we use.

    Attributes:
        document: The OpenAPI document, unmodified except for omissions.
        templates: GitHub's examples of the objects that our server returns.
    """

    document: Mapping[str, Any]
    templates: Mapping[str, Any]

    @classmethod
    def read(cls) -> "Description":
        """Extract it from the whole description."""
        whole = json.loads(_DESCRIPTION.read_text(encoding="utf-8"))
        paths = {
            path: {method: whole["paths"][path][method] for method in methods}
            for path, methods in _USED.items()
        }
        components: dict[str, dict[str, Any]] = {}
        for reference in _references(paths, whole=whole):
            _, _, kind, name = reference.split("/", 3)
            components.setdefault(kind, {})[name] = whole["components"][kind][name]
        kept = {key: whole[key] for key in ("openapi", "info", "servers")}
        return cls(
            document={**kept, "paths": paths, "components": components},
            templates=_templates(components["examples"]),
        )


def _references(part: Any, *, whole: Any) -> set[str]:
    """The parts that a part of the description refers to, recursively."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str) and reference not in found:
                found.add(reference)
                _, kind, section, name = reference.split("/", 3)
                waiting.append(whole[kind][section][name])
            waiting += value.values()
    return found


def _templates(examples: Mapping[str, Any]) -> dict[str, Any]:
    def example(name: str) -> Any:
        return copy.deepcopy(examples[name]["value"])

    templates = {
        "user": example("private-user-response-with-public-and-private-profile-information"),
        "pull": example("pull-request"),
        "pull-simple": example("pull-request-simple-items")[0],
        "comment": example("issue-comment"),
        "artifact": example("artifact-paginated")["artifacts"][0],
        "comparison": example("commit-comparison"),
    }
    # teams in GitHub's examples lack fields that its schema requires
    templates["pull"]["requested_teams"] = templates["pull-simple"]["requested_teams"] = []
    return templates


class Prism:
    """Prism in front of our server, which may be another one for each test.

    Attributes:
        api: The current server.
        url: The address for clients.
        log: Prism's output.
    """

    def __init__(self, folder: Path) -> None:
        description = Description.read()
        self.templates = description.templates
        self.api: GitHubApi | None = None
        self.log: list[str] = []
        self._behind = Loopback(self._pass_on)
        path = folder / "github.json"
        path.write_text(json.dumps(description.document), encoding="utf-8")
        # a port that was just free, because Prism does not accept 0
        probe = Loopback(lambda _: Reply())
        port = probe.url.rpartition(":")[2]
        probe.close()
        self._process = subprocess.Popen(
            [str(_PRISM), "proxy", str(path), self._behind.url, "--errors", "-p", port],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.log.append(line)
            if "Prism is listening" in line:
                break
        else:
            raise AssertionError("Prism did not start: " + "".join(self.log))
        self._reader = threading.Thread(target=self.log.extend, args=(self._process.stdout,))
        self._reader.start()
        self._url = f"http://127.0.0.1:{port}"
        self._client = httpx.Client(base_url=self._url, timeout=60)
        self._front = Loopback(self._let_in)
        self.url = self._front.url

    def close(self) -> None:
        """Stop it, and the servers on both sides."""
        self._client.close()
        self._process.terminate()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._front.close()
        self._behind.close()

    def _pass_on(self, asked: Asked) -> Reply:
        assert self.api is not None, "a test that asks has a server"
        return self.api.server.reply(asked)

    def _let_in(self, asked: Asked) -> Reply:
        # Prism follows redirects itself, and then finds no description of such an answer.
        if asked.path.endswith("/zip"):
            return self._pass_on(asked)
        headers = {name: value for name, value in asked.headers.items() if name not in {"host", *_OF_THE_WAY}}
        answer = self._client.request(
            asked.method, asked.path, params=dict(asked.query), content=asked.body, headers=headers
        )
        kept = {name: value for name, value in answer.headers.items() if name not in _OF_THE_WAY}
        return Reply(status=answer.status_code, data=answer.content, headers=kept)
