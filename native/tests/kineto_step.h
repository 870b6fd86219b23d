/* A training step as Kineto writes it, and a reader for tests. */
#ifndef KINETO_STEP_H
#define KINETO_STEP_H

#include "fixture.h"

/* Nested ops, a call, its kernel, a device range, memory, a backward op on another thread, and events
 * that the columns cannot hold. */
static const char step[] =
    "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0}], \"baseTimeNanoseconds\": 1000000000,\n"
    "\"traceEvents\": [\n"
    "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 7, \"tid\": 70, \"args\": {\"name\": \"thread "
    "70 (python)\"}},\n"
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 7, \"tid\": 70, \"ts\": "
    "12.001, \"dur\": 4,"
    " \"args\": {\"External id\": 3, \"Input Dims\": [[2,3],[],[[4],[5,6]]], \"bandwidth\": NaN}},\n"
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::linear\", \"pid\": 7, \"tid\": 70, \"ts\": "
    "11, \"dur\": 8,"
    " \"args\": {\"External id\": 2, \"Sequence number\": 5, \"Fwd thread id\": 0}},\n"
    "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#4\", \"pid\": 7, \"tid\": "
    "70, \"ts\": 10,"
    " \"dur\": 20, \"args\": {\"External id\": 1}},\n"
    "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 7, \"tid\": "
    "70, \"ts\": 13,"
    " \"dur\": 1, \"args\": {\"External id\": 3, \"cbid\": 211, \"correlation\": 9}},\n"
    "{\"ph\": \"s\", \"cat\": \"ac2g\", \"name\": \"ac2g\", \"id\": 9, \"pid\": 7, \"tid\": 70, "
    "\"ts\": 13},\n"
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": 40, "
    "\"dur\": 2.5,"
    " \"args\": {\"External id\": 3, \"correlation\": 9, \"grid\": [1, 2, 3]}},\n"
    "{\"ph\": \"X\", \"cat\": \"gpu_user_annotation\", \"name\": \"ProfilerStep#4\", \"pid\": 0, "
    "\"tid\": 7,"
    " \"ts\": 39, \"dur\": 5, \"args\": {\"External id\": 1}},\n"
    "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\", \"pid\": 7, "
    "\"tid\": 70,"
    " \"ts\": 12.5, \"args\": {\"Addr\": 4096, \"Bytes\": -64, \"Device Type\": 1, \"Device Id\": "
    "0}},\n"
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"MmBackward0\", \"pid\": 7, \"tid\": 71, \"ts\": "
    "20, \"dur\": 3,"
    " \"args\": {\"External id\": 6, \"Sequence number\": 5, \"Fwd thread id\": 1}},\n"
    "{\"ph\": \"b\", \"cat\": \"user_annotation\", \"id\": 12, \"name\": \"wait\", \"pid\": 7, "
    "\"tid\": 70, \"ts\": 14},\n"
    "{\"ph\": \"e\", \"cat\": \"user_annotation\", \"id\": 12, \"name\": \"wait\", \"pid\": 7, "
    "\"tid\": 70, \"ts\": 34},\n"
    "{\"ph\": \"i\", \"s\": \"g\", \"name\": \"Record Window End\", \"pid\": \"\", \"tid\": \"\", "
    "\"ts\": 50}\n"
    "], \"traceName\": \"step.json\"}\n";

enum { LINEAR = 1, MM, LAUNCH = 4, ASYNC, KERNEL = 7, ROWS = 9 };

/* Feeds pieces of `piece` bytes, each in its own buffer so that a sanitizer detects reads beyond it. */
static inline int read_pieces(const char *text, size_t length, size_t piece, op_result **out) {
    op_trace_reader *reader;
    *out = NULL;
    int rc = op_trace_open(&reader, 0, 0);
    for (size_t at = 0; rc == OP_OK && at < length; at += piece) {
        size_t count = length - at < piece ? length - at : piece;
        char *copy = malloc(count);
        CHECK(copy != NULL);
        memcpy(copy, text + at, count);
        rc = op_trace_feed(reader, copy, count);
        free(copy);
    }
    if (rc == OP_OK)
        rc = op_trace_finish(reader, out);
    op_trace_close(reader);
    return rc;
}

static inline op_result *read_text(const char *text) {
    op_result *r;
    CHECK_OK(read_pieces(text, strlen(text), 1u << 20, &r));
    return r;
}

#endif
