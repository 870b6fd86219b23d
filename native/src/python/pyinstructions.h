/* Bytecodes that a thread runs, by code object: callbacks of sys.monitoring, or on 3.11 a trace
 * function. */
#ifndef OP_PYINSTRUCTIONS_H
#define OP_PYINSTRUCTIONS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef op_pyinstructions_functions[];

#endif
