/* NVTX domains and their categories. Libraries may create them at any time; none is ever removed. */
#ifndef OP_NVTX_DOMAINS_H
#define OP_NVTX_DOMAINS_H

#include <stdint.h>

typedef struct op_nvtx_category {
    uint32_t number, name;
    struct op_nvtx_category *next;
} op_nvtx_category;

typedef struct op_nvtx_domain {
    uint32_t name;                /* 0: the default domain */
    op_nvtx_category *categories; /* newest first */
    struct op_nvtx_domain *next;
} op_nvtx_domain;

int op_nvtx_domains_setup(void); /* 0, or pthread_atfork()'s error */

op_nvtx_domain *op_nvtx_domain_named(uint32_t name);       /* NULL: no memory */
op_nvtx_domain *op_nvtx_domain_of(op_nvtx_domain *handle); /* NULL means the default domain */

void op_nvtx_name_category(op_nvtx_domain *d, uint32_t number, uint32_t name);
const op_nvtx_category *op_nvtx_category_of(const op_nvtx_domain *d, uint32_t number); /* or NULL */

#endif
