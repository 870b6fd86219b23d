"""A test's rises by cause: the line of code, then the ops that it calls more often."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_opprof.compare.common_cause import beginnings_of, without_twins
from pytest_opprof.compare.comparison import CallLine, Change, TestComparison
from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import COUNT
from pytest_opprof.report.advice import advice
from pytest_opprof.report.device_changes import telling_changes
from pytest_opprof.report.kernel_names import short_names
from pytest_opprof.report.rows import numbers_of
from pytest_opprof.report.text import columns, escaped, wrapped
from pytest_opprof.wording import counted

# Autograd's engine runs each node in a range named after it, which adds nothing.
_ENGINE = "autograd::engine::evaluate_function: "
# Nobody wrote the ops of autograd, nor those of torch's optimizers.
_OF_TORCH = (_ENGINE, "Optimizer.step#")
_MOST_BLOCKS = 5
_MOST_ROWS = 8
_MOST_TEXT_LINES = 2
_NARROWEST_NAME = 20
_EDITED = "changed in this branch"
_EDITED_COLUMN = 4
_UNCERTAIN = "this line calls it most often; which line does more is unknown"
_ONE_OF_SEVERAL = "other lines that were changed may be the cause as well"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRow:
    """An op of a block, or a total."""

    change: Change
    depth: int  # how many rows of the block enclose it
    is_backward: bool = False  # whether autograd's engine runs it, and no hook of the user's does
    was: str = ""  # the op that it replaced; empty for none or unknown

    @property
    def name(self) -> str:
        """The op, with its metric that rose, unless that is its calls; ``all Python instructions``."""
        if self.change.op is None:
            return f"all {self.change.about.label}"
        return name_of(self.change) + (f" {self.change.metric}" if self.change.metric != COUNT.name else "")

    @property
    def words(self) -> str:
        """The words after its numbers; may be empty."""
        if self.is_backward:
            return "its backward"
        if self.was:
            return f"was {self.was}"
        is_new = self.change.base is None or self.change.base.high == 0
        return "new" if is_new and self.change.metric == COUNT.name else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The changes of one cause."""

    line: CallLine | None  # the line that calls the ops; None if unknown
    place: str  # the origin in words if no line is known, and why none is
    rows: tuple[BlockRow, ...]  # the ops, callers first


def is_in_a_block(change: Change) -> bool:
    """Whether a change of an op failed its test, or begins such a change."""
    return change.op is not None and (change.verdict is Verdict.REGRESSED or change.begins)


def blocks_of(test: TestComparison) -> list[Block]:
    """The regressions of a test's ops, and of totals that have a line, by cause, the clearest first."""
    telling = telling_changes(test)
    risen = [change for change in telling if is_in_a_block(change)]
    if not risen:  # an op may stand for the total that failed: then what its line calls more often does
        lines = [change.line for change in beginnings_of(test) if change.op is not None]
        risen = [change for change in telling if change.op and change.line in lines and change.rise > 0]
    risen = without_twins(risen)
    known = {change.op for change in risen}
    risen = [
        change
        for change in risen
        if not (change.op and change.op.startswith(_ENGINE) and change.op.removeprefix(_ENGINE) in known)
    ]
    by_op = {change.op: change for change in reversed(risen)}
    groups: defaultdict[Hashable, list[Change]] = defaultdict(list)
    for change in risen:
        groups[_cause_of(change, by_op)].append(change)
    for change in telling:
        if change.op is None and change.verdict is Verdict.REGRESSED and change.line and change.line.number:
            groups[change.line.key].append(change)
    return [_block(changes, test) for changes in groups.values()]


def blocks_in_lines(test: TestComparison, *, width: int, show: str | None) -> list[list[str]]:
    """The blocks of a test as text: names, lines and numbers are never cut."""
    blocks = blocks_of(test)
    kept = blocks if show == "" else blocks[:_MOST_BLOCKS]
    told = [
        [
            *_title(one, width=width),
            *_rows(one.rows, width=width, show=show),
            *wrapped(advice_on(one, test), width=width, first="  ", rest="  "),
        ]
        for one in kept
    ]
    return (
        [*told, [left_out(len(blocks) - len(kept), "more cause", show)]] if len(blocks) > len(kept) else told
    )


def left_out(number: int, noun: str, show: str | None) -> str:
    """``... and 3 more causes: opprof show --test test_step``."""
    return escaped(f"... and {counted(number, noun)}{f': {show}' if show else ''}")


def number_rows(rows: Iterable[tuple[str, Change, str]], *, width: int) -> list[str]:
    """Indented names, changes and words as ``NAME base -> head +n words``, in columns if they fit."""
    cells = [(escaped(name), *numbers_of(change).values(), words) for name, change, words in rows]
    before, after, rise = (max((len(cell[at]) for cell in cells), default=0) for at in (1, 2, 3))
    numbers = before + after + rise + len(" -> ") + 2
    names = max((columns(cell[0]) for cell in cells), default=0)
    name_width = min(names, max(width - numbers - 2, _NARROWEST_NAME))
    lines: list[str] = []
    for name, base, head, change, words in cells:
        values = f"{base:>{before}} -> {head:>{after}}  {change:>{rise}}"
        if columns(name) > name_width:
            lines.append(name)
            name = ""  # noqa: PLW2901  # its numbers stand in the next line
        line = f"{name}{' ' * (name_width - columns(name))}  {values}"
        whole = f"{line}  {escaped(words)}"
        lines.append((whole if words and columns(whole) <= width else line).rstrip())
    return lines


