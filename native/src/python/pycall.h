/* Records Python and C calls by callbacks of sys.monitoring, or a profile function on 3.11. */
#ifndef OP_PYCALL_H
#define OP_PYCALL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef op_pycall_functions[];

#endif
