/* The attributes of an NVTX range: its message and its values. */
#ifndef OP_NVTX_ATTRIBUTES_H
#define OP_NVTX_ATTRIBUTES_H

#include "core/fields.h"
#include "sources/nvtx_abi.h"
#include "sources/nvtx_domains.h"

void op_nvtx_attributes_setup(void);

/* Name ids; OP_NAME_NONE: none. */
uint32_t op_nvtx_text(const char *text);
uint32_t op_nvtx_wide(const wchar_t *text);
uint32_t op_nvtx_message(const nvtx_attributes *a);

/* Writes domain, category, colour and payload as fields; returns their words. `a` may be NULL. */
uint32_t op_nvtx_describe(op_fields *out, const op_nvtx_domain *d, const nvtx_attributes *a);

#endif
