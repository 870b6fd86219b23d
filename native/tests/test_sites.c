/* Call sites, as they are recorded and as in a result. */
#include "made.h"
#include "sources/call.h"
#include "sources/sites.h"

static made m;

static uint64_t calls_from(const op_result *r, const char *name, uint32_t site) {
    uint64_t count;
    const op_called_from *rows = op_result_called_from(r, &count);
    for (uint64_t i = 0; i < count; i++)
        if (rows[i].name == name_id(name) && rows[i].site == site)
            return rows[i].count;
    return 0;
}

static made_thread *begin_made(void) {
    memset(&m, 0, sizeof m);
    m.sites = 9;
    add_step(&m, 0, 100, 10000, 71);
    m.threads[0].os_tid = 71;
    m.threads[0].torch_thread = 1;
    return &m.threads[0];
}

static op_event *add_at(made_thread *t, uint16_t site, const char *name, uint16_t depth, uint64_t start,
                        uint64_t end) {
    op_event *e = add_event(t, name, depth, start, end);
    e->line = site;
    return e;
}

/* A lookup continues to the next entry until it finds its own. */
static void instructions_of_one_function_are_spread(void) {
    static const char code[] = "code";
    bool is_taken[1024] = {false};
    uint32_t taken = 0;
    for (uint32_t offset = 0; offset < 2 * 100; offset += 2) {
        bool *entry = &is_taken[op_instruction_hash(code, offset) & 1023];
        taken += !*entry;
        *entry = true;
    }
    CHECK(taken > 80);
}

static void what_runs_inside_of_an_op_is_called_from_its_line(void) {
    made_thread *t = begin_made();
    add_at(t, 3, "linear", 0, 110, 150);
    add_event(t, "addmm", 1, 120, 140);
    add_event(t, "copy_", 2, 125, 130);
    add_at(t, 4, "linear", 0, 210, 250);
    add_at(t, 4, "linear", 0, 310, 350);
    op_result *r = build(&m);
    CHECK_EQ(calls_from(r, "linear", 3), 1);
    CHECK_EQ(calls_from(r, "linear", 4), 2);
    CHECK_EQ(calls_from(r, "copy_", 3), 1);
    CHECK_EQ(calls_from(r, "copy_", 4), 0);
    CHECK_EQ(columns_of(r).line[0], 0); /* it is not a site's number */
    op_result_free(r);
}

/* A module's call has a line instead, which is nobody's site. */
static void the_line_of_a_call_is_not_a_site(void) {
    made_thread *t = begin_made();
    add_kind(t, "thread's module", 0, 110, 150, OP_PYTHON_CALL)->line = 58;
    add_event(t, "addmm", 0, 120, 140);
    add_at(t, 3, "range", 0, 200, 300);
    add_kind(t, "module", 0, 210, 250, OP_PYTHON_CALL)->line = 59;
    add_event(t, "linear", 1, 220, 240);
    add_kind(t, "enters", 0, 400, 420, OP_PYTHON_CALL)->line = 60;
    add_at(t, 4, "outlives", 0, 410, 500);
    op_result *r = build(&m);
    uint64_t count;
    op_result_called_from(r, &count);
    CHECK_EQ(count, 3);
    CHECK_EQ(calls_from(r, "range", 3), 1);
    CHECK_EQ(calls_from(r, "linear", 3), 1);
    CHECK_EQ(calls_from(r, "outlives", 4), 1);
    op_result_free(r);
}

/* As of an op that began after the places were copied. */
static void a_site_beyond_the_places_counts_nowhere(void) {
    made_thread *t = begin_made();
    add_at(t, (uint16_t)m.sites, "last", 0, 110, 150);
    add_at(t, (uint16_t)(m.sites + 1), "later", 0, 210, 250);
    op_result *r = build(&m);
    uint64_t count;
    op_result_called_from(r, &count);
    CHECK_EQ(count, 1);
    CHECK_EQ(calls_from(r, "last", m.sites), 1);
    op_result_free(r);
}

/* The engine may run a node in whatever calls backward(), or on a thread without Python. */
static void a_backward_op_is_called_from_its_forwards_line(void) {
    made_thread *t = begin_made(), *engine = &m.threads[1];
    engine->os_tid = 71;
    engine->torch_thread = 2;
    set_sequence(t, add_at(t, 3, "mm", 0, 110, 120), 7, 0);
    set_sequence(t, add_at(t, 4, "peeks", 0, 130, 140), 8, 0);
    set_sequence(t, add_at(t, 5, "mul", 0, 150, 160), 8, 0);
    add_at(t, 6, "autograd::engine::evaluate_function: MmBackward0", 0, 200, 290);
    set_sequence(t, add_event(t, "MmBackward0", 1, 210, 280), 7, 1);
    add_event(t, "mm in it", 2, 220, 270);
    set_sequence(engine, add_event(engine, "MulBackward0", 0, 300, 320), 8, 1);
    add_at(t, 6, "AccumulateGrad", 0, 330, 340);
    op_result *r = build(&m);
    CHECK_EQ(calls_from(r, "autograd::engine::evaluate_function: MmBackward0", 3), 1);
    CHECK_EQ(calls_from(r, "MmBackward0", 3), 1);
    CHECK_EQ(calls_from(r, "mm in it", 3), 1);
    CHECK_EQ(calls_from(r, "MulBackward0", 5), 1);
    CHECK_EQ(calls_from(r, "AccumulateGrad", 6), 1);
    op_result_free(r);
}

