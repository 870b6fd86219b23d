#include "made.h"
#include "result/flop_formulas.h"
#include "result/group.h"

static made m;

enum { LINEAR, ADDMM, ADD, RELU, NAMES };
static const char *const names[NAMES] = {"linear", "addmm", "add", "relu"};

static void count(op_result *r, const int64_t *by_name) {
    const op_group *rows;
    const int64_t *samples;
    uint64_t n;
    int64_t per_row[MADE_EVENTS];
    CHECK_OK(op_result_groups(r, OP_GROUP_BY_INPUTS, 0, &rows, &n, &samples));
    for (uint64_t i = 0; i < n; i++) {
        per_row[i] = -1;
        for (int name = 0; name < NAMES; name++)
            if (rows[i].name == name_id(names[name]))
                per_row[i] = by_name[name];
    }
    CHECK_OK(op_result_count_flops(r, per_row, n));
}

static op_result *layer_and_sum(void) {
    memset(&m, 0, sizeof m);
    made_thread *t = &m.threads[0];
    add_step(&m, 0, 50, 900, 0);
    add_event(t, "forward", 0, 100, 500);
    add_event(t, "linear", 1, 150, 300);
    add_event(t, "addmm", 2, 160, 200);
    add_event(t, "relu", 1, 310, 320);
    add_event(t, "add", 0, 600, 700);
    return build(&m);
}

static void flops_of_what_is_inside_add_up(void) {
    op_result *r = layer_and_sum();
    count(r, (int64_t[NAMES]){-1, 100, 7, 0});
    const int64_t *flops = op_result_flops(r), *counted = flops + r->columns.count;
    CHECK_EQ(flops[0], 100);
    CHECK_EQ(flops[1], 100);
    CHECK_EQ(flops[2], 100);
    CHECK_EQ(flops[3], 0);
    CHECK_EQ(flops[4], 7);
    CHECK_EQ(counted[0] + counted[1] + counted[3], 0);
    CHECK_EQ(counted[2], 100);
    CHECK_EQ(counted[4], 7);
    op_result_free(r);
}

static void a_formula_stands_for_what_is_inside(void) {
    op_result *r = layer_and_sum();
    count(r, (int64_t[NAMES]){110, 100, 7, 3});
    const int64_t *flops = op_result_flops(r), *counted = flops + r->columns.count;
    CHECK_EQ(flops[0], 113);
    CHECK_EQ(flops[1], 110);
    CHECK_EQ(flops[2], 100);
    CHECK_EQ(counted[1], 110);
    CHECK_EQ(counted[2], 0);
    CHECK_EQ(counted[3], 3);
    op_result_free(r);
}

static void rows_and_steps_have_the_sums(void) {
    op_result *r = layer_and_sum();
    count(r, (int64_t[NAMES]){110, 100, 7, 3});
    const op_group *rows;
    const int64_t *samples;
    uint64_t n;
    CHECK_OK(op_result_groups(r, OP_GROUP_BY_NAME, 0, &rows, &n, &samples));
    int64_t whole = 0;
    for (uint64_t i = 0; i < n; i++) {
        whole += rows[i].counted_flops;
        CHECK_EQ(samples[6 * n + i], rows[i].flops);
        CHECK_EQ(samples[7 * n + i], rows[i].counted_flops);
    }
    CHECK_EQ(whole, 120);
    op_result_free(r);
}

/* A total is judged by the rows of a step, which must not have more FLOPs than ran. */
static void an_op_inside_its_name_counts_once(void) {
    memset(&m, 0, sizeof m);
    add_step(&m, 0, 50, 900, 0);
    add_event(&m.threads[0], "add", 0, 100, 500);
    add_event(&m.threads[0], "relu", 1, 200, 400);
    add_event(&m.threads[0], "add", 2, 210, 300);
    op_result *r = build(&m);
    count(r, (int64_t[NAMES]){-1, -1, 100, -1});
    const op_group *rows;
    const int64_t *samples;
    uint64_t n;
    CHECK_OK(op_result_groups(r, OP_GROUP_BY_NAME, 0, &rows, &n, &samples));
    CHECK_EQ(n, 2);
    CHECK_EQ(rows[0].flops, 200); /* those of its events */
    CHECK_EQ(samples[OP_STEP_flops * n], 100);
    CHECK_EQ(samples[OP_STEP_counted_flops * n], 100);
    op_result_free(r);
}

