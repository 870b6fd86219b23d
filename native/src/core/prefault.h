/* Memory that is about to be written, page after page. */
#ifndef OP_PREFAULT_H
#define OP_PREFAULT_H

#include <stddef.h>

/* Asks the system for all of a block's memory at once. Else it gives a page at a time, at the first
 * touch of each, which takes longer than what is then written there. (Not by huge pages: a virtual
 * machine may have to ask its host for these, and waits.) */
void op_prefault_expect(void *block, size_t bytes);

/* Gives the memory of a file's mapping back; what is read again comes from the file. */
void op_prefault_forget(void *mapping, size_t bytes);

#endif
