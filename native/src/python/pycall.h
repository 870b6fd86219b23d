/* Python and C calls as records: callbacks of sys.monitoring, or on 3.11 a profile function. */
#ifndef OP_PYCALL_H
#define OP_PYCALL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef op_pycall_functions[];

#endif
