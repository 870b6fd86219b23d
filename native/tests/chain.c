/* Functions that call back, so that the callback knows the stack. No call is a tail call, and no
 * function is inlined into another. */

typedef void callback(void *);

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

static _Thread_local volatile int done;

static APART void chain_hidden(callback *call, void *data) {
    call(data);
    done++;
}

APART void chain_inner(callback *call, void *data) {
    chain_hidden(call, data);
    done++;
}

/* The name a C++ compiler gives `shapes::area(double, int)`. */
APART void _ZN6shapes4areaEdi(callback *call, void *data) {
    chain_inner(call, data);
    done++;
}

APART void chain_outer(callback *call, void *data) {
    _ZN6shapes4areaEdi(call, data);
    done++;
}

APART void chain_deep(callback *call, void *data, unsigned depth) {
    if (depth)
        chain_deep(call, data, depth - 1);
    else
        call(data);
    done++;
}
