/* range_push, range_pop. */
#ifndef OP_PYPUSH_H
#define OP_PYPUSH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef op_pypush_functions[];
int op_pypush_setup(void); /* 0, or -1 with an exception set */

#endif
