/* What CUPTI is asked to record. */
#ifndef OP_CUPTI_KINDS_H
#define OP_CUPTI_KINDS_H

#include "cuda/cupti_api.h"

/* The code of the first that was refused and is needed; 0: none. */
int op_cupti_kinds_enable(const op_cupti_library *library);
/* After these; the code where CUPTI refuses it, and records the rest. */
int op_cupti_kinds_enable_memory(const op_cupti_library *library);
/* In two parts: first the host's, so that our own wait for the devices is not recorded. */
void op_cupti_kinds_disable_host(const op_cupti_library *library);
void op_cupti_kinds_disable_devices(const op_cupti_library *library);
/* Of all that CUDA's driver is called for. */
bool op_cupti_is_wanted_of_driver(uint32_t callback);
/* False: somebody else has disabled some. */
bool op_cupti_kinds_are_enabled(const op_cupti_library *library, bool with_memory);

#endif
