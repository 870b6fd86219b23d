/* Python's own memory: what its allocators take and give back while a window with memory is open. */
#ifndef OP_PYMEM_H
#define OP_PYMEM_H

#include <Python.h>

extern PyMethodDef op_pymem_functions[];

#endif
