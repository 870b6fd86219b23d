/* Notes for each outermost op and range the line of the user's own code that called it. */
#ifndef OP_PYSITE_H
#define OP_PYSITE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef op_pysite_functions[];

#endif
