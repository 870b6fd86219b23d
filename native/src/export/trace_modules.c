/* The calls and torch modules that an event ran in, as "Module Hierarchy". Kineto reports it for
 * TorchScript's modules, which the observer notes with the op; here the modules' calls show it. */
#include "export/trace_modules.h"

#include "core/fault.h"
#include "core/fields.h"
#include "core/names.h"
#include "export/trace_writer.h"
#include "result/inputs.h"

static const char prefix[] = "nn.Module: ";
enum { PREFIX = sizeof prefix - 1, DEEPEST = 32 };

static bool is_module(const op_columns *c, uint64_t row) {
    uint32_t length;
    if (c->kind[row] != OP_PYTHON_CALL)
        return false;
    const char *text = op_names_text(c->name[row], &length);
    return length > PREFIX && memcmp(text, prefix, PREFIX) == 0;
}

typedef bool condition(const op_columns *c, uint64_t row);

/* By row, 1 + the innermost matching row at or around it; NULL: there is none. One pass suffices
 * because parents precede their contents. False: no memory. */
static bool find_around(const op_columns *c, condition *is_wanted, uint32_t **found) {
    uint64_t first = 0;
    while (first < c->count && !is_wanted(c, first))
        first++;
    if (first == c->count)
        return true;
    uint32_t *around = *found = op_calloc(c->count, sizeof *around);
    for (uint64_t row = first; around && row < c->count; row++)
        around[row] = is_wanted(c, row)     ? (uint32_t)row + 1
                      : c->parent[row] >= 0 ? around[c->parent[row]]
                                            : 0;
    return around != NULL;
}

bool op_trace_find_calls(op_trace *t) {
    const op_columns *c = &t->r->columns;
    return find_around(c, op_trace_is_call, &t->calls) && find_around(c, is_module, &t->modules);
}

static bool is_told(const op_trace *t, uint64_t row) {
    const op_result *r = t->r;
    if (!r->columns.args[row])
        return false;
    const uint32_t *limit = r->args + r->arg_words, *at = NULL;
    const uint32_t *keywords = op_inputs_keywords(r->args + r->columns.args[row] - 1, limit);
    op_field field;
    while (keywords && op_fields_next(keywords, limit, &at, &field)) {
        uint32_t length;
        const char *text = op_names_text(field.key, &length);
        if (length == sizeof OP_MODULE_HIERARCHY - 1 && memcmp(text, OP_MODULE_HIERARCHY, length) == 0)
            return true;
    }
    return false;
}

/* Outermost first, each followed by a point, as in Kineto's traces; of too many, the innermost. */
void op_trace_put_modules(op_trace *t, uint64_t row) {
    const op_columns *c = &t->r->columns;
    uint32_t calls[DEEPEST], count = 0;
    if (!t->modules || c->kind[row] != OP_TORCH || is_told(t, row))
        return;
    for (uint32_t at = t->modules[row]; at && count < DEEPEST;) {
        calls[count++] = at - 1;
        at = c->parent[at - 1] >= 0 ? t->modules[c->parent[at - 1]] : 0;
    }
    if (!count)
        return;
    PUT(&t->out, "\"" OP_MODULE_HIERARCHY "\":\"");
    while (count--) {
        uint32_t length;
        const char *text = op_names_text(c->name[calls[count]], &length);
        op_json_escaped(&t->out, text + PREFIX, length - PREFIX);
        PUT(&t->out, ".");
    }
    PUT(&t->out, "\",");
}
