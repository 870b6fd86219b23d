/* Decodes CUPTI's buffers into records. */
#ifndef OP_CUPTI_DECODE_H
#define OP_CUPTI_DECODE_H

#include "cuda/cupti_records.h"

/* Decodes all records of a buffer. */
void op_cupti_decode(op_cupti_decoder *decoder, uint8_t *data, size_t valid, op_cuda_records *out);
void op_cuda_records_clear(op_cuda_records *records);

#endif
