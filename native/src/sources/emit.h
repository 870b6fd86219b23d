/* The program's side of ITT and NVTX, which emits ranges: for torch's ops if torch was built without
 * NVTX, and for our own ranges. The environment names the tool. */
#ifndef OP_EMIT_H
#define OP_EMIT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* op_emit_target bits for which ranges are currently emitted. */
extern uint32_t op_emitting;

static inline uint32_t op_emits(void) { return __atomic_load_n(&op_emitting, __ATOMIC_RELAXED); }

/* On this thread, for each of `targets`; a pop must name the same ones. */
void op_emit_push_to(uint32_t targets, const char *text);
void op_emit_pop_from(uint32_t targets);

#ifdef __cplusplus
}
#endif
#endif
