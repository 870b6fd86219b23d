"""``python -m fuzz.child NAME [what libFuzzer takes]``: one target under atheris, to its end or a finding.

What atheris does not see imported it does not see run: the catalog is imported here, and nothing of the package
before it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Final

import atheris
from fuzz.mutation import JsonMutator

_PACKAGE: Final = "pytest_opprof"
_ROOT: Final = Path(__file__).parents[2]


class _Sources(MetaPathFinder):
    """The package's modules as plain files: atheris cannot look into the loader of an editable install."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] != _PACKAGE:
            return None
        spec = PathFinder.find_spec(name, [str(_ROOT)] if path is None else path, target)
        return spec if spec is not None and isinstance(spec.loader, SourceFileLoader) else None


def main() -> None:
    name, *options = sys.argv[1:]
    # The parent process removes it: libFuzzer ends this process without returning.
    folder = tempfile.mkdtemp()
    with atheris.instrument_imports(include=[_PACKAGE]) as imports:
        finders = [type(finder).__module__ for finder in sys.meta_path]
        sys.meta_path.insert(finders.index(type(imports).__module__) + 1, _Sources())
        from fuzz.catalog import target_of

        target = target_of(name)

        def attempt(data: bytes) -> None:
            target.attempt(data, Path(folder))

        def mutate(data: bytes, most: int) -> bytes:
            # Looked up at the call: before `Setup`, this name is a function that only raises.
            mutated: bytes = atheris.Mutate(data, most)
            return mutated

        # Imports must not count towards the first input's time.
        for path in target.corpus():
            attempt(path.read_bytes())
        mutator = JsonMutator(mutate, target.words)
        atheris.Setup([sys.argv[0], *options], attempt, custom_mutator=mutator)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
