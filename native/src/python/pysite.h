/* Notes for each outermost op and range the line of the user's own code that called it, and tells the
 * user's own code from that of installed packages. */
#ifndef OP_PYSITE_H
#define OP_PYSITE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

/* Keeps the folders of installed packages, a tuple of paths. Returns 0, or -1 with an exception set. */
int op_know_libraries(PyObject *paths);

/* Whether code is in a file of the user's own; the folders must be known. */
bool op_is_users(PyCodeObject *code);

extern PyMethodDef op_pysite_functions[];

#endif