static void only_steps_and_ops_count(void) {
    made_thread *t = begin_made();
    add_at(t, 3, "before the step", 0, 10, 20);
    add_kind(t, "[memory]", 0, 120, 120, OP_MARK)->line = 3;
    add_kind(t, "range", 0, 130, 140, OP_RANGE)->line = 3;
    op_result *r = build(&m);
    uint64_t count;
    op_result_called_from(r, &count);
    CHECK_EQ(count, 1);
    CHECK_EQ(calls_from(r, "range", 3), 1);
    op_result_free(r);
}

static op_instruction instruction(const void *code, uint32_t offset) {
    return (op_instruction){.code = code, .lines = &m, .offset = offset};
}

static void instructions_are_told_apart(void) {
    static char codes[20000];
    for (uint32_t i = 0; i < sizeof codes; i++) {
        const op_instruction met = instruction(&codes[i], i % 7);
        CHECK(op_sites_look(&met) == NULL);
        const op_site place = {.file = 1, .function = 2, .line = i + 1};
        CHECK_EQ(op_sites_add(&met, i % 3 ? &place : NULL) == OP_SITE_NONE, i % 3 == 0);
    }
    uint16_t last = 0;
    for (uint32_t i = 0; i < sizeof codes; i++) {
        const op_instruction met = instruction(&codes[i], i % 7);
        const op_instruction *found = op_sites_look(&met);
        CHECK(found != NULL);
        CHECK_EQ(found->site == OP_SITE_NONE, i % 3 == 0);
        CHECK(i % 3 == 0 || found->site > last);
        last = i % 3 ? found->site : last;
    }
    op_instruction other = instruction(&codes[1], 1);
    other.lines = codes; /* another code object at the same address */
    CHECK(op_sites_look(&other) == NULL);
}

/* An epoch ends with any code object, because addresses may mean something else afterwards. */
static void a_memo_ends_with_its_epoch(void) {
    static char code;
    op_thread t = {0};
    op_site_memo *memo = op_site_memo_of(&t);
    *op_site_memo_library(memo, &code) = &code;
    CHECK(*op_site_memo_library(op_site_memo_of(&t), &code) == &code);
    op_sites_forget();
    CHECK(*op_site_memo_library(op_site_memo_of(&t), &code) == NULL);
    free(t.sites);
}

static void note(const op_slot *slot, enum op_caller caller) {
    CHECK_EQ(caller, OP_CALLED_BY_PYTHON);
    CHECK_EQ(op_line_of(slot, caller), OP_LINE_OWN);
    slot->event->line = 2;
}

/* A window has the places known when it closed; one without sites has none. */
static void a_window_has_its_places(void) {
    folder f = make_folder();
    open_session(&f);
    CHECK_OK(op_window_start());
    CHECK_OK(op_step_begin(0));
    op_sites_begin();
    op_lines_noted.note = note;
    op_slot slot = begin_numbered(name_id("mm"), 1);
    op_note_line(&slot, OP_CALLED_BY_PYTHON);
    op_end(&slot);
    CHECK_OK(op_step_end());
    op_lines_noted.note = NULL;
    op_result *r = stop_window();
    uint32_t count;
    const op_site *sites = op_result_sites(r, &count);
    CHECK(sites != NULL && count >= 2);
    CHECK_EQ(sites[1].file, 1);
    CHECK_EQ(calls_from(r, "mm", 2), 1);
    op_result_free(r);
    CHECK_OK(op_window_start());
    r = stop_window();
    CHECK(op_result_sites(r, &count) == NULL);
    op_result_free(r);
    close_session(&f);
}

static void note_asked(const op_slot *slot, enum op_caller caller) {
    (void)caller;
    slot->event->line = 1;
}

static bool asks(uint8_t flags, uint16_t depth) {
    op_event e = {.kind = OP_TORCH, .flags = flags, .depth = depth};
    const op_slot slot = {&e, op_self, op_self->window};
    op_note_line(&slot, OP_CALLED_BY_PYTHON);
    return e.line != 0;
}

/* An op inside one with a line needs no lookup; nodes, ranges and what is in them do. */
static void what_shares_a_line_asks_nothing(void) {
    folder f = make_folder();
    open_session(&f);
    CHECK_OK(op_window_start());
    op_lines_noted.note = note_asked;
    op_slot outer = begin_numbered(name_id("linear"), 1);
    CHECK(asks(0, 0) && asks(0, 1));
    op_self->lined = 0;
    CHECK(!asks(0, 1));
    CHECK(asks(0, 0) && asks(OP_SCOPE_USER, 1) && asks(OP_SCOPE_BACKWARD, 1) &&
          asks(OP_FLAG_ENGINE, 1));
    op_slot inner = begin_numbered(name_id("mm"), 1); /* the same for a range, whoever emits it */
    CHECK(asks(0, 2));
    op_self->lined = 0;
    op_end(&outer); /* before the event inside it */
    CHECK(asks(0, 2));
    op_end(&inner);
    op_lines_noted.note = NULL;
    op_result_free(stop_window());
    close_session(&f);
}

