/* Which ops were called from which sites, summed up when rows are settled or folded. */
#ifndef OP_CALLED_FROM_H
#define OP_CALLED_FROM_H

#include "core/key_map.h"
#include "result/segment.h"

/* The sites of a thread's forward ops, by autograd's number. */
typedef struct op_forward_sites {
    uint64_t thread; /* torch's number of the thread */
    int64_t first;
    uint64_t count, room;
    uint16_t *sites;
} op_forward_sites;

typedef struct op_calling {
    op_called_from *rows;
    uint64_t count, room;
    op_key_map by_site; /* row + 1, by name and site */
    op_forward_sites *forwards;
    uint32_t forward_count;
} op_calling;

/* Records the sites of forward ops among the new rows, for their backward ops. False: no memory. */
bool op_calling_note(op_calling *c, const op_segment *s);
/* Once all are recorded, gives each new row its site: its own, else that of the event around it; a
 * backward op takes that of its forward op. */
void op_calling_settle(const op_calling *c, const op_segment *s);
bool op_calling_add(op_calling *c, const op_result *r, uint64_t row);
void op_calling_finish(op_calling *c, op_result *r); /* moves the sums to the result */
void op_calling_release(op_calling *c);

#endif
