#include "result/inputs.h"

#include "core/event.h"
#include "core/fields.h"
#include "core/names.h"
#include "result/result.h"

#include <string.h>

#define TAG(word) ((word) & 0xff)
#define DTYPE(word) ((word) >> 8 & 0xff)
#define LENGTH(word) ((word) >> 16)

/* Kineto's names (caffe2::TypeMeta), by c10::ScalarType. */
static const char *const dtypes[] = {"unsigned char",
                                     "signed char",
                                     "short int",
                                     "int",
                                     "long int",
                                     "c10::Half",
                                     "float",
                                     "double",
                                     "c10::complex<c10::Half>",
                                     "c10::complex<float>",
                                     "c10::complex<double>",
                                     "bool",
                                     "c10::qint8",
                                     "c10::quint8",
                                     "c10::qint32",
                                     "c10::BFloat16",
                                     "c10::quint4x2",
                                     "c10::quint2x4",
                                     "c10::bits1x8",
                                     "c10::bits2x4",
                                     "c10::bits4x2",
                                     "c10::bits8",
                                     "c10::bits16",
                                     "c10::Float8_e5m2",
                                     "c10::Float8_e4m3fn",
                                     "c10::Float8_e5m2fnuz",
                                     "c10::Float8_e4m3fnuz",
                                     "short unsigned int",
                                     "unsigned int",
                                     "long unsigned int",
                                     "c10::dummy_uint1_7_t<1>",
                                     "c10::dummy_uint1_7_t<2>",
                                     "c10::dummy_uint1_7_t<3>",
                                     "c10::dummy_uint1_7_t<4>",
                                     "c10::dummy_uint1_7_t<5>",
                                     "c10::dummy_uint1_7_t<6>",
                                     "c10::dummy_uint1_7_t<7>",
                                     "c10::dummy_int1_7_t<1>",
                                     "c10::dummy_int1_7_t<2>",
                                     "c10::dummy_int1_7_t<3>",
                                     "c10::dummy_int1_7_t<4>",
                                     "c10::dummy_int1_7_t<5>",
                                     "c10::dummy_int1_7_t<6>",
                                     "c10::dummy_int1_7_t<7>",
                                     "c10::Float8_e8m0fnu",
                                     "c10::Float4_e2m1fn_x2"};

const char *op_dtype_name(uint32_t dtype) {
    return dtype < sizeof dtypes / sizeof *dtypes ? dtypes[dtype] : "";
}

static bool inputs_of_op(const uint32_t *block, const uint32_t *limit, op_inputs *out) {
    uint32_t words = *block >> 8;
    if ((*block & 0xff) != OP_ARGS_TORCH || words < 2 || words > (size_t)(limit - block) - 1)
        return false;
    out->at = block + 3;
    out->end = block + 1 + words;
    if (words >= 2 + OP_WORK_WORDS && TAG(*out->at) == OP_INPUT_WORK)
        out->at += OP_WORK_WORDS;
    if (out->end - out->at >= (ptrdiff_t)OP_FLOPS_WORDS && TAG(*out->at) == OP_INPUT_FLOPS)
        out->at += OP_FLOPS_WORDS;
    if (out->end - out->at >= 2 && TAG(*out->at) == OP_INPUT_OVERLOAD)
        out->at += 2;
    if (out->at < out->end && TAG(*out->at) == OP_INPUT_KEYWORDS &&
        LENGTH(*out->at) < out->end - out->at)
        out->at += 1 + LENGTH(*out->at);
    return true;
}

bool op_inputs_of(const uint32_t *block, const uint32_t *limit, op_inputs *out) {
    static const uint32_t text = OP_INPUT_OTHER; /* has neither shape nor value, as with Kineto */
    if ((*block & 0xff) != OP_ARGS_INPUT)
        return inputs_of_op(block, limit, out);
    *out = (op_inputs){&text, &text + 1};
    return true;
}

const uint32_t *op_inputs_work(const uint32_t *block, const uint32_t *limit) {
    op_inputs inputs;
    bool has = inputs_of_op(block, limit, &inputs) && inputs.at >= block + 3 + OP_WORK_WORDS &&
               TAG(block[3]) == OP_INPUT_WORK;
    return has ? block + 3 : NULL;
}

/* After the work, if there is any. Both callers have checked the tokens before the inputs. */
static const uint32_t *flops_token(const uint32_t *block, const uint32_t *limit) {
    const uint32_t *work = op_inputs_work(block, limit);
    return work ? work + OP_WORK_WORDS : block + 3;
}

int64_t op_inputs_flops(const uint32_t *block, const uint32_t *limit) {
    op_inputs inputs;
    const uint32_t *token = flops_token(block, limit);
    if (!inputs_of_op(block, limit, &inputs) || inputs.at < token + OP_FLOPS_WORDS ||
        TAG(*token) != OP_INPUT_FLOPS)
        return 0;
    return op_input_word(token, 0);
}

static const uint32_t *named_parts(const uint32_t *block, const uint32_t *limit) {
    const uint32_t *token = flops_token(block, limit);
    return op_inputs_flops(block, limit) ? token + OP_FLOPS_WORDS : token;
}

const uint32_t *op_inputs_overload(const uint32_t *block, const uint32_t *limit) {
    op_inputs inputs;
    if (!inputs_of_op(block, limit, &inputs))
        return NULL;
    const uint32_t *at = named_parts(block, limit);
    return inputs.at > at && TAG(*at) == OP_INPUT_OVERLOAD ? at + 1 : NULL;
}

