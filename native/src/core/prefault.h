/* Memory that is about to be written, page after page. */
#ifndef OP_PREFAULT_H
#define OP_PREFAULT_H

#include <stddef.h>

/* Asks the system for all of a block's memory at once. Otherwise each page comes at its first touch,
 * which takes longer than filling it. (Not huge pages: a virtual machine may wait for its host.) */
void op_prefault_expect(void *block, size_t bytes);

/* Releases the memory of a file mapping; later reads come from the file again. */
void op_prefault_forget(void *mapping, size_t bytes);

#endif
