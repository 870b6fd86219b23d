/* What launched what. */
#ifndef OP_CORRELATE_H
#define OP_CORRELATE_H

#include "import/read_event.h"

/* Writes into `link` of each device's event 1 + the index of what launched it, 0 for none known. The
 * events are in the order of the columns, so that the answer does not depend on that of the file. */
int op_correlate(op_read_events *read);

#endif