const uint32_t *op_inputs_keywords(const uint32_t *block, const uint32_t *limit) {
    op_inputs inputs;
    if (!inputs_of_op(block, limit, &inputs))
        return NULL;
    const uint32_t *at = named_parts(block, limit);
    at += op_inputs_overload(block, limit) ? 2 : 0;
    bool has = inputs.at > at + 1 && *(at + 1) >> 8 < LENGTH(*at);
    return has ? at + 1 : NULL;
}

void op_inputs_rename(uint32_t *block, const uint32_t *limit, const uint32_t *names, uint32_t count) {
    const uint32_t *overload = op_inputs_overload(block, limit);
    if (overload)
        block[overload - block] = *overload < count ? names[*overload] : 0;
    const uint32_t *keywords = op_inputs_keywords(block, limit);
    if (keywords)
        op_fields_rename(block + (keywords - block), limit, names, count);
}

uint32_t op_result_overload(const op_result *r, uint64_t row) {
    if (row >= r->columns.count || r->columns.args[row] == 0)
        return OP_NAME_NONE;
    const uint32_t *id = op_inputs_overload(r->args + r->columns.args[row] - 1, r->args + r->arg_words);
    return id ? *id : OP_NAME_NONE;
}

static uint32_t payload_words(uint32_t token) {
    uint32_t n = LENGTH(token);
    switch (TAG(token)) {
    case OP_INPUT_TENSOR:
        return 2 * n;
    case OP_INPUT_TENSOR_WIDE:
        return 4 * n;
    case OP_INPUT_INT:
    case OP_INPUT_DOUBLE:
        return 2;
    case OP_INPUT_TENSOR_UNSTRIDED:
    case OP_INPUT_INT_LIST:
    case OP_INPUT_DOUBLE_LIST:
        return 2 * n;
    case OP_INPUT_BOOL_LIST:
    case OP_INPUT_IDENTITY:
        return n;
    case OP_INPUT_TEXT:
        return (n + 3) / 4;
    default:
        return 0;
    }
}

/* The members of a tensor list follow as separate tokens. A tensor's identity is not part of an input's
 * value, so it is skipped. */
bool op_inputs_next(op_inputs *inputs, const uint32_t **token) {
    do {
        if (inputs->at >= inputs->end || TAG(*inputs->at) == OP_INPUT_CUT)
            return false;
        uint32_t words = 1 + payload_words(*inputs->at);
        if (words > (size_t)(inputs->end - inputs->at))
            return false;
        *token = inputs->at;
        inputs->at += words;
    } while (TAG(**token) == OP_INPUT_IDENTITY);
    return true;
}

int64_t op_input_word(const uint32_t *token, uint32_t index) {
    if (TAG(*token) == OP_INPUT_TENSOR || TAG(*token) == OP_INPUT_BOOL_LIST)
        return token[1 + index];
    int64_t value;
    memcpy(&value, token + 1 + (size_t)index * 2, sizeof value);
    return value;
}

/* Shape information of a token: that it is a tensor, and its sizes, or that it is not one. */
bool op_input_is_tensor(uint32_t token) {
    return TAG(token) == OP_INPUT_TENSOR || TAG(token) == OP_INPUT_TENSOR_WIDE ||
           TAG(token) == OP_INPUT_TENSOR_UNSTRIDED;
}

static uint32_t shape_class(uint32_t token) {
    if (op_input_is_tensor(token))
        return 1u << 16 | LENGTH(token);
    if (TAG(token) == OP_INPUT_TENSOR_LIST)
        return 2u << 16 | LENGTH(token);
    return 0;
}

uint64_t op_inputs_shape_hash(op_inputs inputs) {
    uint64_t h = 0x9e3779b97f4a7c15u;
    const uint32_t *token;
    while (op_inputs_next(&inputs, &token)) {
        h = (h ^ shape_class(*token)) * 0xff51afd7ed558ccdu;
        for (uint32_t i = 0; op_input_is_tensor(*token) && i < LENGTH(*token); i++)
            h = (h ^ h >> 29 ^ (uint64_t)op_input_word(token, i)) * 0xc4ceb9fe1a85ec53u;
    }
    return h ^ h >> 32;
}

/* Everything known about the inputs. */
static uint32_t token_words(const uint32_t *token) { return 1 + payload_words(*token); }

uint64_t op_inputs_hash(op_inputs inputs) {
    uint64_t h = 0x9e3779b97f4a7c15u;
    const uint32_t *token;
    while (op_inputs_next(&inputs, &token))
        for (uint32_t i = 0; i < token_words(token); i++)
            h = (h ^ h >> 29 ^ token[i]) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 32;
}

bool op_inputs_same(op_inputs a, op_inputs b) {
    const uint32_t *x = NULL, *y = NULL;
    for (;;) {
        bool more_a = op_inputs_next(&a, &x), more_b = op_inputs_next(&b, &y);
        if (!more_a || !more_b)
            return more_a == more_b;
        if (*x != *y || memcmp(x, y, token_words(x) * sizeof *x) != 0)
            return false;
    }
}

bool op_inputs_same_shapes(op_inputs a, op_inputs b) {
    const uint32_t *x = NULL, *y = NULL;
    for (;;) {
        bool more_a = op_inputs_next(&a, &x), more_b = op_inputs_next(&b, &y);
        if (!more_a || !more_b)
            return more_a == more_b;
        if (shape_class(*x) != shape_class(*y))
            return false;
        for (uint32_t i = 0; op_input_is_tensor(*x) && i < LENGTH(*x); i++)
            if (op_input_word(x, i) != op_input_word(y, i))
                return false;
    }
}
