"""Detectors of the collector for CUPTI's records, in C."""

from __future__ import annotations

from functools import partial
from typing import Final

from mutants.detector import Detector, Layer

_noticed: Final = partial(Detector, layer=Layer.RECORDING)

DEVICES: Final = (
    _noticed(
        name="device records past the limit",
        tells="How many records there were in buffers past the limit of memory.",
        file="native/src/cuda/cupti_buffers.c",
        text="            self.dropped += count_records(b);\n",
        without="",
        test="native/tests/test_cupti_losses.c::past_the_limit_records_are_counted",
    ),
    _noticed(
        name="device records without memory",
        tells="A kernel, copy or fill for which there was no memory here.",
        file="native/src/cuda/cupti_decode.c",
        text="        memset(w, 0, sizeof *w);\n    else\n        r->dropped++;",
        without="        memset(w, 0, sizeof *w);",
        test="native/tests/test_cupti_losses.c::any_request_may_be_refused",
    ),
    _noticed(
        name="records that CUPTI dropped",
        tells="How many records CUPTI itself had no room for.",
        file="native/src/cuda/cupti_drain.c",
        text="    self.records.dropped += dropped + op_cupti_buffers_dropped();",
        without="    (void)dropped;\n    self.records.dropped += op_cupti_buffers_dropped();",
        test="tests/integration/test_cuda_losses.py::test_dropped_records_are_counted",
    ),
    _noticed(
        name="dropped records in the recording",
        tells="That a recording lacks records of devices.",
        file="native/src/cuda/cuda_rows.c",
        text="    stats->device_dropped = w->records->dropped + w->memory.adrift;",
        without="    stats->device_dropped = w->memory.adrift;",
        test="native/tests/test_cupti_losses.c::past_the_limit_records_are_counted",
    ),
    _noticed(
        name="device memory of no call",
        tells="Memory of a device that was taken by a call which is not on record.",
        file="native/src/cuda/cuda_memory.c",
        text="        out->adrift += call == 0;",
        without="        (void)call;",
        test="native/tests/test_cuda_memory.c::memory_without_its_call_is_counted_as_lost",
    ),
    _noticed(
        name="another profiler",
        tells="That another profiler took CUPTI over, so that what is on record is a part.",
        file="native/src/cuda/cupti.c",
        text="    if (!ours || op_cupti_buffers_missing())",
        without="    if (0)",
        test="tests/integration/test_cuda_losses.py::test_a_client_that_takes_over_is_noticed",
    ),
    _noticed(
        name="a flush that fails",
        tells="That CUPTI did not hand over all that it recorded.",
        file="native/src/cuda/cupti.c",
        text="    else if (flushed != OP_CUPTI_SUCCESS || forced != OP_CUPTI_SUCCESS)",
        without="    else if (0)",
        test="tests/integration/test_cuda_losses.py::test_failed_flush_is_reported",
    ),
    _noticed(
        name="a first flush that fails",
        tells="The same of the flush before devices are waited for.",
        file="native/src/cuda/cupti.c",
        text="    flushed = early != OP_CUPTI_SUCCESS ? early : flushed;\n",
        without="    (void)early;\n",
        test="tests/integration/test_cuda_losses.py::test_failed_flush_is_reported",
    ),
    _noticed(
        name="a device that cannot be waited for",
        tells="That a driver refused to wait for a device.",
        file="native/src/cuda/cuda_sync.c",
        text='        return refuse(cuda, "cuDevicePrimaryCtxRetain", code);',
        without="        return 0;",
        test="native/tests/test_cuda_sync.c::each_failure_is_told",
    ),
    _noticed(
        name="launches without a kernel",
        tells="How many calls launched a kernel which is not on record.",
        file="native/src/result/device_use.c",
        text="    s->unmatched_launches += role == OP_CALL_LAUNCH && !has_work;\n",
        without="",
        test="native/tests/test_device_use.c::what_is_missing_is_counted",
    ),
    _noticed(
        name="work without a launch",
        tells="How many kernels, copies and fills no call on record launched.",
        file="native/src/result/device_use.c",
        text="        s->unmatched_kernels++;",
        without="        (void)0;",
        test="native/tests/test_device_use.c::what_is_missing_is_counted",
    ),
    _noticed(
        name="work without a time",
        tells="How many kernels, copies and fills nobody knows the time of.",
        file="native/src/result/device_use.c",
        text="    s->untimed += c->duration_ns[row] < 0;\n",
        without="",
        test="native/tests/test_device_use.c::what_is_missing_is_counted",
    ),
    _noticed(
        name="copies without a size",
        tells="That a copy does not say how much it copied.",
        file="native/src/result/device_use.c",
        text="    s->unsized += bytes < 0;\n",
        without="",
        test="native/tests/test_device_use.c::copies_may_say_little",
    ),
    _noticed(
        name="copies without a direction",
        tells="That a copy does not say from where to where it went.",
        file="native/src/result/device_use.c",
        text="    s->undirected += direction == OP_COPY_UNKNOWN;\n",
        without="",
        test="native/tests/test_device_use.c::copies_may_say_little",
    ),
    _noticed(
        name="calls that failed",
        tells="That a call of CUDA failed, so that it did nothing.",
        file="native/src/result/device_use.c",
        text="    return op_result_device_call(s->r, row, &call) && call.result != 0;",
        without="    return op_result_device_call(s->r, row, &call) && false;",
        test="native/tests/test_device_use.c::a_call_that_failed_did_nothing",
    ),
)
