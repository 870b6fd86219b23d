/* Texts of an imported trace, each stored once: keys, repeated values, processes and threads. */
#ifndef OP_STRING_TABLE_H
#define OP_STRING_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* A growing array of bytes. */
typedef struct op_buffer {
    char *bytes;
    size_t used, capacity;
} op_buffer;

char *op_buffer_extend(op_buffer *b, size_t bytes); /* where to write `bytes`; NULL: no memory */
int op_buffer_add(op_buffer *b, const void *bytes, size_t count); /* 0, or -1: no memory */
void op_buffer_free(op_buffer *b);

typedef struct op_string_entry {
    uint64_t at; /* in `arena` */
    uint32_t length, hash;
} op_string_entry;

typedef struct op_string_table {
    op_string_entry *entries; /* by id, from 1 */
    uint32_t count, capacity;
    uint32_t *slots; /* id; 0: empty */
    uint32_t mask;
    op_buffer arena;
} op_string_table;

/* Id of a text and its mark, a byte that separates kinds of texts; 0: no memory. */
uint32_t op_string_table_intern(op_string_table *t, char mark, const char *text, size_t length);
const char *op_string_table_text(const op_string_table *t, uint32_t id,
                                 size_t *length); /* without the mark */
char op_string_table_mark(const op_string_table *t, uint32_t id);
void op_string_table_free(op_string_table *t);

#endif