def _cause_of(change: Change, by_op: dict[str | None, Change]) -> Hashable:
    """The key of a change's cause: the line, or the caller of the outermost changed op."""
    seen = {change.op}
    while change.line is None and change.caller in by_op and change.caller not in seen:
        seen.add(change.caller)
        change = by_op[change.caller]
    if change.line is not None:
        return change.line.key
    return (change.caller, change.cause)


def _block(changes: Sequence[Change], test: TestComparison) -> Block:
    """The changes of one cause, each below its caller."""
    here = {change.op for change in changes}
    inside: defaultdict[str, list[Change]] = defaultdict(list)
    roots = []
    for change in changes:
        if change.caller in here and change.caller != change.op:
            inside[change.caller].append(change)
        else:
            roots.append(change)
    rows: list[BlockRow] = []
    older = {one.after: one.before for change in test.changes if (one := change.rewrite)}

    def add(siblings: Iterable[Change], depth: int) -> None:
        of_op: defaultdict[str, list[Change]] = defaultdict(list)
        for change in siblings:
            of_op[change.op or ""].append(change)
        for op, same in of_op.items():
            rows.extend(
                BlockRow(
                    change=change,
                    depth=depth,
                    is_backward=change.caller.startswith(_ENGINE) and not _is_written(change, test),
                    was=" + ".join(older.get((op,), ())) if change.metric == COUNT.name else "",
                )
                for change in same
            )
            add(inside.pop(op, ()), depth + 1)

    add(roots, 0)
    while inside:  # ops that call each other
        add(inside.pop(next(iter(inside))), 0)
    first = rows[0].change
    line = first.line or next((change.line for change in changes if change.line), None)
    place = ""
    if line is None:
        origin = first.cause.removeprefix("new").lstrip(", ")
        place = "; ".join(filter(None, (origin, f"no line is known: {_why_no_line(first, test)}")))
    return Block(line=line, place=place, rows=tuple(rows))


def _why_no_line(change: Change, test: TestComparison) -> str:
    rows = test.head.ops if test.head is not None else ()
    if not any(row.places for row in rows):
        return "call sites were not recorded"
    if not any(row.places for row in rows if row.name == change.op):
        return "no frame of your Python code was around the op, as on a thread of C++"
    return "each line calls it as often as before"


def title_of(block: Block) -> str:
    """``src/model.py:41 in Block.forward``; in words if no line is known."""
    if block.line is None:
        return block.place[:1].upper() + block.place[1:]
    return block.line.location if block.line.is_certain else f"perhaps {block.line.location}"


def _title(block: Block, *, width: int) -> list[str]:
    line = block.line
    if line is None:
        return wrapped(title_of(block), width=width, rest="  ")
    title = [escaped(title_of(block))]
    if line.is_edited:
        space = width - columns(title[0]) - len(_EDITED)
        if space > 1:
            title[0] += " " * min(space, _EDITED_COLUMN) + _EDITED
        else:
            title.append(f"  {_EDITED}")
    if not line.is_certain:
        why = _ONE_OF_SEVERAL if line.is_edited else _UNCERTAIN
        title += wrapped(why, width=width, first="  ", rest="  ")
    text = wrapped(line.text, width=width, first="    ")
    return title + (text if len(text) <= _MOST_TEXT_LINES else [])


def first_rows(rows: Sequence[BlockRow], *, most: int) -> list[BlockRow]:
    """The rows of a short block, in their order: those that a line calls come before those inside of them."""
    ranked = sorted(range(len(rows)), key=lambda at: (rows[at].depth, at))
    return [rows[at] for at in sorted(ranked[:most])]


def _rows(rows: Sequence[BlockRow], *, width: int, show: str | None) -> Iterator[str]:
    kept = rows if show == "" else first_rows(rows, most=_MOST_ROWS)
    names = short_names(row.name for row in kept)
    yield from number_rows(
        [
            (f"{'  ' * (row.depth + 1)}{name}", row.change, row.words)
            for row, name in zip(kept, names, strict=True)
        ],
        width=width,
    )
    for row in kept:
        line = row.change.line
        if row.change.op is None and not (line and line.place in row.change.cause):
            told = f"{row.change.about.label} rose {row.change.cause}"
            yield from wrapped(told, width=width, first="  ", rest="  ")
        if row.change.reason:
            yield from wrapped(
                f"{name_of(row.change)}: {row.change.reason}", width=width, first="  ", rest="  "
            )
    if len(rows) > len(kept):
        yield f"  {left_out(len(rows) - len(kept), 'more row', show)}"


def advice_on(block: Block, test: TestComparison) -> str:
    """What the rise of a block costs, and what to write instead; empty if its anti-pattern is not known."""
    called = [row.change for row in block.rows if row.depth == 0]
    roots = [change.op for change in called if change.op and _is_written(change, test)]
    rule = advice([row.change for row in block.rows], test, roots=roots, line=block.line) if roots else None
    return f"{rule.sentence} ({rule.code})" if rule else ""


def _is_written(change: Change, test: TestComparison) -> bool:
    """Whether an op is the user's own, not one of autograd or of an optimizer of torch.

    Around theirs are ranges of torch, which have the same line: it calls `backward` or `step`. A user's hook
    and a user's own optimizer have other lines.
    """
    if not change.caller.startswith(_OF_TORCH):
        return True
    if change.line is None or test.head is None:
        return False
    of_op, of_range = (
        {place for row in test.head.ops if row.name == name for place in row.places}
        for name in (change.op, change.caller)
    )
    return change.line.place in of_op - of_range
