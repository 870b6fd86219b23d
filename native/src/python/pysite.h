/* Notes of each outermost op and range from which line of the user's own code it was called. */
#ifndef OP_PYSITE_H
#define OP_PYSITE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef op_pysite_functions[];

#endif
