/* Counts a thread's bytecodes by code object: callbacks of sys.monitoring, or a trace function on
 * 3.11. */
#ifndef OP_PYINSTRUCTIONS_H
#define OP_PYINSTRUCTIONS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef op_pyinstructions_functions[];

#endif
