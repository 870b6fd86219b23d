#include "core/fault.h"
#include "result/cpp_stacks.h"
#include "result/device_use.h"
#include "result/imported.h"
#include "result/packed_args.h"
#include "result/result.h"

void op_result_free(op_result *r) {
    if (!r)
        return;
    free(r->storage);
    free(r->args);
    free(r->threads);
    free(r->steps);
    free(r->groups);
    free(r->samples);
    free(r->paths);
    free(r->all_paths);
    free(r->input_group);
    op_device_use_forget(r);
    free(r->device_spans);
    free(r->collectives);
    free(r->flops);
    free(r->memory);
    free(r->memory_use);
    free(r->work);
    free(r->outputs);
    free(r->counters);
    op_cpp_stacks_free(r->cpp_stacks);
    op_imported_free(r->imported);
    op_names_return(&r->names);
    free(r->devices);
    free(r->sites);
    free(r->called_from);
    free(r->open_calls);
    free(r);
}
