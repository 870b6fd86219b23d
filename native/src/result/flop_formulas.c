/* A multiplication and the addition that follows it count as two. What is only known at run time, such
 * as masks, is ignored. Sources: torch/csrc/profiler/util.cpp (computeFlops) for what torch.profiler
 * counts, torch/utils/flop_counter.py for the rest, and ATen's native_functions.yaml for the order of
 * arguments. */
#include "result/flop_formulas.h"

#include "core/event.h"

#include <string.h>

#define MOST_INPUTS 16u
#define UNKNOWN INT64_C(-1)

/* Argument tokens by position; a list of tensors is only its own token. */
typedef struct given {
    const uint32_t *at[MOST_INPUTS];
    uint32_t count;
    const uint32_t *end;
} given;

typedef struct shape {
    const uint32_t *token; /* NULL: not a tensor */
    uint32_t rank;
} shape;

/* Integers, or one integer for all dimensions. */
typedef struct numbers {
    const uint32_t *token; /* NULL: something else, such as "same" */
    uint32_t count;
} numbers;

/* Positions of an op's arguments. */
enum { STRIDE, PADDING, DILATION, GROUPS, TRANSPOSED, PLACES };
enum { NOWHERE = -1, ALWAYS = -2 };

enum { MOST_NAMES = 8 };

typedef struct formula {
    const char *names[MOST_NAMES]; /* all of oneDNN's, or none */
    int64_t (*count)(const struct formula *f, const given *g);
    int8_t at[PLACES];
} formula;

static void read_inputs(op_inputs inputs, given *g) {
    const uint32_t *token;
    uint32_t members = 0; /* remaining members of a list */
    g->count = 0;
    g->end = inputs.end;
    while (g->count < MOST_INPUTS && op_inputs_next(&inputs, &token)) {
        if (members) {
            members--;
            continue;
        }
        members = (*token & 0xff) == OP_INPUT_TENSOR_LIST ? *token >> 16 : 0;
        g->at[g->count++] = token;
    }
}

static shape shape_of(const given *g, int place) {
    const uint32_t *token = place >= 0 && (uint32_t)place < g->count ? g->at[place] : NULL;
    return token && op_input_is_tensor(*token) ? (shape){token, *token >> 16} : (shape){NULL, 0};
}

static int64_t size_at(shape s, uint32_t dimension) { return op_input_word(s.token, dimension); }
static int64_t size_from_end(shape s, uint32_t place) { return size_at(s, s.rank - place); }

static numbers numbers_of(const given *g, int place) {
    if (place < 0 || (uint32_t)place >= g->count)
        return (numbers){NULL, 0};
    const uint32_t *token = g->at[place];
    if ((*token & 0xff) == OP_INPUT_INT)
        return (numbers){token, 1};
    return (*token & 0xff) == OP_INPUT_INT_LIST ? (numbers){token, *token >> 16} : (numbers){NULL, 0};
}

static int64_t number_at(numbers n, uint32_t place, int64_t otherwise) {
    if (n.count == 0)
        return otherwise;
    return op_input_word(n.token, place < n.count ? place : 0);
}

/* Products of two such sizes do not overflow. */
static bool is_plain(int64_t size) { return size >= 0 && size <= INT32_MAX; }

/* Once a factor is unknown, so is the product. */
static void times(int64_t *product, int64_t by) {
    if (*product < 0 || by < 0 || __builtin_mul_overflow(*product, by, product))
        *product = UNKNOWN;
}

static void times_elements(int64_t *product, shape s) {
    for (uint32_t i = 0; i < s.rank; i++)
        times(product, size_at(s, i));
}

static int64_t broadcast(int64_t size, int64_t other) { return size == 1 ? other : size; }

/* 2·n·k·m for a product of matrices, or of two batches of them: torch's mm_flop, bmm_flop. A grouped
 * product takes a matrix apart, by its rows or columns: each of them is in one group. */
static int64_t of_matrices(const formula *f, const given *g) {
    shape a = shape_of(g, f->at[0]), b = shape_of(g, f->at[1]);
    bool are_matrices = a.rank > 1 && a.rank < 4 && b.rank > 1 && b.rank < 4;
    if (!are_matrices || size_from_end(a, 1) != size_from_end(b, 2))
        return UNKNOWN;
    int64_t flops = 2;
    times(&flops, size_from_end(a, 2));
    times(&flops, size_from_end(a, 1));
    times(&flops, size_from_end(b, 1));
    times(&flops, a.rank == 3 && b.rank == 3 ? size_at(a, 0) : 1);
    return flops;
}

