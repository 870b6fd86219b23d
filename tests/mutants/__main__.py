"""``python -m mutants``, run by `make mutants`: silences each detector in turn; a test must fail."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from mutants.covering import covering
from mutants.detector import Detector
from mutants.every import DETECTORS
from mutants.page import PAGE, page
from mutants.sample import digest_of_sources, drawn, survivors
from mutants.tree import BuildError, Tree
from mutants.trial import Ended, all_tried, is_native, tried

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_FOLDER: Final = _REPOSITORY / "build" / "mutants"
_WORDS: Final = {
    Ended.FAILED: "caught",
    Ended.HELD: "SURVIVED",
    Ended.SKIPPED: "left out",
    Ended.BROKE: "BROKE",
}
_WRONG: Final = frozenset({Ended.HELD, Ended.BROKE})
_DO_NOT_HOLD: Final = frozenset({Ended.FAILED, Ended.BROKE})


class Book:
    """What is known of these sources already: an interrupted run goes on where it was.

    Args:
        path: Of the file that it is kept in.
        digest: Of the sources; what is known of others is forgotten.
    """

    def __init__(self, path: Path, *, digest: str) -> None:
        self._path = path
        self._digest = digest
        self._known: dict[str, str] = {}
        if path.exists():
            document = json.loads(path.read_text(encoding="utf-8"))
            self._known = document["known"] if document["digest"] == digest else {}

    def __getitem__(self, name: str) -> str | None:
        return self._known.get(name)

    def __setitem__(self, name: str, found: str) -> None:
        self._known[name] = found
        document = {"digest": self._digest, "known": self._known}
        self._path.write_text(json.dumps(document, indent=1), encoding="utf-8")

    def close(self) -> None:
        """Start afresh next time: everything is done."""
        self._path.unlink(missing_ok=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="this detector; may be given again")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE} and end")
    parser.add_argument(
        "--random", type=int, metavar="N", help="try N single edits instead, drawn from --seed"
    )
    parser.add_argument("--seed", type=int, default=1, help="draws the edits (default: 1)")
    args = parser.parse_args(arguments)
    if args.random is not None:
        return _sampled(args.random, seed=args.seed)
    if args.write:
        (_REPOSITORY / PAGE).write_text(page(DETECTORS), encoding="utf-8")
        return 0
    chosen = [one for one in DETECTORS if args.only is None or one.name in args.only]
    unknown = set(args.only or ()) - {one.name for one in chosen}
    if unknown:
        parser.error(f"no detector {', '.join(sorted(unknown))}; {PAGE} lists them")
    tree = Tree(_REPOSITORY, folder=_FOLDER)
    try:
        digest = tree.prepare()
    except BuildError as error:
        print(error)
        return 1
    book = Book(_FOLDER / "known.json", digest=digest)
    if not _holds(tree, (one.test for one in chosen), book):
        return 1
    found = _all_silenced(tree, chosen, book)
    if args.only is None:
        book.close()
    counts = ", ".join(f"{found[ended]} {_WORDS[ended]}" for ended in Ended if found[ended])
    print(f"{len(chosen)} detectors: {counts}")
    return int(any(found[ended] for ended in _WRONG))


def _sampled(many: int, *, seed: int) -> int:
    """Try single edits, two at a time; report those that no test noticed, and the total."""
    trees = [Tree(_REPOSITORY, folder=_FOLDER / name) for name in ("left", "right")]
    for tree in trees:
        tree.prepare()
    digest = digest_of_sources(_REPOSITORY)
    covered = covering(trees[0], _FOLDER / f"covering-{digest[:12]}")
    book = Book(_FOLDER / f"sample-{seed}.json", digest=digest)
    edits = drawn(_REPOSITORY, many=many, seed=seed)
    left = survivors(trees, edits, covered, book)
    print(f"{many - len(left)} of {many} single edits were noticed (seed {seed})")
    return int(10 * len(left) > many)


def _holds(tree: Tree, tests: Iterable[str], book: Book) -> bool:
    """Whether the tests pass on unedited sources: one that fails anyway notices nothing."""
    print("the tests, of the sources as they are:", flush=True)
    named = list(dict.fromkeys(tests))
    unknown = [test for test in named if book[test] is None]
    trials = {test: tried(tree, test) for test in unknown if is_native(test)}
    pythons = [test for test in unknown if not is_native(test)]
    trials |= all_tried(tree, pythons) if pythons else {}
    for test, trial in trials.items():
        if trial.ended in _DO_NOT_HOLD:
            print(f"{trial.ended.value}: {test}: {trial.why}", flush=True)
        else:
            book[test] = trial.ended.value
    wrong = sum(book[test] is None for test in named)
    print(f"{wrong} of {len(named)} do not hold" if wrong else f"all {len(named)} hold", flush=True)
    return not wrong


def _all_silenced(tree: Tree, detectors: Sequence[Detector], book: Book) -> Counter[Ended]:
    found = Counter[Ended]()
    for detector in detectors:
        ended = book[detector.name]
        if ended is None:
            is_skipped = book[detector.test] == Ended.SKIPPED.value
            ended = _silenced(tree, detector, is_skipped=is_skipped).value
            book[detector.name] = ended
        found[Ended(ended)] += 1
    return found


def _silenced(tree: Tree, detector: Detector, *, is_skipped: bool) -> Ended:
    if is_skipped:
        print(f"left out: {detector.name}: {detector.test} {Ended.SKIPPED.value}", flush=True)
        return Ended.SKIPPED
    with tree.without(detector):
        trial = tried(tree, detector.test)
    # a test that skips itself because of the edit notices nothing
    ended = Ended.HELD if trial.ended is Ended.SKIPPED else trial.ended
    where = trial.where or detector.test
    why = f": {trial.why}" if ended is Ended.BROKE else ""
    print(f"{_WORDS[ended]}: {detector.name} -> {where}{why}", flush=True)
    return ended


if __name__ == "__main__":
    sys.exit(main())