static void a_line_has_its_part(void) {
    memset(&m, 0, sizeof m);
    m.sites = 3;
    add_step(&m, 0, 50, 900, 0);
    made_thread *t = &m.threads[0];
    op_event *relu = add_event(t, "relu", 0, 100, 500);
    relu->line = 2;
    const uint32_t words[] = {OP_ARGS_HEADER(OP_ARGS_TORCH, 5), 0, 0, OP_INPUT_WORK, 64, 0};
    add_block(t, relu, words, 6);
    op_result *r = build(&m);
    uint64_t n;
    CHECK_EQ(op_result_called_from(r, &n)->flops, 0);
    CHECK_EQ(n, 1);
    for (int i = 0; i < 2; i++) {
        count(r, (int64_t[NAMES]){-1, -1, -1, 1000});
        CHECK_EQ(op_result_called_from(r, &n)->flops, 1000);
    }
    op_result_free(r);
}

static void counting_again_leaves_the_array_in_place(void) {
    op_result *r = layer_and_sum();
    count(r, (int64_t[NAMES]){110, 100, 7, 3});
    const int64_t *flops = op_result_flops(r);
    count(r, (int64_t[NAMES]){-1, 100, 7, 0});
    CHECK(op_result_flops(r) == flops);
    CHECK_EQ(flops[1], 100);
    CHECK_EQ(flops[r->columns.count + 2], 100);
    op_result_free(r);
}

static void rows_of_another_kind_are_refused(void) {
    op_result *r = layer_and_sum();
    const int64_t nothing[1] = {0};
    CHECK(op_result_flops(r) == NULL);
    CHECK_EQ(op_result_count_flops(r, nothing, 1), OP_ESTATE);
    count(r, (int64_t[NAMES]){1, 1, 1, 1});
    CHECK_EQ(op_result_count_flops(r, nothing, 1), OP_ESTATE);
    op_result_free(r);
}

/* ---- formulas of ops that a test on a CPU does not run --------------------------------------- */

enum { MOST_WORDS = 128 };

/* Arguments of an op: tensors, lists of integers, and whatever has neither. */
typedef struct arguments {
    uint32_t words[MOST_WORDS];
    uint32_t count;
} arguments;

#define TENSOR(a, ...) put_tensor(a, (uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4)

static void put_tensor(arguments *a, const uint32_t *sizes, uint32_t rank) {
    CHECK(a->count + 1 + 2 * rank <= MOST_WORDS);
    a->words[a->count++] = OP_INPUT_TENSOR | rank << 16;
    memcpy(a->words + a->count, sizes, rank * sizeof *sizes);
    a->count += 2 * rank;
}

static void put(arguments *a, uint32_t token, uint32_t times) {
    for (uint32_t i = 0; i < times; i++)
        a->words[a->count++] = token;
}

static int64_t flops_of(const char *op, const arguments *a) {
    uint8_t formula = op_flop_formula(op);
    CHECK(formula != 0);
    return op_flops_of(formula, (op_inputs){a->words, a->words + a->count});
}

static void the_weight_comes_after_what_is_added(void) {
    arguments unary = {0}, binary = {0};
    TENSOR(&unary, 32, 16);
    TENSOR(&unary, 64, 16);
    put(&unary, OP_INPUT_NONE, 1);
    put(&unary, OP_INPUT_OTHER, 3);
    TENSOR(&binary, 32, 16);
    TENSOR(&binary, 32, 64);
    TENSOR(&binary, 64, 16);
    TENSOR(&binary, 64);
    put(&binary, OP_INPUT_OTHER, 1);
    CHECK_EQ(flops_of("mkldnn::_linear_pointwise", &unary), 2 * 32 * 64 * 16);
    CHECK_EQ(flops_of("mkldnn::_linear_pointwise", &binary), 2 * 32 * 64 * 16);
}

static void put_convolution(arguments *a, uint32_t others) {
    TENSOR(a, 4, 3, 3, 3);
    put(a, OP_INPUT_NONE, 1);
    for (int64_t number = 0; number < 4; number++) { /* padding, stride, dilation, groups */
        put(a, number < 3 ? OP_INPUT_INT_LIST | 1u << 16 : OP_INPUT_INT, 1);
        a->words[a->count++] = number > 0;
        a->words[a->count++] = 0;
    }
    put(a, OP_INPUT_OTHER, others);
}

