/* Names of results and of CUDA's functions, as in the headers. */
#include "fake.h"

typedef struct named {
    uint32_t number;
    const char *name;
} named;

static const named results[] = {
#include "results.inc"
};
static const named runtime[] = {
#include "runtime.inc"
};
static const named driver[] = {
#include "driver.inc"
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static const char *find(const named *table, size_t count, uint32_t number) {
    for (size_t i = 0; i < count; i++)
        if (table[i].number == number)
            return table[i].name;
    return NULL;
}

/* The real libraries have no text for these two. */
const char *fake_result_name(CUptiResult result) {
    if (result == CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED ||
        result == CUPTI_ERROR_OPENACC_UNDEFINED_ROUTINE)
        return NULL;
    return find(results, COUNT(results), result);
}

const char *fake_call_name(CUpti_CallbackDomain domain, uint32_t cbid) {
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API)
        return find(runtime, COUNT(runtime), cbid);
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
        return find(driver, COUNT(driver), cbid);
    return NULL;
}
