/* Our own side of ITT and NVTX as a program that emits ranges: for torch's ops where torch was built
 * without NVTX, and for our own ranges. The tool is the one that the environment names. */
#ifndef OP_EMIT_H
#define OP_EMIT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of op_emit_target for which ranges are emitted now. */
extern uint32_t op_emitting;

static inline uint32_t op_emits(void) { return __atomic_load_n(&op_emitting, __ATOMIC_RELAXED); }

/* For each target in `targets`, on this thread; a pop must name the same ones. */
void op_emit_push_to(uint32_t targets, const char *text);
void op_emit_pop_from(uint32_t targets);

#ifdef __cplusplus
}
#endif
#endif
