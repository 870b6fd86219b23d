#include "result/device_calls.h"

#include "result/imported.h"
#include "result/packed_args.h"
#include "result/result.h"

#include <string.h>

static bool has(const char *name, size_t length, const char *part) {
    return memmem(name, length, part, strlen(part)) != NULL;
}

op_call_role op_call_role_of(const char *name, size_t length) {
    if (has(name, length, "Launch")) /* a host function runs nothing on a device */
        return has(name, length, "HostFunc") ? OP_CALL_OTHER : OP_CALL_LAUNCH;
    if (has(name, length, "Synchronize"))
        return OP_CALL_SYNC;
    if (has(name, length, "Memcpy"))
        return has(name, length, "Async") ? OP_CALL_OTHER : OP_CALL_COPY;
    if (has(name, length, "StreamBeginCapture"))
        return OP_CALL_BEGIN_CAPTURE;
    return has(name, length, "StreamEndCapture") ? OP_CALL_END_CAPTURE : OP_CALL_OTHER;
}

op_copy_direction op_copy_direction_of(const char *name, size_t length) {
    /* CUPTI's kinds (an array is device memory), and older names of ROCm's. */
    static const struct {
        const char *part;
        op_copy_direction direction;
    } kinds[] = {
        {"HtoD", OP_COPY_HTOD}, {"HtoA", OP_COPY_HTOD},           {"HostToDevice", OP_COPY_HTOD},
        {"DtoH", OP_COPY_DTOH}, {"AtoH", OP_COPY_DTOH},           {"DeviceToHost", OP_COPY_DTOH},
        {"DtoD", OP_COPY_DTOD}, {"AtoA", OP_COPY_DTOD},           {"AtoD", OP_COPY_DTOD},
        {"DtoA", OP_COPY_DTOD}, {"DeviceToDevice", OP_COPY_DTOD}, {"PtoP", OP_COPY_PTOP},
        {"HtoH", OP_COPY_HTOH}, {"HostToHost", OP_COPY_HTOH},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (has(name, length, kinds[i].part))
            return kinds[i].direction;
    return OP_COPY_UNKNOWN;
}

int64_t op_copy_bytes(const op_result *r, uint64_t row) {
    op_device_work work;
    if (r->imported)
        return op_packed_args_number(r->imported, r->imported->extras[row], "bytes");
    return op_result_device_work(r, row, &work) ? (int64_t)work.bytes : -1;
}
