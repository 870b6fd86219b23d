/* Only in the fault-injection build (-DOP_FAULTS). */
#include "core/fault.h"

static unsigned countdown[OP_FAULT_KINDS];
static unsigned fired;

void op_fault_arm(enum op_fault_kind kind, unsigned nth) {
    for (int i = 0; i < OP_FAULT_KINDS; i++)
        __atomic_store_n(&countdown[i], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&fired, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&countdown[kind], nth, __ATOMIC_RELAXED);
}

unsigned op_fault_fired(void) { return __atomic_load_n(&fired, __ATOMIC_RELAXED); }

int op_fault_now(enum op_fault_kind kind) {
    if (__atomic_load_n(&countdown[kind], __ATOMIC_RELAXED) == 0)
        return 0;
    if (__atomic_sub_fetch(&countdown[kind], 1, __ATOMIC_RELAXED) != 0)
        return 0;
    __atomic_add_fetch(&fired, 1, __ATOMIC_RELAXED);
    return 1;
}
