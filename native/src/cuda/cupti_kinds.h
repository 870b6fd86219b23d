/* The kinds of records that CUPTI should produce. */
#ifndef OP_CUPTI_KINDS_H
#define OP_CUPTI_KINDS_H

#include "cuda/cupti_api.h"

/* Returns the code of the first required kind that was refused; 0: none. */
int op_cupti_kinds_enable(const op_cupti_library *library);
/* Call it after that. Returns CUPTI's code; if refused, the rest is still recorded. */
int op_cupti_kinds_enable_memory(const op_cupti_library *library);
/* Host kinds first, so that our own wait for the devices is not recorded. */
void op_cupti_kinds_disable_host(const op_cupti_library *library);
void op_cupti_kinds_disable_devices(const op_cupti_library *library);
/* False: another client has disabled some. */
bool op_cupti_kinds_are_enabled(const op_cupti_library *library, bool with_memory);

#endif
