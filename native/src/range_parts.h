/* What record_function needs of Python besides the type itself (fast.c). */
#ifndef OP_RANGE_PARTS_H
#define OP_RANGE_PARTS_H

#include <Python.h>

#include "fields.h"
#include "record.h"

/* A callable that ends the record, once, whatever it is called with and on whichever thread. */
PyObject *op_ending_new(const op_slot *slot);
/* Adds named values from a dict of str to bool, int, float and str, or to str of JSON. -1: an exception
 * is set. */
int op_fields_add_dict(op_fields *out, PyObject *dict, int are_json);

#endif
