#include "export/trace_labels.h"

#include "core/fault.h"
#include "export/trace_writer.h"

#include <stdio.h>

/* Distance between the tracks of a stream: more than any driver's stream numbers. */
#define TRACK_STRIDE 1000000

static uint64_t device_of(const op_thread_info *stream) {
    return stream->device_index > 0 ? (uint64_t)stream->device_index : 0;
}

static int64_t track_number(const op_thread_info *stream, uint32_t track) {
    return stream->resource + (int64_t)track * TRACK_STRIDE;
}

static op_place place_at(uint64_t pid, int64_t tid) {
    op_place p;
    p.length = (uint32_t)snprintf(p.text, sizeof p.text,
                                  "\",\"pid\":%llu,\"tid\":%lld,\"ts\":", (unsigned long long)pid,
                                  (long long)tid);
    return p;
}

op_place op_trace_stream(const op_thread_info *stream, uint32_t track) {
    return place_at(device_of(stream), track_number(stream, track));
}

bool op_trace_name_places(op_trace *t) {
    t->places = op_malloc(t->r->thread_count * sizeof *t->places + 1);
    for (uint32_t i = 0; t->places && i < t->r->thread_count; i++) {
        const op_thread_info *thread = &t->r->threads[i];
        t->places[i] =
            thread->device_type == 0 ? place_at(t->pid, thread->os_tid) : op_trace_stream(thread, 0);
    }
    return t->places != NULL;
}

/* ---- labels ------------------------------------------------------------------------------ */

static void begin_label(op_trace *t, const char *what, uint64_t pid, int64_t tid) {
    PUT(&t->out, ",\n{\"ph\":\"M\",\"name\":\"");
    op_json_text(&t->out, what);
    PUT(&t->out, "\",\"ts\":");
    op_trace_time(t, 0);
    PUT(&t->out, ",\"pid\":");
    op_json_unsigned(&t->out, pid);
    PUT(&t->out, ",\"tid\":");
    op_json_signed(&t->out, tid);
    PUT(&t->out, ",\"args\":{\"");
}

static void put_label(op_trace *t, const char *what, const char *key, uint64_t pid, int64_t tid,
                      const char *value) {
    begin_label(t, what, pid, tid);
    op_json_text(&t->out, key);
    PUT(&t->out, "\":\"");
    op_json_escaped(&t->out, value, strlen(value));
    PUT(&t->out, "\"}}");
}

static void put_sort_index(op_trace *t, const char *what, uint64_t pid, int64_t tid, int64_t index) {
    begin_label(t, what, pid, tid);
    PUT(&t->out, "sort_index\":");
    op_json_signed(&t->out, index);
    PUT(&t->out, "}}");
}

static void put_process(op_trace *t, uint64_t pid, const char *label, int64_t sort_index) {
    put_label(t, "process_name", "name", pid, 0, "python");
    put_label(t, "process_labels", "labels", pid, 0, label);
    put_sort_index(t, "process_sort_index", pid, 0, sort_index);
}

static void put_thread(op_trace *t, uint64_t pid, int64_t tid, const char *name) {
    put_label(t, "thread_name", "name", pid, tid, name);
    put_sort_index(t, "thread_sort_index", pid, tid, tid);
}

static void put_host(op_trace *t) {
    put_process(t, t->pid, "CPU", (int64_t)t->pid);
    for (uint32_t i = 0; i < t->r->thread_count; i++) {
        const op_thread_info *thread = &t->r->threads[i];
        if (thread->device_type != 0)
            continue;
        char name[64];
        snprintf(name, sizeof name, "thread %u (%.15s)", thread->os_tid,
                 thread->name[0] ? thread->name : "python");
        put_thread(t, t->pid, thread->os_tid, name);
    }
}

static uint32_t count_tracks(const op_trace *t, uint32_t thread) {
    uint32_t tracks = 0;
    for (uint64_t i = 0; i < t->lanes.count; i++)
        if (t->r->columns.thread[t->lanes.slices[i].row] == thread &&
            t->lanes.slices[i].track >= tracks)
            tracks = t->lanes.slices[i].track + 1;
    return tracks;
}

static void put_stream(op_trace *t, uint32_t thread) {
    const op_thread_info *stream = &t->r->threads[thread];
    uint32_t tracks = count_tracks(t, thread);
    for (uint32_t track = 0; track < tracks; track++) {
        char name[64];
        snprintf(name, sizeof name, "stream %lld%s", (long long)stream->resource,
                 track ? " (overlapping)" : "");
        put_thread(t, device_of(stream), track_number(stream, track), name);
    }
}

static bool is_first_of_device(const op_result *r, uint32_t thread) {
    for (uint32_t i = 0; i < thread; i++)
        if (r->threads[i].device_type != 0 &&
            device_of(&r->threads[i]) == device_of(&r->threads[thread]))
            return false;
    return true;
}

static void put_devices(op_trace *t) {
    for (uint32_t i = 0; i < t->r->thread_count; i++) {
        if (t->r->threads[i].device_type == 0)
            continue;
        if (is_first_of_device(t->r, i)) {
            uint64_t device = device_of(&t->r->threads[i]);
            char label[32];
            snprintf(label, sizeof label, "GPU %llu", (unsigned long long)device);
            put_process(t, device, label, OP_SORT_DEVICES + (int64_t)device);
        }
        put_stream(t, i);
    }
}

void op_trace_put_labels(op_trace *t) {
    put_host(t);
    put_devices(t);
}
