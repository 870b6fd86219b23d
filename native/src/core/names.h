/* Interned names, one table of ids for the process. What is recorded has names that are never freed,
 * and a hit takes no lock. A trace that is read has the rest of its names on loan, freed with their
 * last holder: a process may read any number of traces. */
#ifndef OP_NAMES_H
#define OP_NAMES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OP_NAME_NONE 0u
#define OP_NAME_OVERFLOW 1u /* stands for every name past the cap */
#define OP_NAME_MAX_COUNT (1u << 20)

/* Id of a name given in UTF-8 (surrogates allowed); OP_NAME_OVERFLOW when the table is full. */
uint32_t op_names_intern(const char *utf8, size_t length);
/* The same for a name whose events are grouped under another: one text may be a name in several groups.
 * OP_NAME_NONE as the group is not a group. */
uint32_t op_names_intern_in(const char *utf8, size_t length, uint32_t group);
/* The name of a Python call, `file(line): function` as torch writes it. Its group is without the line,
 * which moves when code above it changes; a text without a line has no group. */
uint32_t op_names_intern_call(const char *utf8, size_t length);

/* Names on loan to one holder. */
typedef struct op_name_loans {
    uint32_t *ids;
    uint32_t count, capacity;
} op_name_loans;

/* As op_names_intern_in and op_names_intern_call, but what is new is on loan; without a group a name is
 * its own. A second loan of a name to one holder is counted twice, so ask once. OP_NAME_NONE: no
 * memory. */
uint32_t op_names_lend(const char *utf8, size_t length, uint32_t group, op_name_loans *loans);
uint32_t op_names_lend_call(const char *utf8, size_t length, op_name_loans *loans);
void op_names_return(op_name_loans *loans); /* none of its ids may be asked for any more */

const char *op_names_text(uint32_t id, uint32_t *length);
/* The id under which events of this name are grouped: `ProfilerStep#7` is `ProfilerStep*`, a call its
 * function. */
uint32_t op_names_group(uint32_t id);
uint32_t op_names_count(void); /* no id is greater */

/* Append every name, known and new, to a file (a reader of a dead process needs them); -1 ends it.
 * A record is the id, the length of the text and the group, 0 for none; then the text. */
#define OP_NAME_RECORD_BYTES 12u
int op_names_log(int fd);

void op_names_lock(void); /* for fork */
void op_names_unlock(void);
void op_names_after_fork(void);

#ifdef __cplusplus
}
#endif
#endif