/* Nothing inside a node of autograd needs a lookup, unless Python runs in it. */
static void a_node_asks_only_of_python(void) {
    folder f = make_folder();
    open_session(&f);
    CHECK_OK(op_window_start());
    op_lines_noted.note = note_asked;
    static char frame, inner_frame;
    const void *running = &frame;
    op_slot range = begin_numbered(name_id("evaluate_function"), 1);
    const void *innermost = &frame;
    op_self->python = &running;
    op_self->engine_python = running;
    op_self->engine_word = &innermost;
    op_self->engine_frame = innermost;
    op_self->node = 0;
    CHECK(!asks(OP_SCOPE_BACKWARD, 1) && !asks(0, 2) && asks(0, 0) && asks(OP_FLAG_ENGINE, 2));
    running = &inner_frame;
    CHECK(asks(0, 2));
    running = &frame;
    CHECK(!asks(0, 2));
    innermost = &inner_frame; /* of another greenlet, at the same place of the C stack */
    CHECK(asks(0, 2));
    op_slot inner = begin_numbered(name_id("mm"), 1);
    CHECK(asks(0, 2));
    op_end(&inner);
    op_end(&range);
    op_self->node = 0;
    op_result_free(stop_window());
    CHECK_OK(op_window_start());
    range = begin_numbered(name_id("evaluate_function"), 1);
    CHECK_EQ(op_self->node, OP_NOT_LINED);
    op_end(&range);
    op_lines_noted.note = NULL;
    op_result_free(stop_window());
    close_session(&f);
}

/* Past half of the numbers a window restarts numbering, so that they never run out. */
static void numbers_are_given_anew(void) {
    static char codes[UINT16_MAX + 10];
    const op_site place = {.file = 1, .function = 2, .line = 3};
    uint16_t site = 0;
    for (uint32_t i = 0; i < sizeof codes; i++) {
        const op_instruction met = instruction(&codes[i], 1000);
        site = op_sites_add(&met, &place);
    }
    CHECK_EQ(site, OP_SITE_BEYOND);
    op_sites_begin();
    const op_instruction again = instruction(&codes[0], 1000);
    CHECK(op_sites_look(&again) == NULL);
    CHECK_EQ(op_sites_add(&again, &place), 1);
}

/* Each way to a place has one number; recursion does not use up all of them. */
static void a_place_is_told_by_what_called_it(void) {
    static char codes[3];
    uint16_t sites[3];
    folder f = make_folder();
    open_session(&f);
    CHECK_OK(op_window_start());
    op_sites_begin();
    for (uint32_t i = 0; i < 3; i++) {
        const op_instruction met = instruction(&codes[i], 3000);
        const op_site place = {.file = 1, .function = 2, .line = i + 1};
        sites[i] = op_sites_add(&met, &place);
    }
    CHECK_EQ(op_sites_under(sites[0], OP_SITE_NONE), sites[0]);
    uint16_t by_second = op_sites_under(sites[0], sites[1]);
    uint16_t by_third = op_sites_under(sites[0], sites[2]);
    uint16_t by_both = op_sites_under(sites[0], op_sites_under(sites[1], sites[2]));
    CHECK(by_second != sites[0] && by_third != by_second && by_both != by_second);
    CHECK_EQ(op_sites_under(sites[0], sites[1]), by_second);
    uint32_t count;
    op_site *places = op_sites_take(op_open_window(), &count);
    CHECK_EQ(places[by_second - 1].line, 1);
    CHECK_EQ(places[by_second - 1].caller, sites[1]);
    CHECK_EQ(places[places[by_both - 1].caller - 1].caller, sites[2]);
    free(places);
    uint16_t chain = sites[0];
    for (uint32_t i = 0; i < UINT16_MAX; i++)
        chain = op_sites_under(sites[i % 3], chain);
    CHECK(chain == sites[(UINT16_MAX - 1) % 3]); /* no number is left */
    op_result_free(stop_window());
    close_session(&f);
}

int main(void) {
    RUN(instructions_of_one_function_are_spread);
    RUN(what_runs_inside_of_an_op_is_called_from_its_line);
    RUN(the_line_of_a_call_is_not_a_site);
    RUN(a_site_beyond_the_places_counts_nowhere);
    RUN(a_backward_op_is_called_from_its_forwards_line);
    RUN(only_steps_and_ops_count);
    RUN(instructions_are_told_apart);
    RUN(a_memo_ends_with_its_epoch);
    RUN(a_window_has_its_places);
    RUN(what_shares_a_line_asks_nothing);
    RUN(a_node_asks_only_of_python);
    RUN(numbers_are_given_anew);
    RUN(a_place_is_told_by_what_called_it);
    return 0;
}
