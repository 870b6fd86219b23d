#include "cuda/cupti_kinds.h"

/* Device kinds first: work without a recorded launch can still be told from a launch without work. */
static const struct {
    op_cupti_kind kind;
    bool of_host, optional;
} kinds[] = {{OP_CUPTI_KERNEL, false, false},  {OP_CUPTI_MEMCPY, false, false},
             {OP_CUPTI_MEMSET, false, false},  {OP_CUPTI_PEER_COPY, false, false},
             {OP_CUPTI_OVERHEAD, false, true}, {OP_CUPTI_EVENT, true, true},
             {OP_CUPTI_SYNC, true, false},     {OP_CUPTI_RUNTIME, true, false},
             {OP_CUPTI_DRIVER, true, false}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The most frequent calls among those that cupti_names.c ignores: not recording them is cheaper.
 * Although its header says otherwise, CUPTI of CUDA 13.0 records no driver call that is enabled alone;
 * so the kind is enabled, and these are disabled. */
static const uint16_t ignored_of_runtime[] = {10, 16, 17, 133, 134, 136};
/* cuCtxGetCurrent, cuDevicePrimaryCtxGetState, cuKernelGetName */
static const uint16_t ignored_of_driver[] = {304, 392, 719};
enum {
    IGNORED_OF_RUNTIME = sizeof ignored_of_runtime / sizeof *ignored_of_runtime,
    IGNORED_OF_DRIVER = sizeof ignored_of_driver / sizeof *ignored_of_driver
};

static void ignore_calls(int (*enable)(uint32_t, uint8_t), const uint16_t *calls, int count) {
    for (int i = 0; enable && i < count; i++) /* before 12.4 all are recorded */
        enable(calls[i], 0);
}

int op_cupti_kinds_enable(const op_cupti_library *l) {
    for (int i = 0; i < KINDS; i++) {
        int rc = l->cupti.ActivityEnable((int)kinds[i].kind);
        if (rc != OP_CUPTI_SUCCESS && !kinds[i].optional) {
            op_cupti_kinds_disable_host(l);
            op_cupti_kinds_disable_devices(l);
            return rc;
        }
    }
    ignore_calls(l->cupti.ActivityEnableRuntimeApi, ignored_of_runtime, IGNORED_OF_RUNTIME);
    ignore_calls(l->cupti.ActivityEnableDriverApi, ignored_of_driver, IGNORED_OF_DRIVER);
    if (l->cupti.ActivityEnableAllSyncRecords) /* a query that finds unfinished work did not wait */
        l->cupti.ActivityEnableAllSyncRecords(0);
    return OP_CUPTI_SUCCESS;
}

int op_cupti_kinds_enable_memory(const op_cupti_library *l) {
    return l->cupti.ActivityEnable(OP_CUPTI_MEMORY);
}

static void disable(const op_cupti_library *l, bool of_host) {
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].of_host == of_host)
            l->cupti.ActivityDisable((int)kinds[i].kind);
}

void op_cupti_kinds_disable_host(const op_cupti_library *l) {
    l->cupti.ActivityDisable(OP_CUPTI_MEMORY);
    disable(l, true);
}

void op_cupti_kinds_disable_devices(const op_cupti_library *l) { disable(l, false); }

static bool holds(const int *kinds_on, uint32_t count, op_cupti_kind kind) {
    for (uint32_t i = 0; i < count && i < 64; i++)
        if (kinds_on[i] == (int)kind)
            return true;
    return false;
}

bool op_cupti_kinds_are_enabled(const op_cupti_library *l, bool with_memory) {
    int enabled[64];
    uint32_t size = sizeof enabled, count = 0;
    if (!l->cupti.ActivityGetEnabledKinds ||
        l->cupti.ActivityGetEnabledKinds(NULL, enabled, &size, &count) != OP_CUPTI_SUCCESS)
        return true; /* it cannot be queried */
    for (int i = 0; i < KINDS; i++)
        if (!kinds[i].optional && !holds(enabled, count, kinds[i].kind))
            return false;
    return !with_memory || holds(enabled, count, OP_CUPTI_MEMORY);
}
