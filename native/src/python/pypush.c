#include "python/pypush.h"

#include "core/grow.h"
#include "python/range_parts.h"

#include <pthread.h>

/* Each thread's pushed ranges, with their slots, so that a pop never ends another range. */
typedef struct pushed_range {
    op_slot slot;
    uint32_t emitted;
} pushed_range;

typedef struct pushed {
    pushed_range *ranges;
    size_t count, room;
} pushed;

static pthread_key_t pushed_key; /* Python's own thread-local keys have no destructor */

static void free_pushed(void *value) {
    free(((pushed *)value)->ranges);
    free(value);
}

static pushed *pushed_here(void) {
    pushed *p = pthread_getspecific(pushed_key);
    if (p)
        return p;
    p = calloc(1, sizeof *p);
    if (!p || pthread_setspecific(pushed_key, p)) {
        free(p);
        PyErr_NoMemory();
        return NULL;
    }
    return p;
}

/* Returns the depth before the push, like torch's: 0 for an outermost range. */
static PyObject *push(PyObject *module, PyObject *name) {
    (void)module;
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "range_push() argument must be str, not %.50s",
                            Py_TYPE(name)->tp_name);
    pushed *p = pushed_here();
    if (!p)
        return NULL;
    if (!OP_HAS_ROOM(p->ranges, p->count, p->room, 16))
        return PyErr_NoMemory();
    pushed_range range = {{NULL, NULL, 0}, 0};
    uint32_t id;
    if (op_recording() | op_emits()) {
        if (op_range_intern(name, &id))
            return NULL;
        range.emitted = op_range_emit(id);
        range.slot = op_begin_unwound(id, OP_RANGE, OP_SCOPE_USER, 0, NULL, 0);
        op_range_note(&range.slot);
    }
    p->ranges[p->count] = range;
    return PyLong_FromSize_t(p->count++);
}

static PyObject *pop(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    pushed *p = pushed_here();
    if (!p)
        return NULL;
    if (p->count == 0) {
        PyErr_SetString(PyExc_RuntimeError, "range_pop() without a range_push() on this thread");
        return NULL;
    }
    const pushed_range *ended = &p->ranges[--p->count];
    op_range_end(&ended->slot);
    if (ended->emitted)
        op_emit_pop_from(ended->emitted);
    return PyLong_FromSize_t(p->count);
}

int op_pypush_setup(void) {
    if (pthread_key_create(&pushed_key, free_pushed) == 0)
        return 0;
    PyErr_NoMemory();
    return -1;
}

PyMethodDef op_pypush_functions[] = {
    {"range_push", push, METH_O,
     "range_push(name, /)\n--\n\nBegin a range on this thread; its depth, from 0."},
    {"range_pop", pop, METH_NOARGS,
     "range_pop()\n--\n\nEnd the range that this thread pushed last; its depth.\n\n"
     "Raises RuntimeError when there is none."},
    {NULL, NULL, 0, NULL}};
