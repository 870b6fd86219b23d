/* Of each row of device work, the row that launched most of it. */
#include "core/fault.h"
#include "result/device_time.h"
#include "result/device_use.h"

typedef struct launch {
    uint32_t group, launcher; /* rows */
} launch;

static int by_rows(const void *a, const void *b) {
    const launch *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->launcher > y->launcher) - (x->launcher < y->launcher);
}

/* Of equally frequent launchers, the one with the lower row wins. */
static void note_most(const launch *launches, uint64_t count, uint32_t *launcher_of) {
    uint64_t most = 0;
    for (uint64_t from = 0, to; from < count; from = to) {
        const launch *here = &launches[from];
        for (to = from + 1; to < count && by_rows(here, &launches[to]) == 0; to++)
            ;
        if (from == 0 || launches[from - 1].group != here->group)
            most = 0;
        if (to - from > most) {
            most = to - from;
            launcher_of[here->group] = here->launcher + 1;
        }
    }
}

uint32_t *op_device_launchers(const op_result *r) {
    const op_columns *c = &r->columns;
    uint64_t n = 0, count = 0;
    for (uint64_t row = 0; row < c->count; row++)
        n += op_is_device_work(c->kind[row]);
    uint32_t *launcher_of = op_calloc(r->device_group_count + 1, sizeof *launcher_of);
    launch *launches = op_malloc((n + 1) * sizeof *launches);
    for (uint64_t row = 0; row < c->count && launcher_of && launches; row++) {
        int32_t charged = op_is_device_work(c->kind[row]) ? op_device_charged(c, row) : -1;
        uint32_t group = r->device_group[row];
        if (charged >= 0 && group != OP_NO_GROUP && r->device_group[charged] != OP_NO_GROUP)
            launches[count++] = (launch){.group = group, .launcher = r->device_group[charged]};
    }
    if (launcher_of && launches) {
        qsort(launches, count, sizeof *launches, by_rows);
        note_most(launches, count, launcher_of);
    } else {
        free(launcher_of);
        launcher_of = NULL;
    }
    free(launches);
    return launcher_of;
}
