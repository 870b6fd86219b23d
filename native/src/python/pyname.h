/* Names of Python functions, C functions and torch modules in a recording, and source lines. Everything
 * except op_pyline() needs the GIL. */
#ifndef OP_PYNAME_H
#define OP_PYNAME_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

/* `prefixes`: a tuple of str, longest first, to strip from paths. `hidden`: files below this folder get
 * no name. `module_code`: the code object whose calls are calls of torch modules, or None. Returns 0,
 * or -1 with an exception set. */
int op_pynames_open(PyObject *prefixes, PyObject *hidden, PyObject *module_code);
void op_pynames_close(void); /* releases code objects and types */

/* Interned ids; OP_NAME_NONE: hidden. */
uint32_t op_pyname_of_code(PyCodeObject *code);
uint32_t op_pyname_of_method(const PyMethodDef *method, PyObject *self);
uint32_t op_pyname_of_module(PyObject *module);

/* Whether calls of this code object are calls of torch modules. */
int op_pyname_is_module_call(const PyCodeObject *code);

/* The source line at an offset into a code object; 0: none. */
uint16_t op_pyline(PyCodeObject *code, int offset);

#endif
