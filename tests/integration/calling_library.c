/* A library that calls back, as an extension does: from functions whose names the test knows. */
#define APART __attribute__((noinline, noclone))

typedef void callback(void);

static _Thread_local volatile int done;

static APART void library_kernel(callback *call) {
    call();
    done++;
}

APART void library_entry(callback *call) {
    library_kernel(call);
    done++;
}

APART void library_recursion(callback *call, int depth) {
    if (depth)
        library_recursion(call, depth - 1);
    else
        library_kernel(call);
    done++;
}
