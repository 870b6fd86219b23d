/* Python's own memory: what its allocators do while a window that records memory is open. */
#ifndef OP_PYMEM_H
#define OP_PYMEM_H

#include <Python.h>

extern PyMethodDef op_pymem_functions[];

#endif
