#include "export/trace_args.h"

#include "core/fields.h"
#include "core/names.h"
#include "core/real_text.h"
#include "export/trace_writer.h"
#include "result/inputs.h"

#include <stdio.h>

enum input_part { DIMS, STRIDES, TYPES, VALUES };

/* As torch prints a double (aten/src/ATen/core/ivalue.cpp), except for the sign of zero, which torch
 * loses: an integral value ends in a point. */
static void put_double(op_json *w, int64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    bool is_whole = value > -0x1p63 && value < 0x1p63 && (double)(int64_t)value == value;
    char text[OP_REAL_BYTES];
    if (is_whole)
        snprintf(text, sizeof text, "%.0f.", value);
    else
        op_real_text(text, 17, value);
    op_json_text(w, text);
}

static void put_element(op_json *w, const uint32_t *token, uint32_t index) {
    int64_t value = op_input_word(token, index);
    switch (*token & 0xff) {
    case OP_INPUT_DOUBLE:
    case OP_INPUT_DOUBLE_LIST:
        put_double(w, value);
        break;
    case OP_INPUT_BOOL_LIST:
        op_json_text(w, value ? "True" : "False");
        break;
    default:
        op_json_signed(w, value);
    }
}

static void put_value(op_json *w, const uint32_t *token) {
    uint32_t n = *token >> 16;
    switch (*token & 0xff) {
    case OP_INPUT_INT:
    case OP_INPUT_DOUBLE:
        put_element(w, token, 0);
        break;
    case OP_INPUT_BOOL:
        op_json_text(w, n ? "True" : "False");
        break;
    case OP_INPUT_TEXT:
        op_json_escaped(w, (const char *)(token + 1), n);
        break;
    case OP_INPUT_INT_LIST:
    case OP_INPUT_DOUBLE_LIST:
    case OP_INPUT_BOOL_LIST:
        PUT(w, "[");
        for (uint32_t i = 0; i < n; i++) {
            if (i)
                PUT(w, ", ");
            put_element(w, token, i);
        }
        PUT(w, "]");
        break;
    default:
        break;
    }
}

static const char *type_name(uint32_t token) {
    switch (token & 0xff) {
    case OP_INPUT_TENSOR:
    case OP_INPUT_TENSOR_WIDE:
    case OP_INPUT_TENSOR_UNSTRIDED:
        return op_dtype_name(token >> 8 & 0xff);
    case OP_INPUT_TENSOR_LIST:
        return "TensorList";
    case OP_INPUT_INT:
    case OP_INPUT_DOUBLE:
    case OP_INPUT_BOOL:
        return "Scalar";
    case OP_INPUT_INT_LIST:
    case OP_INPUT_DOUBLE_LIST:
    case OP_INPUT_BOOL_LIST:
        return "ScalarList";
    default:
        return "";
    }
}

static void put_sizes(op_json *w, const uint32_t *token, enum input_part part) {
    uint32_t tag = *token & 0xff, n = *token >> 16;
    bool known = tag == OP_INPUT_TENSOR || tag == OP_INPUT_TENSOR_WIDE ||
                 (tag == OP_INPUT_TENSOR_UNSTRIDED && part == DIMS);
    PUT(w, "[");
    for (uint32_t i = 0; known && i < n; i++) {
        if (i)
            PUT(w, ",");
        op_json_signed(w, op_input_word(token, part == STRIDES ? n + i : i));
    }
    PUT(w, "]");
}

static void put_part(op_json *w, const uint32_t *token, enum input_part part) {
    if (part == DIMS || part == STRIDES) {
        put_sizes(w, token, part);
        return;
    }
    PUT(w, "\"");
    if (part == TYPES)
        op_json_text(w, type_name(*token));
    else
        put_value(w, token);
    PUT(w, "\"");
}

static void put_inputs_part(op_json *w, op_inputs inputs, enum input_part part) {
    const uint32_t *token;
    PUT(w, "[");
    for (bool first = true; op_inputs_next(&inputs, &token); first = false) {
        if (!first)
            PUT(w, ",");
        uint32_t members = (*token & 0xff) == OP_INPUT_TENSOR_LIST ? *token >> 16 : 0;
        bool nested = (*token & 0xff) == OP_INPUT_TENSOR_LIST && part <= STRIDES;
        if (nested)
            PUT(w, "[");
        else
            put_part(w, token, part);
        for (uint32_t i = 0; i < members && op_inputs_next(&inputs, &token); i++) {
            if (nested && i)
                PUT(w, ",");
            if (nested)
                put_part(w, token, part);
        }
        if (nested)
            PUT(w, "]");
    }
    PUT(w, "]");
}

static void put_inputs(op_json *w, op_inputs inputs) {
    if (inputs.at == inputs.end)
        return;
    PUT(w, "\"Concrete Inputs\":");
    put_inputs_part(w, inputs, VALUES);
    PUT(w, ",\"Input type\":");
    put_inputs_part(w, inputs, TYPES);
    PUT(w, ",\"Input Strides\":");
    put_inputs_part(w, inputs, STRIDES);
    PUT(w, ",\"Input Dims\":");
    put_inputs_part(w, inputs, DIMS);
    PUT(w, ",");
}

/* ---- named values -------------------------------------------------------------------------- */

/* JSON has no infinity or NaN; they become strings. */
static void put_number(op_json *w, int64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    char text[OP_REAL_BYTES];
    const char *quote = value - value == 0 ? "" : "\"";
    op_json_text(w, quote);
    op_json_text(w, op_real_text(text, 17, value));
    op_json_text(w, quote);
}

