/* What Python and C functions, and modules of torch, are called in a recording; and source lines.
 * All but op_pyline() with the GIL held. */
#ifndef OP_PYNAME_H
#define OP_PYNAME_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

/* `prefixes`: a tuple of str, longest first, that paths are freed of. `hidden`: files below this
 * folder have no name. `module_code`: the code object whose calls are those of torch modules, or
 * None. Returns 0, or -1 with an exception set. */
int op_pynames_open(PyObject *prefixes, PyObject *hidden, PyObject *module_code);
void op_pynames_close(void); /* code objects and modules need not be kept any more */

/* Interned ids; OP_NAME_NONE for what is hidden. */
uint32_t op_pyname_of_code(PyCodeObject *code);
uint32_t op_pyname_of_method(const PyMethodDef *method, PyObject *self);
uint32_t op_pyname_of_module(PyObject *module);

/* Whether calls of this code object are those of torch modules. */
int op_pyname_is_module_call(const PyCodeObject *code);

/* The source line at an offset into a code object; 0 where it has none. */
uint16_t op_pyline(PyCodeObject *code, int offset);

#endif
