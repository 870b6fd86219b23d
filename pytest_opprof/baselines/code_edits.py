"""Which statements of Python sources are new or edited since an older version of them.

Names of variables make no difference if they are renamed where they are bound; nor do, wherever they are
used, attributes whose old name is gone, renamed methods, and keywords of renamed parameters. A function or a
class may move to another place or file.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from pytest_opprof.baselines.code_scopes import FUNCTION, Key, Scope, Statement, lines_of, parsed, scopes_in

_ANNOTATION: Final = re.compile(r"(?<=\w)\s*:\s*[^=,()]+?(?=\s*(?:[=,)]|$))|\s*->[^:]*(?=:)")
# Two functions or classes that share at least this part of their statements are one that was renamed.
_SAME = 0.5
_MOST_PAIRS = 40_000
_Renamed: TypeAlias = "tuple[str, str]"
_NOTHING = frozenset[str]()


class CodeEdits(NamedTuple):
    """The edits of a file. Names of functions and classes are qualified; that of the module is empty."""

    lines: frozenset[int]  # the numbers of new and edited lines
    cut: frozenset[str] = _NOTHING  # what lost statements, and got none there
    decorated: frozenset[str] = _NOTHING  # what has other decorators
    new: frozenset[str] = _NOTHING  # what there was not


class _Side:
    """One version of all files; the `unread` ones are those that Python cannot read."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources.values()
        modules = {file: parsed(source) for file, source in sources.items()}
        self.unread = {file for file, module in modules.items() if module is None}
        read = ((file, module) for file, module in modules.items() if module is not None)
        self.scopes = {
            one.key: one for file, module in read for one in scopes_in(module, file, sources[file])
        }
        self._inside = defaultdict[Key, list[Scope]](list)
        for one in self.scopes.values():
            for key in (one.key, *one.around):
                self._inside[key].append(one)
        self._names: dict[Key, frozenset[str]] = {}

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of functions and classes, without what they are in."""
        return frozenset(one.own_name for one in self.scopes.values())

    def has_member(self, name: str) -> bool:
        """Whether something is, or is asked for, an attribute of this name, which begins with a dot."""
        use = re.compile(rb"\.\s*" + re.escape(name[1:].encode()) + rb"\b")
        return name[1:] in self.functions or any(map(use.search, self._sources))

    def names_in(self, key: Key) -> frozenset[str]:
        """The names of variables in a scope, and in those inside it."""
        if key not in self._names:
            statements = (statement for one in self._inside[key] for statement in one.statements)
            self._names[key] = frozenset(name for one in statements for name, _ in one.names)
        return self._names[key]


def edits_between(base: Mapping[str, bytes], head: Mapping[str, bytes]) -> dict[str, CodeEdits]:
    """The edits by file of the head; both sides have the sources of all files that differ, by file.

    If Python cannot read a file on either side, the lines that are nowhere in the older one are edited.
    """
    old, new = _Side(base), _Side(head)
    unread = old.unread | new.unread
    pairs = _pairs(
        *([one for one in side.scopes.values() if one.key.file not in unread] for side in (old, new))
    )
    # A function or class with another name is called by it.
    names = ((before.own_name, new.scopes[key].own_name) for key, before in pairs.items())
    renamed = frozenset((before, after) for before, after in names if before != after)
    taken_out = _taken_out(pairs, new)
    compared = {
        key: _Comparison(pairs.get(key) or taken_out.get(key), scope) for key, scope in new.scopes.items()
    }
    renamed |= _renamed_members(renamed, [pair for one in compared.values() for pair in one.given], old, new)
    for key, scope in new.scopes.items():
        around = compared[scope.around[-1]].renamed if scope.around else renamed
        compared[key].rename(around, old, new)
    cut = {key for key, one in compared.items() if key in pairs and one.is_cut} | _lacking(pairs, old)
    by_file: dict[str, list[Key]] = {file: [] for file in head}
    for key in compared:
        by_file[key.file].append(key)
    return {
        file: _of_text(base.get(file, b""), head[file])
        if file in unread
        else CodeEdits(
            lines=frozenset(line for key in keys for line in compared[key].lines()),
            cut=frozenset(key.name for key in keys if key in cut),
            decorated=frozenset(key.name for key in keys if key in pairs and compared[key].is_decorated_anew),
            new=frozenset(key.name for key in keys if key not in pairs),
        )
        for file, keys in by_file.items()
    }


class _Comparison:
    """A scope beside its older version, if it has one."""

    def __init__(self, base: Scope | None, head: Scope) -> None:
        self._base, self._head = base or replace(head, parts=[], decorator_parts=[], text=""), head
        is_same = self._base.text == head.text
        self._regions = [] if is_same else _regions(self._base.statements, head.statements)
        self._alike = [pair for region in self._regions for pair in _alike(*region)]
        # A new name is bound in place of the old one, which is gone. Else a statement takes another variable.
        self._given = {pair for both in self._alike for pair in _renamed(*both, anywhere=False)}

    @property
    def given(self) -> Iterator[_Renamed]:
        """Old and new names of what others reach by attributes and keywords, as such."""
        is_function = issubclass(self._head.kind, FUNCTION)
        for before, after in self._given:
            if before.startswith("."):
                yield before, after
            elif not is_function:
                yield f".{before}", f".{after}"
        for old, new in self._alike:
            if is_function and new.is_signature:
                known, left = ({name for name, _ in one.names} for one in (old, new))
                yield from (
                    (f"={before}", f"={after}")
                    for before, after in _renamed(old, new)
                    if before not in left and after not in known
                )

    def rename(self, around: frozenset[_Renamed], *sides: _Side) -> None:
        """Take into account which names are new: `around` has those around it, the older ones first."""
        given = {pair for pair in self._given if not pair[0].startswith(".")}
        old, new = (
            side.names_in(one.key) if given else _NOTHING
            for side, one in zip(sides, (self._base, self._head), strict=True)
        )
        anew = {pair for pair in given if pair[0] not in new and pair[1] not in old}
        self.renamed = around | anew if anew else around
        self._same = {id(one) for both in self._alike if _renamed(*both) <= self.renamed for one in both}

    @property
    def is_decorated_anew(self) -> bool:
        if self._base.text == self._head.text:
            return False
        old, new = ([one.meaning for one in scope.decorators] for scope in (self._base, self._head))
        return old != new

    @property
    def is_cut(self) -> bool:
        """Whether statements are gone from a place where none is new."""
        differs = [[any(map(self._differs, part)) for part in region] for region in self._regions]
        return any(old and not new for old, new in differs)

    def lines(self) -> Iterator[int]:
        """The edited lines: of a statement of several lines those that are not in what it replaced."""
        known = {one.meaning for one in self._base.decorators}
        yield from (line for one in self._head.decorators if one.meaning not in known for line in one.lines)
        for old, new in self._regions:
            gone = Counter(
                _text(self._base, one, line) for one in filter(self._differs, old) for line in one.lines
            )
            for statement in filter(self._differs, new):
                yield from self._lines_of(statement, gone)

    def _lines_of(self, statement: Statement, gone: Counter[str]) -> list[int]:
        edited = []
        for line in statement.lines:
            text = _text(self._head, statement, line)
            if gone[text]:
                gone[text] -= 1
            elif text and not text.startswith("#"):
                edited.append(line)
        return edited or [statement.lines.start]  # if it only lost lines

    def _differs(self, statement: Statement) -> bool:
        return id(statement) not in self._same


def _text(scope: Scope, statement: Statement, line: int) -> str:
    """A line of a statement; of a signature without annotations and spaces."""
    text = scope.file_text[line - 1]
    return "".join(_ANNOTATION.sub("", text).split()) if statement.is_signature else text


def _aligned(
    base: Sequence[Statement], head: Sequence[Statement], *, by: str
) -> Iterator[tuple[bool, Sequence[Statement], Sequence[Statement]]]:
    """The parts of two lists, in order: whether they are alike by an attribute, and both parts."""
    old, new = ([getattr(one, by) for one in side] for side in (base, head))
    for tag, low, high, low_after, high_after in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        yield tag == "equal", base[low:high], head[low_after:high_after]


def _regions(
    base: Sequence[Statement], head: Sequence[Statement]
) -> list[tuple[Sequence[Statement], Sequence[Statement]]]:
    """What differs between two lists of statements, with what it replaced."""
    return [(old, new) for is_same, old, new in _aligned(base, head, by="meaning") if not is_same]


def _alike(
    base: Sequence[Statement], head: Sequence[Statement], *, by: str = "outline"
) -> Iterator[tuple[Statement, Statement]]:
    """Pairs of statements that differ in names alone: in those of variables, if there is such a pair."""
    for is_alike, old, new in _aligned(base, head, by=by):
        if is_alike:
            yield from zip(old, new, strict=True)
        elif by == "outline":
            yield from _alike(old, new, by="shape")


def _renamed(old: Statement, new: Statement, *, anywhere: bool = True) -> frozenset[_Renamed]:
    """The names that differ, anywhere or only where the new statement binds them."""
    pairs = zip(old.names, new.names, strict=True)
    changed = ((one, other, is_bound) for (one, _), (other, is_bound) in pairs if one != other)
    return frozenset((one, other) for one, other, is_bound in changed if is_bound or anywhere)


def _renamed_members(
    functions: Iterable[_Renamed], members: Iterable[_Renamed], old: _Side, new: _Side
) -> set[_Renamed]:
    """Renamed functions as methods whose name is new, and renamed attributes whose older name is gone."""
    found = {(f".{before}", f".{after}") for before, after in functions if after not in old.functions}
    for before, after in members:
        if before.startswith("=") or not (new.has_member(before) or old.has_member(after)):
            found.add((before, after))
    return found


def _pairs(base: Sequence[Scope], head: Sequence[Scope]) -> dict[Key, Scope]:
    """By scope of the head: its older version, which may have had another name or file."""
    found: dict[Key, Scope] = {}
    taken: set[Key] = set()

    def pair(key: Callable[[Scope], Hashable], *, is_exact: bool) -> None:
        """Pair what is left and has one key; of several with the key only exact copies, in their order."""
        groups: dict[Hashable, tuple[list[Scope], list[Scope]]] = defaultdict(lambda: ([], []))
        for side, scopes in enumerate((base, head)):
            for one in scopes:
                if one.key not in (found if side else taken):
                    groups[key(one)][side].append(one)
        for old, new in groups.values():
            if is_exact or len(old) == len(new) == 1:
                found.update((after.key, before) for before, after in zip(old, new, strict=False))
                taken.update(before.key for before, _ in zip(old, new, strict=False))

    pair(lambda one: (one.key.file, one.key.name, one.kind, one.text), is_exact=True)
    pair(lambda one: (one.key.file, one.key.name), is_exact=False)
    pair(lambda one: (one.key.name, one.kind, one.text), is_exact=True)
    pair(lambda one: (one.key.name or one.key, one.kind), is_exact=False)
    left = [[one for one in side if one.key not in known] for side, known in ((base, taken), (head, found))]
    for new, old in _likest(*left):
        if new.key not in found and old.key not in taken:
            found[new.key] = old
            taken.add(old.key)
    return found


def _likest(base: Sequence[Scope], head: Sequence[Scope]) -> list[tuple[Scope, Scope]]:
    """Pairs of scopes that may be one, the likest first."""
    if len(base) * len(head) > _MOST_PAIRS:
        return []
    ranked = []
    for new in head:
        for old in base:
            likeness = old.likeness(new)
            is_namesake = (old.own_name, old.key.file) == (new.own_name, new.key.file)
            is_twin = is_namesake and old.key.name == new.key.name
            if old.kind is new.kind and (is_namesake or likeness >= _SAME):
                ranked.append((not is_twin, -likeness, not is_namesake, new.key, old.key, new, old))
    ranked.sort(key=lambda one: one[:5])
    return [(new, old) for *_, new, old in ranked]


def _taken_out(pairs: Mapping[Key, Scope], new: _Side) -> dict[Key, Scope]:
    """By new function: the function that has lost most of its statements, with these alone."""
    found = {}
    fresh = [one for key, one in new.scopes.items() if key not in pairs and issubclass(one.kind, FUNCTION)]
    edited = defaultdict[str, list[tuple[Scope, Counter[Hashable]]]](list)
    files = {one.key.file for one in fresh}
    for key, before in pairs.items():
        if key.file in files and before.text != new.scopes[key].text:
            edited[key.file].append((before, before.counts - new.scopes[key].counts))
    for scope in fresh:
        body = Counter(one.meaning for one in scope.statements[1:])
        for before, gone in edited[scope.key.file]:
            if (gone & body).total() > _SAME * body.total():
                parts = zip(before.parts, before.statements, strict=True)
                kept = [part for part, one in parts if gone[one.meaning]]
                found[scope.key] = replace(before, parts=kept, decorator_parts=[], text="")
    return found


def _lacking(pairs: Mapping[Key, Scope], old: _Side) -> set[Key]:
    """The scopes of the head that lost a function or class."""
    now = {before.key: key for key, before in pairs.items()}
    lost = (one.around[-1] for key, one in old.scopes.items() if key not in now and one.around)
    return {now[around] for around in lost if around in now}


def _of_text(base: bytes, head: bytes) -> CodeEdits:
    known = {"", *(line.strip() for line in lines_of(base))}
    lines = enumerate(lines_of(head), start=1)
    return CodeEdits(frozenset(number for number, line in lines if line.strip() not in known))
