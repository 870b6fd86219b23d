/* Interned names, one table of ids per process. Recorded names are never freed, and finding one takes
 * no lock. Other names of an imported trace are on loan and freed with their last holder, because a
 * process may read any number of traces. */
#ifndef OP_NAMES_H
#define OP_NAMES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OP_NAME_NONE 0u
#define OP_NAME_OVERFLOW 1u /* stands for every name past the limit */
#define OP_NAME_MAX_COUNT (1u << 20)

/* Id of a UTF-8 name (surrogates allowed); OP_NAME_OVERFLOW if the table is full. */
uint32_t op_names_intern(const char *utf8, size_t length);
/* The same for a name whose events are grouped under another name, so one text may be a name in several
 * groups. OP_NAME_NONE means no group. */
uint32_t op_names_intern_in(const char *utf8, size_t length, uint32_t group);
/* The name of a Python call, `file(line): function` as torch writes it. Its group lacks the line, which
 * moves when code above it changes; a text without a line has no group. */
uint32_t op_names_intern_call(const char *utf8, size_t length);

/* Names on loan to one holder. */
typedef struct op_name_loans {
    uint32_t *ids;
    uint32_t count, capacity;
} op_name_loans;

/* Like op_names_intern_in() and op_names_intern_call(), but a new name is on loan; without a group a
 * name is its own. A name lent twice to one holder counts twice, so ask once. OP_NAME_NONE: no
 * memory. */
uint32_t op_names_lend(const char *utf8, size_t length, uint32_t group, op_name_loans *loans);
uint32_t op_names_lend_call(const char *utf8, size_t length, op_name_loans *loans);
void op_names_return(op_name_loans *loans); /* do not use its ids afterwards */

const char *op_names_text(uint32_t id, uint32_t *length);
/* The id that groups events of this name: `ProfilerStep*` for `ProfilerStep#7`, a call's function. */
uint32_t op_names_group(uint32_t id);
uint32_t op_names_count(void); /* the greatest id */

/* Appends every name, known and new, to a file, which a reader of a dead process needs; -1 stops it. A
 * record is the id, the text's length and the group (0: none), then the text. Returns 0, or -1. */
#define OP_NAME_RECORD_BYTES 12u
int op_names_log(int fd);

void op_names_lock(void); /* for fork */
void op_names_unlock(void);
void op_names_after_fork(void);

#ifdef __cplusplus
}
#endif
#endif
