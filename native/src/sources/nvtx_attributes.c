#include "sources/nvtx_attributes.h"

#include "core/fault.h"
#include "core/name_text.h"
#include "core/names.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static struct {
    uint32_t domain, category, color, payload;
} keys;

void op_nvtx_attributes_setup(void) {
    keys.domain = op_nvtx_text("domain");
    keys.category = op_nvtx_text("category");
    keys.color = op_nvtx_text("color");
    keys.payload = op_nvtx_text("payload");
}

/* ---- names ------------------------------------------------------------------------------ */

uint32_t op_nvtx_text(const char *text) {
    return text ? op_names_intern(text, strlen(text)) : OP_NAME_NONE;
}

static size_t put_utf8(char *out, uint32_t c) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00 >> n & 0xff) | c);
    return n;
}

uint32_t op_nvtx_wide(const wchar_t *text) {
    if (!text || !*text)
        return op_names_intern("", 0);
    char here[OP_NAME_MAX_BYTES];
    size_t n = 0, most = 4 * wcslen(text);
    char *utf8 = most <= sizeof here ? here : op_malloc(most);
    if (!utf8)
        return OP_NAME_OVERFLOW;
    do {
        uint32_t c = (uint32_t)*text;
        n += put_utf8(utf8 + n, c <= 0x10ffff ? c : 0xfffd);
    } while (*++text);
    uint32_t name = op_names_intern(utf8, n);
    if (utf8 != here)
        free(utf8);
    return name;
}

uint32_t op_nvtx_message(const nvtx_attributes *a) {
    if (a->size < sizeof *a)
        return OP_NAME_NONE;
    switch (a->message_type) {
    case NVTX_ASCII:
        return op_nvtx_text(a->message.ascii);
    case NVTX_UNICODE:
        return op_nvtx_wide(a->message.unicode);
    case NVTX_REGISTERED:
        return a->message.registered ? (uint32_t)(a->message.registered - 1) : OP_NAME_NONE;
    default:
        return OP_NAME_NONE;
    }
}

/* ---- attributes of a range -------------------------------------------------------------------- */

static void put_category(op_fields *f, const op_nvtx_domain *d, uint32_t number) {
    const op_nvtx_category *c = op_nvtx_category_of(d, number);
    const uint64_t value = number;
    if (c)
        op_fields_put_word(f, keys.category, OP_FIELD_NAME, c->name);
    else
        op_fields_put_numbers(f, keys.category, OP_FIELD_UNSIGNED, &value, 1);
}

static void put_payload(op_fields *f, const nvtx_attributes *a) {
    uint32_t type = OP_FIELD_UNSIGNED;
    uint64_t bits = a->payload.u64;
    double real = a->payload.real;
    switch (a->payload_type) {
    case NVTX_U64:
        break;
    case NVTX_I64:
        type = OP_FIELD_SIGNED;
        break;
    case NVTX_U32:
        bits = a->payload.u32;
        break;
    case NVTX_I32:
        type = OP_FIELD_SIGNED;
        bits = (uint64_t)(int64_t)a->payload.i32;
        break;
    case NVTX_FLOAT:
        real = (double)a->payload.single;
        __attribute__((fallthrough));
    case NVTX_DOUBLE:
        type = OP_FIELD_DOUBLE;
        memcpy(&bits, &real, sizeof bits);
        break;
    default:
        return;
    }
    op_fields_put_numbers(f, keys.payload, type, &bits, 1);
}

/* `size` shows whether the caller has an older, shorter structure. */
uint32_t op_nvtx_describe(op_fields *f, const op_nvtx_domain *d, const nvtx_attributes *a) {
    op_fields_clear(f);
    if (d->name)
        op_fields_put_word(f, keys.domain, OP_FIELD_NAME, d->name);
    if (a && a->size >= offsetof(nvtx_attributes, message_type)) {
        if (a->category)
            put_category(f, d, a->category);
        if (a->color_type == NVTX_COLOR_ARGB)
            op_fields_put_word(f, keys.color, OP_FIELD_COLOR, a->color);
        put_payload(f, a);
    }
    return op_fields_close(f);
}
