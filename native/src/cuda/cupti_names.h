/* Names that CUPTI gives as an address or a number. */
#ifndef OP_CUPTI_NAMES_H
#define OP_CUPTI_NAMES_H

#include "cuda/cupti_records.h"

void op_cupti_names_free(op_cupti_names *names);

typedef struct op_cupti_call_name {
    uint32_t id; /* OP_NAME_NONE: not looked up yet */
    uint8_t role;
    bool ignored;
} op_cupti_call_name;

/* False: no memory, or CUPTI does not know the call. */
bool op_cupti_name_call(op_cupti_decoder *decoder, uint32_t domain, uint32_t callback,
                        op_cupti_call_name *out);
bool op_cupti_name_kernel(op_cupti_decoder *decoder, const char *mangled, uint32_t *id);
uint32_t op_cupti_name_copy(const op_cupti_copy *record);
uint32_t op_cupti_name_set(uint16_t memory_kind);
uint32_t op_cupti_name_sync(uint32_t type);

#endif
