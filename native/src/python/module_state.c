#include "python/module_state.h"

/* A subclass made in Python does not belong to our module, so its bases are searched for the state. */
op_fast *op_fast_of(PyTypeObject *type) {
    PyObject *module = PyType_GetModuleByDef(type, &op_fast_definition);
    return module ? PyModule_GetState(module) : NULL;
}

PyObject *op_fast_function(PyObject **kept, const char *module_name, const char *name) {
    if (!*kept) {
        PyObject *module = PyImport_ImportModule(module_name);
        if (!module)
            return NULL;
        *kept = PyObject_GetAttrString(module, name);
        Py_DECREF(module);
    }
    return *kept;
}