static void put_field_value(op_trace *t, const op_field *field, uint32_t at) {
    int64_t number;
    switch (field->type) {
    case OP_FIELD_SIGNED:
    case OP_FIELD_UNSIGNED:
    case OP_FIELD_DOUBLE:
        memcpy(&number, field->values + (size_t)at * 2, sizeof number);
        if (field->type == OP_FIELD_DOUBLE)
            put_number(&t->out, number);
        else if (field->type == OP_FIELD_SIGNED)
            op_json_signed(&t->out, number);
        else
            op_json_unsigned(&t->out, (uint64_t)number);
        break;
    case OP_FIELD_BOOL:
        op_json_text(&t->out, field->values[0] ? "true" : "false");
        break;
    case OP_FIELD_COLOR: {
        char text[16];
        snprintf(text, sizeof text, "\"#%08x\"", field->values[0]);
        op_json_text(&t->out, text);
        break;
    }
    case OP_FIELD_JSON:
        op_json_bytes(&t->out, (const char *)field->values, field->count);
        break;
    default:
        PUT(&t->out, "\"");
        if (field->type == OP_FIELD_NAME)
            op_trace_name(t, field->values[0]);
        else
            op_json_escaped(&t->out, (const char *)field->values, field->count);
        PUT(&t->out, "\"");
    }
}

static void put_fields(op_trace *t, const uint32_t *block, const uint32_t *limit) {
    const uint32_t *at = NULL;
    op_field field;
    while (op_fields_next(block, limit, &at, &field)) {
        bool is_number = field.type >= OP_FIELD_SIGNED && field.type <= OP_FIELD_DOUBLE;
        bool is_list = is_number && field.count != 1;
        PUT(&t->out, "\"");
        op_trace_name(t, field.key);
        op_json_text(&t->out, is_list ? "\":[" : "\":");
        for (uint32_t i = 0; i < (is_number ? field.count : 1); i++) {
            if (i)
                PUT(&t->out, ",");
            put_field_value(t, &field, i);
        }
        op_json_text(&t->out, is_list ? "]," : ",");
    }
}

void op_trace_put_args(op_trace *t, uint64_t row) {
    const op_result *r = t->r;
    if (!r->columns.args[row])
        return;
    const uint32_t *block = r->args + r->columns.args[row] - 1, *limit = r->args + r->arg_words;
    op_inputs inputs;
    bool has_inputs = op_inputs_of(block, limit, &inputs);
    if (has_inputs)
        put_inputs(&t->out, inputs);
    bool is_text = (*block & 0xff) == OP_ARGS_TEXT || (*block & 0xff) == OP_ARGS_INPUT;
    if (has_inputs && !is_text) {
        const uint32_t *keywords = op_inputs_keywords(block, limit);
        if (keywords)
            put_fields(t, keywords, limit);
    } else if (is_text && block + 1 < limit &&
               block[1] <= (size_t)(limit - block - 2) * sizeof(uint32_t)) {
        PUT(&t->out, "\"args\":\"");
        op_json_escaped(&t->out, (const char *)(block + 2), block[1]);
        PUT(&t->out, "\",");
    } else {
        put_fields(t, block, limit);
    }
}

/* Keyed by the counters' names, as in Kineto's traces. */
void op_trace_put_counters(op_trace *t, uint64_t row) {
    const op_result *r = t->r;
    uint32_t at = op_result_counters(r, row);
    if (at)
        put_fields(t, r->args + at - 1, r->args + r->arg_words);
}

/* Up to the interpreter: its callers are the Python that the trace shows anyway. */
void op_trace_put_stack(op_trace *t, uint64_t row) {
    static const char interpreter[] = "_PyEval_EvalFrameDefault";
    int32_t frame = (int32_t)op_result_cpp_stack(t->r, row) - 1;
    if (frame < 0)
        return;
    PUT(&t->out, "\"C++ stack\":\"");
    for (bool first = true; frame >= 0; first = false) {
        const op_cpp_frame *f = &t->frames[frame];
        uint32_t length = 0;
        const char *name = f->symbol ? op_names_text(f->symbol, &length) : "";
        if (strncmp(name, interpreter, sizeof interpreter - 1) == 0)
            break;
        if (!first)
            PUT(&t->out, ";");
        if (f->symbol)
            op_trace_name(t, f->symbol);
        else
            PUT(&t->out, "??");
        frame = f->caller;
    }
    PUT(&t->out, "\",");
}

static void put_count(op_json *w, const char *key, int64_t value) {
    op_json_text(w, key);
    op_json_signed(w, value);
    PUT(w, ",");
}

void op_trace_put_memory(op_trace *t, uint64_t row) {
    op_memory m;
    if (!op_result_memory(t->r, row, &m))
        return;
    if (m.total_reserved >= 0)
        put_count(&t->out, "\"Total Reserved\":", m.total_reserved);
    if (m.total_allocated >= 0)
        put_count(&t->out, "\"Total Allocated\":", m.total_allocated);
    put_count(&t->out, "\"Bytes\":", m.bytes);
    put_count(&t->out, "\"Device Id\":", m.device_index);
    put_count(&t->out, "\"Device Type\":", m.device_type);
    PUT(&t->out, "\"Addr\":");
    op_json_unsigned(&t->out, m.address);
    PUT(&t->out, ",");
}
