/* Texts of one imported trace, each kept once: keys, repeated values, processes and threads. */
#ifndef OP_TEXTS_H
#define OP_TEXTS_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that grow. */
typedef struct op_buffer {
    char *bytes;
    size_t used, capacity;
} op_buffer;

char *op_buffer_extend(op_buffer *b, size_t bytes); /* where to write them; NULL: no memory */
int op_buffer_add(op_buffer *b, const void *bytes, size_t count); /* 0, or -1: no memory */
void op_buffer_free(op_buffer *b);

typedef struct op_text_entry {
    uint64_t at; /* in `arena` */
    uint32_t length, hash;
} op_text_entry;

typedef struct op_texts {
    op_text_entry *entries; /* by id, from 1 */
    uint32_t count, capacity;
    uint32_t *slots; /* id; 0: empty */
    uint32_t mask;
    op_buffer arena;
} op_texts;

/* Id of a text with one byte before it, which keeps kinds of texts apart; 0: no memory. */
uint32_t op_texts_intern(op_texts *t, char mark, const char *text, size_t length);
const char *op_texts_text(const op_texts *t, uint32_t id, size_t *length); /* without the mark */
char op_texts_mark(const op_texts *t, uint32_t id);
void op_texts_free(op_texts *t);

#endif
