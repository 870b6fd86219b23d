#include "core/fault.h"
#include "core/fields.h"
#include "written.h"

static made m;

static op_event *add_module(made_thread *t, const char *name, uint16_t depth, uint64_t start,
                            uint64_t end) {
    op_event *e = add_event(t, name, depth, start, end);
    e->kind = OP_PYTHON_CALL;
    return e;
}

/* Nested modules, a function between them, and ops in each. */
static op_result *modules_and_ops(void) {
    memset(&m, 0, sizeof m);
    made_thread *t = &m.threads[0];
    add_module(t, "nn.Module: Net_0", 0, 1000, 1900);
    add_event(t, "in net", 0, 1010, 1020);
    add_module(t, "net.py(3): forward", 1, 1100, 1800);
    add_module(t, "nn.Module: Linear_0", 2, 1200, 1700);
    add_event(t, "in linear", 0, 1300, 1400);
    add_event(t, "deeper", 1, 1310, 1320);
    add_event(t, "outside", 0, 2000, 2100);
    return build(&m);
}

static void check_op(const char *text, const char *name, const char *modules) {
    char start[128];
    snprintf(start, sizeof start, "\"name\":\"%s\"", name);
    const char *at = strstr(text, start), *end = at ? strchr(at, '\n') : NULL;
    CHECK(at && end);
    const char *found = strstr(at, "\"Module Hierarchy\":\"");
    CHECK_EQ(found && found < end, modules != NULL);
    if (modules)
        CHECK_EQ(memcmp(found + 20, modules, strlen(modules)), 0);
}

static void ops_name_the_modules_around_them(void) {
    op_result *r = modules_and_ops();
    char *text = trace_of(r, "", "t");
    check_op(text, "in net", "Net_0.\",");
    check_op(text, "in linear", "Net_0.Linear_0.\",");
    check_op(text, "deeper", "Net_0.Linear_0.\",");
    check_op(text, "outside", NULL);
    check_op(text, "nn.Module: Net_0", NULL);
    check_op(text, "net.py(3): forward", NULL);
    free(text);
    op_result_free(r);
}

static void what_the_op_tells_is_not_told_twice(void) {
    memset(&m, 0, sizeof m);
    made_thread *t = &m.threads[0];
    op_fields fields;
    op_fields_clear(&fields);
    CHECK(op_fields_put_text(&fields, name_id("other"), OP_FIELD_TEXT, "x", 1));
    CHECK(op_fields_put_text(&fields, name_id(OP_MODULE_HIERARCHY), OP_FIELD_TEXT, "TOP(Net).", 9));
    uint32_t words[64] = {0}, count = op_fields_close(&fields);
    words[0] = OP_ARGS_HEADER(OP_ARGS_TORCH, 3 + count);
    words[3] = OP_INPUT_KEYWORDS | count << 16;
    memcpy(words + 4, fields.words, count * sizeof *words);
    add_module(t, "nn.Module: Net_0", 0, 1000, 1900);
    add_block(t, add_event(t, "scripted", 0, 1100, 1200), words, 4 + count);
    op_result *r = build(&m);
    char *text = trace_of(r, "", "t");
    check_op(text, "scripted", "TOP(Net).\",");
    const char *first = strstr(text, "Module Hierarchy");
    CHECK(first && !strstr(first + 1, "Module Hierarchy"));
    free(text);
    op_result_free(r);
}

static void many_modules_are_the_innermost(void) {
    enum { DEEP = 40 };
    memset(&m, 0, sizeof m);
    made_thread *t = &m.threads[0];
    char name[32];
    for (uint16_t i = 0; i < DEEP; i++) {
        snprintf(name, sizeof name, "nn.Module: M_%u", i);
        add_module(t, name, i, 1000 + i, 5000 - i);
    }
    add_event(t, "op", 0, 2000, 2100);
    op_result *r = build(&m);
    char *text = trace_of(r, "", "t");
    check_op(text, "op", "M_8.M_9.");
    check_has(text, "M_38.M_39.\",");
    free(text);
    op_result_free(r);
}

#ifdef OP_FAULTS
static void every_allocation_may_fail(void) {
    op_result *r = modules_and_ops();
    unsigned n = 0;
    for (bool fired = true; fired;) {
        FILE *file = tmpfile();
        CHECK(file != NULL);
        op_fault_arm(OP_FAULT_MEMORY, ++n);
        int rc = op_result_write_trace(r, fileno(file), "", "t");
        fired = op_fault_fired() > 0;
        op_fault_arm(OP_FAULT_MEMORY, 0);
        CHECK(rc == OP_OK || (fired && rc < 0));
        fclose(file);
    }
    CHECK(n > 5);
    op_result_free(r);
}
#endif

int main(void) {
    RUN(ops_name_the_modules_around_them);
    RUN(what_the_op_tells_is_not_told_twice);
    RUN(many_modules_are_the_innermost);
#ifdef OP_FAULTS
    RUN(every_allocation_may_fail);
#endif
    return 0;
}
