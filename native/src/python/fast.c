/* The module of C types: a cffi call releases the GIL twice, too much for every range and call. */
#include "python/module_state.h"
#include "python/pycall.h"
#include "python/pydecorated.h"
#include "python/pyinstructions.h"
#include "python/pymem.h"
#include "python/pyop.h"
#include "python/pypush.h"
#include "python/pyrange.h"
#include "python/pysite.h"

/* One collector serves the process, and its callbacks use one interpreter's objects under its lock. */
static int refuse_other_interpreters(void) {
#ifdef Py_GIL_DISABLED
    PyErr_SetString(
        PyExc_ImportError,
        "pytest-opprof needs Python's global interpreter lock, and this Python is a free-threaded "
        "build: run it with another, such as python3.13 instead of python3.13t");
    return -1;
#endif
    if (PyInterpreterState_Get() == PyInterpreterState_Main())
        return 0;
    PyErr_SetString(
        PyExc_ImportError,
        "pytest-opprof records in the main interpreter only, and this is a sub-interpreter: "
        "import it there before creating this one");
    return -1;
}

static int execute(PyObject *module) {
    if (refuse_other_interpreters())
        return -1;
    op_fast *state = PyModule_GetState(module);
    if (op_pypush_setup())
        return -1;
    state->range = (PyTypeObject *)PyType_FromModuleAndSpec(module, &op_pyrange_spec, NULL);
    if (!state->range)
        return -1;
    state->range->tp_vectorcall = op_pyrange_new;
    state->op =
        (PyTypeObject *)PyType_FromModuleAndSpec(module, &op_pyop_spec, (PyObject *)state->range);
    if (!state->op)
        return -1;
    state->op->tp_vectorcall = op_pyop_new;
    state->decorated = (PyTypeObject *)PyType_FromModuleAndSpec(module, &op_pydecorated_spec, NULL);
    if (!state->decorated)
        return -1;
    if (PyModule_AddFunctions(module, op_pycall_functions) ||
        PyModule_AddFunctions(module, op_pyinstructions_functions) ||
        PyModule_AddFunctions(module, op_pymem_functions) ||
        PyModule_AddFunctions(module, op_pysite_functions))
        return -1;
    return PyModule_AddObjectRef(module, "RecordFunctionFast", (PyObject *)state->op) ||
                   PyModule_AddObjectRef(module, "record_function", (PyObject *)state->range)
               ? -1
               : 0;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    op_fast *state = PyModule_GetState(module);
    Py_VISIT(state->range);
    Py_VISIT(state->op);
    Py_VISIT(state->decorated);
    Py_VISIT(state->decorate);
    Py_VISIT(state->end_with);
    Py_VISIT(state->update_wrapper);
    return 0;
}

static int module_clear(PyObject *module) {
    op_fast *state = PyModule_GetState(module);
    Py_CLEAR(state->range);
    Py_CLEAR(state->op);
    Py_CLEAR(state->decorated);
    Py_CLEAR(state->decorate);
    Py_CLEAR(state->end_with);
    Py_CLEAR(state->update_wrapper);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)execute},
#if PY_VERSION_HEX >= 0x030C0000
    /* Otherwise Python would reject one kind, and enable its lock, with messages of its own. */
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}};

struct PyModuleDef op_fast_definition = {.m_base = PyModuleDef_HEAD_INIT,
                                         .m_name = "pytest_opprof._fast",
                                         .m_size = sizeof(op_fast),
                                         .m_methods = op_pypush_functions,
                                         .m_slots = slots,
                                         .m_traverse = module_traverse,
                                         .m_clear = module_clear};

PyMODINIT_FUNC PyInit__fast(void);
PyMODINIT_FUNC PyInit__fast(void) { return PyModuleDef_Init(&op_fast_definition); }
