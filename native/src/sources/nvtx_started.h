/* NVTX ranges that end by number, on any thread and in any order. */
#ifndef OP_NVTX_STARTED_H
#define OP_NVTX_STARTED_H

#include "core/record.h"

int op_nvtx_started_setup(void); /* 0, or pthread_atfork()'s error */

uint64_t op_nvtx_started_add(op_slot slot);    /* its number; 0: no memory */
op_slot op_nvtx_started_take(uint64_t number); /* empty: not of this window, or already taken */

#endif