static void so_it_does_in_a_convolution(void) {
    const int64_t flops = 2 * 2 * 4 * 3 * 3 * 3 * 8 * 8;
    arguments unary = {0}, binary = {0}, in_place = {0};
    TENSOR(&unary, 2, 3, 10, 10);
    put_convolution(&unary, 3);
    TENSOR(&binary, 2, 3, 10, 10);
    TENSOR(&binary, 2, 4, 8, 8);
    put_convolution(&binary, 5);
    TENSOR(&in_place, 2, 4, 8, 8);
    TENSOR(&in_place, 2, 3, 10, 10);
    put_convolution(&in_place, 5);
    CHECK_EQ(flops_of("mkldnn::_convolution_pointwise", &unary), flops);
    CHECK_EQ(flops_of("mkldnn::_convolution_pointwise", &binary), flops);
    CHECK_EQ(flops_of("mkldnn::_convolution_pointwise_", &in_place), flops);
}

static void packed_sequences_have_unknown_lengths(void) {
    for (int is_packed = 0; is_packed < 2; is_packed++) {
        arguments forward = {0}, backward = {0};
        TENSOR(&backward, 1, 10, 4, 8);
        for (int i = 0; i < 3; i++) {
            TENSOR(&forward, 1, 10, 4, 8);
            TENSOR(&backward, 1, 10, 4, 8);
        }
        put(&forward, OP_INPUT_NONE, 1);
        put(&backward, OP_INPUT_NONE, 2);
        if (is_packed) {
            TENSOR(&forward, 3);
            TENSOR(&backward, 3);
        }
        put(&forward, OP_INPUT_NONE, 4);
        put(&backward, OP_INPUT_NONE, 4);
        const int64_t flops = 2 * 4 * 10 * 10 * (8 + 8);
        CHECK_EQ(flops_of("aten::_efficient_attention_forward", &forward), is_packed ? -1 : flops);
        CHECK_EQ(flops_of("aten::_efficient_attention_backward", &backward),
                 is_packed ? -1 : flops * 5 / 2);
    }
}

/* Rows, columns, or what is summed up over lie in groups; only two batches are multiplied as such. */
static void each_row_is_in_one_group(void) {
    arguments rows = {0}, columns = {0}, sums = {0}, batches = {0};
    TENSOR(&rows, 10, 4);
    TENSOR(&rows, 3, 4, 5);
    TENSOR(&columns, 3, 10, 4);
    TENSOR(&columns, 4, 5);
    TENSOR(&sums, 10, 4);
    TENSOR(&sums, 4, 5);
    TENSOR(&batches, 3, 10, 4);
    TENSOR(&batches, 3, 4, 5);
    const int64_t flops = 2 * 10 * 4 * 5;
    CHECK_EQ(flops_of("aten::_grouped_mm", &rows), flops);
    CHECK_EQ(flops_of("aten::_grouped_mm", &columns), flops);
    CHECK_EQ(flops_of("aten::_scaled_grouped_mm", &sums), flops);
    CHECK_EQ(flops_of("aten::_scaled_grouped_mm_v2", &batches), 3 * flops);
    CHECK_EQ(flops_of("aten::_scaled_mm_v2", &sums), flops);
}

/* As cuDNN is given all layers; oneDNN is given one, without a list. */
static void a_recurrent_layer_meets_its_weights(void) {
    arguments list = {0}, layer = {0};
    TENSOR(&list, 3, 2, 8);
    put(&list, OP_INPUT_TENSOR_LIST | 3u << 16, 1);
    TENSOR(&layer, 3, 2, 8);
    for (int i = 0; i < 2; i++) {
        TENSOR(i ? &layer : &list, 24, 8);
        TENSOR(i ? &layer : &list, 24, 6);
        TENSOR(i ? &layer : &list, 24);
    }
    TENSOR(&list, 2, 6); /* a state, not a weight */
    TENSOR(&layer, 2, 6);
    const int64_t flops = 2 * 3 * 2 * (24 * 8 + 24 * 6);
    CHECK_EQ(flops_of("aten::_cudnn_rnn", &list), flops);
    CHECK_EQ(flops_of("aten::mkldnn_rnn_layer", &layer), flops);
    CHECK_EQ(flops_of("aten::mkldnn_rnn_layer_backward", &layer), 2 * flops);
}

int main(void) {
    RUN(flops_of_what_is_inside_add_up);
    RUN(a_formula_stands_for_what_is_inside);
    RUN(rows_and_steps_have_the_sums);
    RUN(an_op_inside_its_name_counts_once);
    RUN(a_line_has_its_part);
    RUN(counting_again_leaves_the_array_in_place);
    RUN(rows_of_another_kind_are_refused);
    RUN(the_weight_comes_after_what_is_added);
    RUN(so_it_does_in_a_convolution);
    RUN(packed_sequences_have_unknown_lengths);
    RUN(each_row_is_in_one_group);
    RUN(a_recurrent_layer_meets_its_weights);
    return 0;
}
