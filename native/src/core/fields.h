/* Argument blocks of named values (OP_ARGS_FIELDS) of other libraries' ranges: domain, colour,
 * payload. */
#ifndef OP_FIELDS_H
#define OP_FIELDS_H

#include "core/event.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OP_FIELDS_MAX_WORDS 256u

enum op_field_type {
    OP_FIELD_NAME = 1,  /* a name's id */
    OP_FIELD_COLOR = 2, /* 0xAARRGGBB */
    OP_FIELD_BOOL = 3,
    OP_FIELD_SIGNED = 4, /* `count` int64_t values */
    OP_FIELD_UNSIGNED = 5,
    OP_FIELD_DOUBLE = 6,
    OP_FIELD_TEXT = 7, /* `count` bytes */
    OP_FIELD_JSON = 8  /* `count` bytes that are already JSON */
};

/* A block being written. Values that no longer fit are left out. */
typedef struct op_fields {
    uint32_t count; /* words, including the header */
    uint32_t words[OP_FIELDS_MAX_WORDS];
} op_fields;

typedef struct op_field {
    uint32_t key; /* a name's id */
    uint32_t type, count;
    const uint32_t *values;
} op_field;

void op_fields_clear(op_fields *f);
bool op_fields_put_word(op_fields *f, uint32_t key, uint32_t type, uint32_t value);
bool op_fields_put_numbers(op_fields *f, uint32_t key, uint32_t type, const uint64_t *values,
                           uint32_t count);
bool op_fields_put_text(op_fields *f, uint32_t key, uint32_t type, const char *text, size_t bytes);
/* The block's length in words, for op_begin(); 0 if it is empty. */
uint32_t op_fields_close(op_fields *f);
/* Continues an existing block; false if it is not one. */
bool op_fields_reopen(op_fields *f, const uint32_t *block);

/* Reads the next field; `at` is NULL before the first. False: past the last, or not such a block. */
bool op_fields_next(const uint32_t *block, const uint32_t *limit, const uint32_t **at, op_field *out);
/* Maps the names of a block read from a file to the ids they have here. */
void op_fields_rename(uint32_t *block, const uint32_t *limit, const uint32_t *names, uint32_t count);

#ifdef __cplusplus
}
#endif
#endif
