"""Random Kineto results that were never recorded, with all difficult features."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

CPU, CUDA, MKLDNN, IDEEP, HIP, XPU, HPU, MTIA, PRIVATE = 0, 1, 2, 5, 6, 12, 15, 19, 20
DEVICES: dict[str | None, int] = {
    None: CUDA,
    "cuda": CUDA,
    "xpu": XPU,
    "mtia": MTIA,
    "hpu": HPU,
    "privateuseone": PRIVATE,
}

# a Kineto event's answers if nothing is known
UNKNOWN: dict[str, Any] = {
    "typed_metadata": {},  # used since torch 2.14
    "activity_type": "cpu_op",
    "concrete_inputs": [],
    "correlation_id": 0,
    "cuda_elapsed_us": -1,
    "device_index": 0,
    "device_resource_id": 0,
    "device_type": CPU,
    "dtypes": [],
    "end_ns": 0,
    "end_thread_id": 1,
    "external_id": 0,
    "extra_meta": {},
    "flops": 0,
    "flow_id": 0,
    "flow_start": False,
    "flow_type": 0,
    "fwd_thread_id": 0,
    "is_async": False,
    "is_hidden_event": False,
    "is_python_function": False,
    "is_user_annotation": False,
    "kwinputs": {},
    "linked_correlation_id": 0,
    "metadata_json": "",
    "name": "",
    "nbytes": 0,
    "overload_name": "",
    "privateuse1_elapsed_us": -1,
    "python_id": -1,
    "python_module_id": -1,
    "python_parent_id": -1,
    "scope": 0,
    "sequence_nr": -1,
    "shapes": [],
    "stack": [],
    "start_ns": 0,
    "start_thread_id": 1,
    "structured_input_shapes": [],
    "structured_input_strides": [],
}

NAMES = (
    "aten::add",
    "aten::mul",
    "aten::mul",
    "aten::is_leaf",
    "aten::_version",
    "autograd::engine::evaluate_function: " + "VeryLongBackward" * 3,
    "profiler::_record_function_exit",
    "ProfilerStep#4",
    "ProfilerStep#5",
    "_ZN2at6native4gemmEv",
    "Pi",
    "t",
    "日本",
    "",
)
KERNELS = ("gemm_kernel", "Memcpy HtoD (Pageable -> Device)", "_ZN2at6native6vectorEv")
STACKS: tuple[list[str], ...] = (
    [],
    [],
    ["model.py(41): forward"],
    ["torch/autograd/__init__.py(5): backward", "train.py(7): step"],
    ["a/" * 60 + "deep.py(3): f", "model.py(7): step", "train.py(1): <module>"],
)
SHAPES: tuple[tuple[list[Any], list[Any]], ...] = (
    ([], []),
    ([], []),
    ([[2, 3]], [[2, 3]]),
    ([[2, 3], []], [[2, 3], []]),
    ([[], [7, 7, 7]], [[[4], [5]], [7, 7, 7]]),
    ([[128] * 30], [[128] * 30]),
)


class KinetoEvent:
    """One event of a result of Kineto's."""

    def __init__(self, **known: Any) -> None:
        self.answers = UNKNOWN | known

    def __getattr__(self, name: str) -> Callable[[], Any]:
        if name == "answers" or name not in self.answers:
            raise AttributeError(name)
        return lambda: self.answers[name]


class KinetoResult:
    """A fake of Kineto's result."""

    def __init__(self, events: Sequence[KinetoEvent], *, trace_start_ns: int = 0) -> None:
        self._events = events
        self._trace_start_ns = trace_start_ns

    def events(self) -> list[Any]:
        return list(self._events)

    def trace_start_ns(self) -> int:
        return self._trace_start_ns