/* 2·k for each element of torch.matmul's result, whose batch dimensions broadcast. */
static int64_t of_product(const formula *f, const given *g) {
    shape a = shape_of(g, f->at[0]), b = shape_of(g, f->at[1]);
    if (a.rank == 0 || b.rank == 0)
        return UNKNOWN;
    int64_t flops = 2;
    times(&flops, size_from_end(a, 1));
    times(&flops, a.rank > 1 ? size_from_end(a, 2) : 1);
    times(&flops, b.rank > 1 ? size_from_end(b, 1) : 1);
    for (uint32_t place = 3; place <= a.rank || place <= b.rank; place++) {
        int64_t of_a = place <= a.rank ? size_from_end(a, place) : 1;
        int64_t of_b = place <= b.rank ? size_from_end(b, place) : 1;
        times(&flops, broadcast(of_a, of_b));
    }
    return flops;
}

/* 2·features for each element of the result: weight is (out, in), or (in). */
static int64_t of_linear(const formula *f, const given *g) {
    shape data = shape_of(g, f->at[0]), weight = shape_of(g, f->at[1]);
    if (data.rank == 0 || weight.rank == 0 || weight.rank > 2 ||
        size_from_end(data, 1) != size_from_end(weight, 1))
        return UNKNOWN;
    int64_t flops = 2;
    times_elements(&flops, data);
    times(&flops, weight.rank == 2 ? size_at(weight, 0) : 1);
    return flops;
}

/* oneDNN's overloads `binary` have another tensor before the weight, to which the product is added. */
static given without_other(const given *g, uint32_t binary_count) {
    given rest = *g;
    if (g->count == binary_count) {
        rest.count--;
        memmove(rest.at + 1, rest.at + 2, (rest.count - 1) * sizeof *rest.at);
    }
    return rest;
}

static int64_t of_pointwise_linear(const formula *f, const given *g) {
    given rest = without_other(g, 5);
    return of_linear(f, &rest);
}

/* One for each element of the first input. */
static int64_t of_elements(const formula *f, const given *g) {
    shape data = shape_of(g, f->at[0]);
    int64_t flops = data.token ? 1 : UNKNOWN;
    times_elements(&flops, data);
    return flops;
}

/* Each weight element meets each place of the output (of the input if transposed) once: torch's
 * conv_flop_count, for any rank, with or without a batch dimension. `first` is the position of the
 * image, to which all others are relative. */
static int64_t convolution(const formula *f, const given *g, int first) {
    shape image = shape_of(g, first), weight = shape_of(g, first + 1);
    uint32_t rank = weight.rank > 2 ? weight.rank - 2 : 0;
    numbers stride = numbers_of(g, first + f->at[STRIDE]),
            padding = numbers_of(g, first + f->at[PADDING]);
    numbers dilation = {NULL, 0};
    if (!rank || image.rank < rank + 1 || image.rank > rank + 2 || !stride.token || !padding.token)
        return UNKNOWN;
    if (f->at[DILATION] != NOWHERE && !(dilation = numbers_of(g, first + f->at[DILATION])).token)
        return UNKNOWN;
    if (f->at[GROUPS] != NOWHERE && number_at(numbers_of(g, first + f->at[GROUPS]), 0, 0) < 1)
        return UNKNOWN;
    int transposed = f->at[TRANSPOSED] >= 0 ? first + f->at[TRANSPOSED] : NOWHERE;
    bool is_transposed = f->at[TRANSPOSED] == ALWAYS;
    if (transposed >= 0 && (uint32_t)transposed < g->count)
        is_transposed = (*g->at[transposed] & 0xff) == OP_INPUT_BOOL && *g->at[transposed] >> 16;
    int64_t flops = 2;
    times(&flops, image.rank == rank + 2 ? size_at(image, 0) : 1);
    times_elements(&flops, weight);
    for (uint32_t i = 0; i < rank; i++) {
        int64_t size = size_from_end(image, rank - i), width = size_at(weight, 2 + i);
        int64_t step = number_at(stride, i, 1), around = number_at(padding, i, 0),
                apart = number_at(dilation, i, 1);
        if (!is_plain(size) || !is_plain(width) || !is_plain(around) || !is_plain(apart))
            return UNKNOWN;
        int64_t room = size + 2 * around - apart * (width - 1) - 1;
        if (!is_transposed && (step < 1 || room < 0))
            return UNKNOWN;
        times(&flops, is_transposed ? size : room / step + 1);
    }
    return flops;
}

static int64_t of_convolution(const formula *f, const given *g) { return convolution(f, g, 0); }

static int64_t of_pointwise_convolution(const formula *f, const given *g) {
    given rest = without_other(g, 13);
    return convolution(f, &rest, 0);
}

/* The first argument is what the product is added to. */
static int64_t of_convolution_in_place(const formula *f, const given *g) {
    return convolution(f, g, 1);
}

/* Gradients of the input and of the weight each cost as much as the forward: torch's
 * conv_backward_flop. The output's gradient is the first argument; the last says which gradients are
 * wanted. */
