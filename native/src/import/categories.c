#include "core/event.h"
#include "result/imported.h"

#include <string.h>

enum { CPU = 0, CUDA = 1, HPU = 15, MTIA = 19 };

/* Kineto's categories of host and device work. Others (flows, counters, the profiler's own spans) are
 * kept unchanged. A device without its own categories uses CUDA's. */
const op_category op_categories[] = {
    {"cpu_op", OP_TORCH, 0, CPU},
    {"user_annotation", OP_RANGE, OP_SCOPE_USER, CPU},
    {"python_function", OP_PYTHON_CALL, 0, CPU},
    {"cpu_instant_event", OP_MARK, 0, CPU},
    {"cuda_runtime", OP_RUNTIME, 0, CPU},
    {"cuda_driver", OP_DRIVER, 0, CPU},
    {"xpu_runtime", OP_RUNTIME, 0, CPU},
    {"xpu_driver", OP_DRIVER, 0, CPU},
    {"privateuse1_runtime", OP_RUNTIME, 0, CPU},
    {"privateuse1_driver", OP_DRIVER, 0, CPU},
    {"mtia_runtime", OP_RUNTIME, 0, CPU},
    {"glow_runtime", OP_RUNTIME, 0, CPU},
    {"overhead", OP_RUNTIME, 0, CPU},
    {"kernel", OP_KERNEL, 0, CUDA},
    {"gpu_memcpy", OP_MEMCPY, 0, CUDA},
    {"gpu_memset", OP_MEMSET, 0, CUDA},
    {"gpu_user_annotation", OP_DEVICE_RANGE, OP_SCOPE_USER, CUDA},
    {"cuda_sync", OP_SYNC, 0, CUDA},
    {"xpu_sync", OP_SYNC, 0, CUDA},
    {"mtia_ccp_events", OP_KERNEL, 0, MTIA},
    {"hpu_op", OP_KERNEL, 0, HPU},
    {NULL, 0, 0, 0},
};

int op_category_find(const char *name, size_t length) {
    for (int i = 0; op_categories[i].name; i++)
        if (strlen(op_categories[i].name) == length && memcmp(op_categories[i].name, name, length) == 0)
            return i;
    return -1;
}
