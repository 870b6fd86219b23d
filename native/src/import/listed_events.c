/* Turns events that a program lists into columns, like those of a file, except that names, places and
 * other values are given and not parsed. */
#include "core/error.h"
#include "core/event.h"
#include "core/fault.h"
#include "import/args_in.h"
#include "import/kineto_rows.h"
#include "result/device_time.h"
#include "result/flops.h"
#include "result/imported.h"
#include "result/packed_args.h"

#include <string.h>

typedef struct listing {
    const op_event_list *list;
    op_read_events read;
    op_buffer words;  /* argument blocks */
    uint32_t *names;  /* by text: the name's id; 0: not looked up */
    uint32_t *blocks; /* by text: 1 + the offset of its shapes; 0: not read, or none */
    op_result *result;
} listing;

static int no_memory(void) { return op_error_set(OP_ENOMEM, "no memory for the events"); }

static uint32_t name_of(listing *l, uint32_t text, bool is_call) {
    uint32_t *known = &l->names[text], group = l->list->text_groups[text];
    if (*known)
        return *known;
    const char *utf8 = l->list->texts[text];
    uint32_t length = l->list->text_lengths[text], group_name = OP_NAME_NONE;
    if (is_call)
        return *known = op_names_lend_call(utf8, length, &l->result->names);
    if (group && (group_name = name_of(l, group - 1, false)) == OP_NAME_NONE)
        return OP_NAME_NONE;
    return *known = op_names_lend(utf8, length, group_name, &l->result->names);
}

static int take_name(listing *l, const op_listed_event *given, uint32_t *name) {
    *name = name_of(l, given->name - 1, given->kind == OP_PYTHON_CALL);
    if (*name == OP_NAME_OVERFLOW)
        return op_error_set(OP_ELIMIT,
                            "this process holds events with %u distinct names: close some before "
                            "reading more",
                            op_names_count());
    return *name == OP_NAME_NONE ? no_memory() : OP_OK;
}

/* Many events have the same shapes; they share one block. */
static int take_shapes(listing *l, uint32_t shapes, uint32_t *at) {
    const op_span dims = {.text = l->list->texts[shapes - 1],
                          .length = l->list->text_lengths[shapes - 1]};
    uint32_t *known = &l->blocks[shapes - 1];
    if (!*known && op_args_put_shapes(&l->words, &dims, known))
        return no_memory();
    *at = *known;
    return OP_OK;
}

static int take_memory(listing *l, const op_listed_event *given, uint32_t *at) {
    const op_read_args args = {.address = 1, /* unknown, but 0 would mean a failed allocation */
                               .bytes = given->bytes,
                               .allocated = -1,
                               .reserved = -1,
                               .device_type = given->device_type,
                               .device_index = given->device_index};
    return op_args_put_memory(&l->words, &args, at) ? no_memory() : OP_OK;
}

/* `extras` carries the event's index in the list to its row. */
static int take(listing *l, uint64_t index) {
    const op_listed_event *given = &l->list->events[index];
    op_read_event *e = &l->read.events[index];
    bool on_device = op_is_on_device(given->kind);
    *e = (op_read_event){.start_ns = given->start_ns,
                         .duration_ns = given->end_ns - given->start_ns,
                         .sequence_nr = on_device ? given->link : given->sequence_nr,
                         .link = given->link,
                         .lane = given->thread,
                         .extras = (uint32_t)index,
                         .forward_thread = given->forward_thread,
                         .kind = given->kind,
                         .flags = given->flags,
                         .scope = given->scope};
    if (given->end_ns > l->read.last_ns)
        l->read.last_ns = given->end_ns;
    int rc = take_name(l, given, &e->name);
    if (rc == OP_OK && given->kind == OP_MEMORY)
        return take_memory(l, given, &e->args);
    return rc == OP_OK && given->shapes ? take_shapes(l, given->shapes, &e->args) : rc;
}

static int copy_threads(listing *l) {
    size_t bytes = l->list->thread_count * sizeof(op_thread_info);
    l->result->threads = op_malloc(bytes + 1);
    if (!l->result->threads)
        return no_memory();
    if (bytes)
        memcpy(l->result->threads, l->list->threads, bytes);
    l->result->thread_count = l->list->thread_count;
    return OP_OK;
}

static int read_events(listing *l) {
    uint64_t n = l->list->count;
    l->read = (op_read_events){.count = n, .capacity = n, .are_open_at_end = true};
    l->read.events = op_malloc(n * sizeof *l->read.events + 1);
    l->names = op_calloc((size_t)l->list->text_count + 1, sizeof *l->names);
    l->blocks = op_calloc((size_t)l->list->text_count + 1, sizeof *l->blocks);
    l->result->imported = op_calloc(1, sizeof *l->result->imported);
    if (!l->read.events || !l->names || !l->blocks || !l->result->imported)
        return no_memory();
    l->result->imported->base_ns = l->list->window_ns;
    int rc = copy_threads(l);
    for (uint64_t i = 0; rc == OP_OK && i < n; i++)
        rc = take(l, i);
    l->result->args = (uint32_t *)(void *)l->words.bytes;
    l->result->arg_words = l->words.used / 4;
    return rc;
}

static int tell_flops(op_result *r, const op_event_list *list, const uint32_t *order) {
    int64_t *flops = op_flops_prepare(r);
    for (uint64_t row = 0; flops && row < list->count; row++) {
        int64_t told = list->events[order[row]].flops;
        flops[row] = told ? told : -1;
    }
    return op_flops_keep(r, flops);
}

int op_events_read(const op_event_list *list, uint32_t *order, op_result **out) {
    *out = NULL;
    if (list->count > INT32_MAX)
        return op_error_set(OP_ELIMIT, "%llu events are more than a result can hold",
                            (unsigned long long)list->count);
    listing l = {.list = list, .result = op_result_new()};
    if (!l.result)
        return no_memory();
    int rc = read_events(&l);
    if (rc == OP_OK)
        rc = op_rows_build(&l.read, l.result);
    if (rc == OP_OK && list->count)
        memcpy(order, l.result->imported->extras, list->count * sizeof *order);
    op_imported_free(l.result->imported); /* the program has what the columns lack */
    l.result->imported = NULL;
    if (rc == OP_OK)
        rc = tell_flops(l.result, list, order);
    free(l.read.events);
    free(l.names);
    free(l.blocks);
    if (rc == OP_OK)
        *out = l.result;
    else
        op_result_free(l.result);
    return rc;
}
