/* Links device events to what launched them. */
#ifndef OP_CORRELATE_H
#define OP_CORRELATE_H

#include "import/read_event.h"
#include "result/imported.h"

/* Sets `link` of each device event to 1 + the index of what launched it, 0 if unknown. The events must
 * be in the order of the columns, so that the result does not depend on the order of the file.
 * `lanes` tell the processes of a file; NULL: there is one. */
int op_correlate(op_read_events *read, const op_lane *lanes);

#endif