class ForestMaker:
    """Makes one random forest.

    Args:
        seed: The seed of all random choices.
        device_type: Makes a device's type from its number, such as torch's enumeration.
        is_sound: Only generate what a correct profiler records of a synchronous program: every cause has one
            number, events are nested and ordered by start, and each name occurs once.
    """

    def __init__(
        self, seed: int, *, device_type: Callable[[int], object] = int, is_sound: bool = False
    ) -> None:
        self._is_sound = is_sound
        self._random = random.Random(seed)  # noqa: S311  # no secret
        self._device_type = device_type
        self._events: list[KinetoEvent] = []
        # Whole eighths of a microsecond are exact in binary; all others show the order of float additions.
        self._unit = 125 if is_sound else self._random.choice([125, 1, 1, 997])
        self._start = self._random.choice([0, 1_790_857_026_000_000_000])
        self.use_device = self._random.choice(
            [None, "cuda", "cuda", "cuda", "xpu", "privateuseone", "mtia", "hpu"]
        )
        self._is_odd = {
            what: self._random.random() < share and (not is_sound or what in ("device", "memory"))
            for what, share in (
                ("overlap", 0.5),
                ("async", 0.4),
                ("legacy", 0.35),
                ("memory", 0.6),
                ("device", 0.7),
                ("backward", 0.5),
            )
        }

    def result(self) -> KinetoResult:
        """The forest."""
        for thread in range(1, self._random.choice([2, 3, 4])):
            self._thread(thread)
        if self._is_odd["memory"]:
            self._memory()
        if self._random.random() < 0.3 and not self._is_sound:
            self._random.shuffle(self._events)
        else:
            self._events.sort(key=lambda event: (event.start_ns(), -event.end_ns()))
        return KinetoResult(self._events, trace_start_ns=self._start)

    def _thread(self, thread: int) -> None:
        now = self._random.randint(0, 30)
        for _ in range(self._random.choice([0, 1, 2, 3])):
            now = self._tree(thread, now, self._random.randint(0, 400), depth=0)
            now += self._random.choice([0, 0, 5])

    def _tree(self, thread: int, start: int, length: int, *, depth: int) -> int:
        """An event of some length and its children; returns its end."""
        end = start + length
        if self._is_odd["overlap"] and self._random.random() < 0.2:
            end += self._random.randint(1, 40)
        self._event(thread, start, end)
        now = start + self._random.choice([0, 0, 1, 7])
        while depth < 5 and now < start + length and self._random.random() < 0.6:
            inner = self._random.choice([length, length // 2, length // 3, 0])
            now = self._tree(thread, now, min(inner, start + length - now), depth=depth + 1)
            now += self._random.choice([0, 0, 3])
        return end if end == start + length else start + length

    def _event(self, thread: int, start: int, end: int) -> None:
        choose = self._random.choice
        shapes, structured = choose(SHAPES)
        scope = choose([0, 0, 0, 7])
        number = len(self._events) + 1
        known: dict[str, Any] = {
            "name": f"aten::op{number}" if self._is_sound else choose(NAMES),
            "correlation_id": number if self._is_sound or self._random.random() < 0.95 else 3,
            "start_thread_id": thread,
            "end_thread_id": thread,
            "shapes": shapes,
            "structured_input_shapes": structured,
            "structured_input_strides": structured,
            "dtypes": ["float"] * len(shapes),
            "stack": choose(STACKS),
            "flops": choose([0, 0, 12, 4_000, 7_000_000_000]),
            "overload_name": choose(["", "", "Tensor", "out"]),
            "scope": scope,
            "is_user_annotation": scope == 7,
            "is_hidden_event": self._random.random() < 0.03,
            "extra_meta": choose([{}, {"grid": "[1, 2, 3]", "Rank": "3"}]),
            "sequence_nr": choose([-1, 0, 1, 2]),
            "fwd_thread_id": choose([0, 1, 2]),
        }
        if self._is_odd["backward"] and self._random.random() < 0.2:
            known["scope"] = 1
        if self._is_odd["async"] and self._random.random() < 0.15:
            known |= choose([{"is_async": True}, {"end_thread_id": 0}, {"end_thread_id": thread + 1}])
        if self._is_odd["legacy"] and self._random.random() < 0.3:
            known |= {"cuda_elapsed_us": choose([0, 3, 17]), "privateuse1_elapsed_us": choose([0, 5, 11])}
        op = self._add(start, end, **known)
        if self._is_odd["device"]:
            self._device_work(op, thread, start, end)

    def _device_work(self, op: KinetoEvent, thread: int, start: int, end: int) -> None:
        choose = self._random.choice
        device = DEVICES[self.use_device]
        for _ in range(choose([0, 0, 1, 2])):
            begin = self._random.randint(start, end + 50)
            self._add(
                begin,
                begin + self._random.choice([0, 1, 30, 333]),
                name=choose(KERNELS),
                correlation_id=op.correlation_id() + 1_000,
                linked_correlation_id=choose([op.correlation_id()] * 3 + [0, 5] * (not self._is_sound)),
                device_type=self._device_type(device),
                device_index=choose([0, 1]),
                device_resource_id=7,
                activity_type=choose(["kernel", "gpu_memcpy"]),
            )
        if self._random.random() < 0.2:
            self._add(
                start,
                self._random.randint(start, end) if not self._is_sound else start,
                name="cudaLaunchKernel",
                correlation_id=op.correlation_id() + 1_000,
                linked_correlation_id=op.correlation_id(),
                start_thread_id=thread + 4_000,
                end_thread_id=thread + 4_000,
                activity_type="cuda_runtime",
            )
        if self._random.random() < 0.1:
            self._add(
                start + 5,
                end + 20,
                name=op.name(),
                correlation_id=op.correlation_id(),
                device_type=self._device_type(device),
                device_resource_id=7,
                is_user_annotation=True,
                activity_type="gpu_user_annotation",
            )

    def _memory(self) -> None:
        ends = [time for event in self._events for time in (event.start_ns(), event.end_ns())]
        for _ in range(self._random.randint(1, 6)):
            at = self._random.choice([*ends, self._start])
            at += self._random.choice([0, 0, 1, -1, 700_000]) * self._unit
            self._events.append(
                KinetoEvent(
                    name=self._random.choice(["[memory]", "[memory]", "[memory]", "[OutOfMemory]"]),
                    start_ns=at,
                    end_ns=at,
                    start_thread_id=(thread := self._random.choice([1, 2, 3])),
                    end_thread_id=thread,
                    nbytes=self._random.choice([1, 512, -512, 3 << 20, -(5 << 30)]),
                    device_type=self._device_type(
                        self._random.choice([CPU, CUDA, MKLDNN, IDEEP, HIP, XPU, PRIVATE, MTIA])
                    ),
                )
            )

    def _add(self, start: int, end: int, **known: Any) -> KinetoEvent:
        start_ns, end_ns = (self._start + time * self._unit for time in (start, max(start, end)))
        known.setdefault("device_type", self._device_type(CPU))
        event = KinetoEvent(start_ns=start_ns, end_ns=end_ns, **known)
        self._events.append(event)
        return event


def hard_cases(result: KinetoResult) -> Iterator[str]:
    """The difficult features that a forest's events have, each once."""
    events: list[KinetoEvent] = result.events()
    records = [event for event in events if event.name() in ("[memory]", "[OutOfMemory]")]
    host = [event for event in events if int(event.device_type()) == CPU and event not in records]
    if any(_overlap_partly(a, b) for a in host for b in host):
        yield "partial overlap"
    if any(event.is_async() or event.start_thread_id() != event.end_thread_id() for event in host):
        yield "async"
    starts = [(event.start_ns(), event.start_thread_id()) for event in host]
    if len(set(starts)) < len(starts):
        yield "equal starts"
    if any(event.cuda_elapsed_us() > 0 for event in host):
        yield "legacy"
    if any(int(event.device_type()) != CPU for event in events if event not in records):
        yield "device"
    if any(record.name() == "[OutOfMemory]" for record in records):
        yield "out of memory"
    if any(
        op.start_ns() <= record.start_ns() <= op.end_ns() and op.start_thread_id() != record.start_thread_id()
        for record in records
        for op in host
    ):
        yield "memory across threads"


def _overlap_partly(a: KinetoEvent, b: KinetoEvent) -> bool:
    return bool(
        a.start_thread_id() == b.start_thread_id() and a.start_ns() < b.start_ns() < a.end_ns() < b.end_ns()
    )