static int64_t of_convolution_backward(const formula *f, const given *g) {
    const int wanted = 10;
    int64_t flops = convolution(f, g, 1);
    if (g->count <= (uint32_t)wanted || (*g->at[wanted] & 0xff) != OP_INPUT_BOOL_LIST ||
        *g->at[wanted] >> 16 < 2)
        return UNKNOWN;
    times(&flops, (op_input_word(g->at[wanted], 0) != 0) + (op_input_word(g->at[wanted], 1) != 0));
    return flops;
}

/* Query, key and value are (batch, heads, length, width), or (batch, length, heads, width). Packed
 * sequences, of unknown lengths, have 3 dimensions, or a tensor that says where they begin. */
enum { FIRST, LENGTHS_FIRST, BEGINS };

static int64_t attention(const formula *f, const given *g, bool is_backward) {
    shape query = shape_of(g, f->at[FIRST]), key = shape_of(g, f->at[FIRST] + 1),
          value = shape_of(g, f->at[FIRST] + 2);
    bool is_packed = f->at[BEGINS] && shape_of(g, f->at[BEGINS]).token;
    if (query.rank != 4 || key.rank != 4 || value.rank != 4 || is_packed)
        return UNKNOWN;
    uint32_t length = f->at[LENGTHS_FIRST] ? 1 : 2;
    const uint32_t outer[] = {0, 3 - length}; /* the batch and the heads */
    int64_t scores = is_backward ? 6 : 2, values = is_backward ? 4 : 2;
    for (uint32_t i = 0; i < 2; i++) { /* they broadcast, or a head of the key has several queries */
        int64_t both = broadcast(size_at(query, outer[i]), size_at(key, outer[i]));
        times(&scores, both);
        times(&values, broadcast(both, size_at(value, outer[i])));
    }
    int64_t pairs = size_at(query, length);
    times(&pairs, size_at(key, length));
    times(&scores, pairs);
    times(&scores, size_at(query, 3));
    times(&values, pairs);
    times(&values, size_at(value, 3));
    if (scores < 0 || values < 0 || __builtin_add_overflow(scores, values, &scores))
        return UNKNOWN;
    return scores;
}

/* Scores, and their product with the values: torch's sdpa_flop_count. */
static int64_t of_attention(const formula *f, const given *g) { return attention(f, g, false); }

/* The scores again, and a product for each gradient: torch's sdpa_backward_flop_count. */
static int64_t of_attention_backward(const formula *f, const given *g) { return attention(f, g, true); }

/* Each row of the input meets each weight once. They are a list with the biases, of all layers and
 * directions; or, of one of them, the next two arguments. */
static int64_t of_recurrence(const formula *f, const given *g) {
    shape data = shape_of(g, f->at[0]);
    if (data.rank == 0 || g->count < 3)
        return UNKNOWN;
    op_inputs weights = {g->at[1], g->end};
    const uint32_t *token = g->at[1];
    uint32_t left = 2;
    if ((*token & 0xff) == OP_INPUT_TENSOR_LIST && op_inputs_next(&weights, &token))
        left = *token >> 16;
    int64_t flops = 0;
    for (; left && op_inputs_next(&weights, &token); left--) {
        int64_t each = 2;
        if (!op_input_is_tensor(*token) || *token >> 16 != 2) /* a bias */
            continue;
        times_elements(&each, (shape){token, 2});
        if (each < 0 || __builtin_add_overflow(flops, each, &flops))
            return UNKNOWN;
    }
    for (uint32_t i = 1; i < data.rank; i++)
        times(&flops, size_at(data, i - 1));
    return flops;
}

/* Gradients of the input and of the weights. */
static int64_t of_recurrence_backward(const formula *f, const given *g) {
    int64_t flops = of_recurrence(f, g);
    times(&flops, 2);
    return flops;
}

#define CONVOLUTION(...)                                                                               \
    of_convolution, { __VA_ARGS__ }

