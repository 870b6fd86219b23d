// How much an op was given, and what it added to autograd's graph: a token of its argument block
// (event.h, OP_INPUT_WORK), and one of its FLOPs. A part of the observer, apart only for its length.
#ifndef OP_COUNT_WORK_H
#define OP_COUNT_WORK_H

#include <ATen/SequenceNumber.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include "core/record.h"
#include "thread_table.h"
#include "torch_api.h"

#include <algorithm>
#include <cstring>

namespace {

int64_t bytes_of_sparse(const c10::TensorImpl *impl);

// Bytes that an op finds there: what was broadcast lies there once. Of a tensor whose sizes Python or a
// symbol tells, the ops that run inside on plain tensors have them.
inline int64_t bytes_of(const at::Tensor &x) {
    if (!x.defined())
        return 0;
    const c10::TensorImpl *impl = x.unsafeGetTensorImpl();
    if (impl->has_symbolic_sizes_strides() || x.is_nested() ||
        impl->key_set().has(c10::DispatchKey::Python))
        return 0;
    if (__builtin_expect(impl->layout() != at::kStrided, 0))
        return bytes_of_sparse(impl);
    auto bytes = static_cast<int64_t>(impl->itemsize());
    if (impl->is_contiguous())
        return bytes * impl->numel();
    auto sizes = impl->sizes();
    auto strides = impl->strides();
    for (size_t i = 0; i < sizes.size(); i++)
        bytes *= strides[i] != 0 || sizes[i] == 0 ? sizes[i] : 1;
    return bytes;
}

// Its values, and where they lie. What oneDNN's tensors hold, only oneDNN knows.
__attribute__((noinline)) int64_t bytes_of_sparse(const c10::TensorImpl *impl) {
    if (const auto *x = dynamic_cast<const at::SparseTensorImpl *>(impl))
        return bytes_of(x->indices()) + bytes_of(x->values());
    if (const auto *x = dynamic_cast<const at::SparseCsrTensorImpl *>(impl))
        return bytes_of(x->compressed_indices()) + bytes_of(x->plain_indices()) + bytes_of(x->values());
    return 0;
}

// Torch copies the schema, which takes longer than to record an op.
__attribute__((noinline)) uint8_t count_outs(const at::RecordFunction &fn) {
    size_t outs = 0;
    if (auto schema = fn.operator_schema()) {
        for (const c10::Argument &x : schema->arguments())
            outs += x.kwarg_only() && x.alias_info() != nullptr && x.alias_info()->isWrite();
    }
    return static_cast<uint8_t>(std::min(outs, inputs_of(fn).size()));
}

// How many of its last inputs an op only writes to: those of `out=`. An overload without a name has
// none. Each overload's name lies at an address of its own.
inline size_t outs_of(const at::RecordFunction &fn, KnownName *known) {
    auto inputs = inputs_of(fn);
    if (inputs.empty() || !inputs.back().isTensor() || known == nullptr)
        return 0;
    const char *overload = overload_of(fn);
    if (*overload == '\0')
        return 0;
    if (__builtin_expect(known->overload != overload, 0)) {
        known->outs = count_outs(fn);
        known->overload = overload;
    }
    return std::min<size_t>(known->outs, inputs.size()); // a library may define an op anew
}

// Whether a list is one of tensors torch tells from its type, which takes a call.
inline int64_t bytes_given(const at::RecordFunction &fn, KnownName *known) {
    int64_t bytes = 0;
    auto inputs = inputs_of(fn);
    for (const c10::IValue &input : inputs.slice(0, inputs.size() - outs_of(fn, known))) {
        if (input.isTensor()) {
            bytes += bytes_of(input.toTensor());
        } else if (input.isList() && input.isTensorList()) {
            for (const c10::IValue &x : input.toListRef())
                bytes += bytes_of(x.toTensor());
        }
    }
    return bytes;
}

inline void put_work(uint32_t *at, op_input_tag tag, int64_t amount) {
    *at = tag;
    std::memcpy(at + 1, &amount, sizeof amount);
}

// At its end, on its thread: autograd's numbers are a thread's own. Without a number it made no node,
// or the ops inside of it that made some have theirs.
inline void put_nodes(op_slot *slot) {
    const op_event *e = slot->event;
    if (e == nullptr || e->aux == OP_NO_SEQUENCE || !op_is_innermost(slot) || e->args == 0)
        return;
    auto *block =
        reinterpret_cast<uint32_t *>(slot->thread->stack[slot->thread->depth - 1].chunk) + e->args;
    uint64_t made = at::sequence_number::peek() - e->aux;
    constexpr uint64_t kMost = UINT32_MAX >> 8;
    if (block[3] == OP_INPUT_WORK && made != 0)
        __atomic_store_n(&block[3], OP_INPUT_WORK | static_cast<uint32_t>(std::min(made, kMost)) << 8,
                         __ATOMIC_RELAXED);
}

} // namespace

#endif
