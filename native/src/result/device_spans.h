/* Device work in the order of time, and where a device's time went. */
#ifndef OP_DEVICE_SPANS_H
#define OP_DEVICE_SPANS_H

#include "opprof.h"

typedef struct op_piece {
    int64_t start_ns, end_ns;
    uint32_t row;
    int32_t launcher, device_type, device_index;
} op_piece;

/* All work with a time, device by device; the caller frees it. OP_OK or OP_ENOMEM. */
int op_pieces_list(const op_result *r, op_piece **out, uint64_t *count);
/* How many pieces, from the first, belong to the same device. */
uint64_t op_pieces_of_device(const op_piece *pieces, uint64_t count);

#endif