static const formula formulas[] = {
    {{"aten::mm", "aten::bmm", "aten::_int_mm", "aten::_scaled_mm", "aten::_scaled_mm_v2",
      "aten::_grouped_mm", "aten::_scaled_grouped_mm", "aten::_scaled_grouped_mm_v2"},
     of_matrices,
     {0, 1}},
    {{"aten::addmm", "aten::addmm_", "aten::baddbmm", "aten::baddbmm_", "aten::addbmm", "aten::addbmm_",
      "aten::_addmm_activation"},
     of_matrices,
     {1, 2}},
    {{"aten::mul", "aten::add"}, of_elements, {0}},
    {{"aten::matmul", "aten::mv", "aten::dot", "aten::vdot"}, of_product, {0, 1}},
    {{"aten::addmv", "aten::addmv_"}, of_product, {1, 2}},
    {{"aten::linear"}, of_linear, {0, 1}},
    {{"aten::mkldnn_linear"}, of_linear, {0, 1}},
    {{"mkldnn::_linear_pointwise"}, of_pointwise_linear, {0, 1}},
    {{"aten::mkldnn_rnn_layer"}, of_recurrence, {0}},
    {{"aten::_cudnn_rnn", "aten::miopen_rnn"}, of_recurrence, {0}},
    {{"aten::mkldnn_rnn_layer_backward"}, of_recurrence_backward, {0}},
    {{"aten::_cudnn_rnn_backward", "aten::miopen_rnn_backward"}, of_recurrence_backward, {0}},
    {{"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::cudnn_convolution_relu",
      "aten::miopen_convolution_relu"},
     CONVOLUTION(3, 4, 5, 6, NOWHERE)},
    {{"aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d"},
     CONVOLUTION(3, 4, 7, 6, ALWAYS)},
    {{"aten::convolution", "aten::_convolution", "aten::convolution_overrideable"},
     CONVOLUTION(3, 4, 5, 8, 6)},
    {{"aten::mkldnn_convolution"}, CONVOLUTION(4, 3, 5, 6, NOWHERE)},
    {{"mkldnn::_convolution_pointwise"}, of_pointwise_convolution, {4, 3, 5, 6, NOWHERE}},
    {{"mkldnn::_convolution_pointwise_"}, of_convolution_in_place, {4, 3, 5, 6, NOWHERE}},
    {{"mkldnn::_convolution_transpose_pointwise"}, CONVOLUTION(5, 3, 6, 7, ALWAYS)},
    {{"aten::cudnn_convolution"}, CONVOLUTION(3, 2, 4, 5, NOWHERE)},
    {{"aten::cudnn_convolution_transpose"}, CONVOLUTION(4, 2, 5, 6, ALWAYS)},
    {{"aten::cudnn_convolution_add_relu", "aten::miopen_convolution_add_relu"},
     CONVOLUTION(5, 6, 7, 8, NOWHERE)},
    {{"aten::miopen_convolution"}, CONVOLUTION(4, 3, 5, 6, NOWHERE)},
    {{"aten::thnn_conv2d", "aten::_slow_conv2d_forward", "aten::slow_conv3d",
      "aten::slow_conv3d_forward"},
     CONVOLUTION(4, 5, NOWHERE, NOWHERE, NOWHERE)},
    {{"aten::convolution_backward"}, of_convolution_backward, {3, 4, 5, 8, 6}},
    {{"aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math",
      "aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_flash_attention_for_cpu",
      "aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention",
      "aten::_scaled_dot_product_fused_attention_overrideable"},
     of_attention,
     {0}},
    {{"aten::_scaled_dot_product_flash_attention_backward",
      "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
      "aten::_scaled_dot_product_efficient_attention_backward",
      "aten::_scaled_dot_product_cudnn_attention_backward",
      "aten::_scaled_dot_product_fused_attention_overrideable_backward"},
     of_attention_backward,
     {1}},
    {{"aten::_flash_attention_forward"}, of_attention, {0, 1}},
    {{"aten::_efficient_attention_forward"}, of_attention, {0, 1, 4}},
    {{"aten::_flash_attention_backward"}, of_attention_backward, {1, 1}},
    {{"aten::_efficient_attention_backward"}, of_attention_backward, {1, 1, 6}},
};

uint8_t op_flop_formula(const char *name) {
    for (uint8_t i = 0; i < sizeof formulas / sizeof *formulas; i++) {
        const formula *f = &formulas[i];
        for (uint32_t k = 0; k < MOST_NAMES && f->names[k]; k++)
            if (strcmp(f->names[k], name) == 0)
                return i + 1;
    }
    return 0;
}

/* The sizes of a sparse tensor do not say what is in it. oneDNN's tensors, which only its own ops and
 * `add` and `mul` take as they are, have no strides either, but are dense. */
static bool is_sparse(const formula *f, const given *g) {
    for (uint32_t i = 0; i < g->count && f->count != of_elements; i++)
        if ((*g->at[i] & 0xff) == OP_INPUT_TENSOR_UNSTRIDED)
            return strstr(f->names[0], "mkldnn") == NULL;
    return false;
}

int64_t op_flops_of(uint8_t number, op_inputs inputs) {
    given g;
    if (number == 0 || number > sizeof formulas / sizeof *formulas)
        return UNKNOWN;
    read_inputs(inputs, &g);
    const formula *f = &formulas[number - 1];
    int64_t flops = is_sparse(f, &g) ? UNKNOWN : f->count(f, &g);
    return flops > OP_FLOPS_MOST ? UNKNOWN : flops;
}
