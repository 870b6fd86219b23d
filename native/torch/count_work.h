// How much an op was given, and what it added to autograd's graph: a token of its argument block
// (event.h, OP_INPUT_WORK), and one of its FLOPs. A part of the observer, apart only for its length.
#ifndef OP_COUNT_WORK_H
#define OP_COUNT_WORK_H

#include <ATen/SequenceNumber.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include "core/record.h"

#include <algorithm>
#include <cstring>

namespace {

// Bytes that an op finds there: what was broadcast lies there once. Of a tensor whose sizes Python or a
// symbol tells, the ops that run inside on plain tensors have them.
inline int64_t bytes_of(const at::Tensor &x) {
    if (!x.defined())
        return 0;
    const c10::TensorImpl *impl = x.unsafeGetTensorImpl();
    if (impl->layout() != at::kStrided || impl->has_symbolic_sizes_strides() || x.is_nested() ||
        impl->key_set().has(c10::DispatchKey::Python))
        return 0;
    auto bytes = static_cast<int64_t>(impl->itemsize());
    if (impl->is_contiguous())
        return bytes * impl->numel();
    auto sizes = impl->sizes();
    auto strides = impl->strides();
    for (size_t i = 0; i < sizes.size(); i++)
        bytes *= strides[i] != 0 || sizes[i] == 0 ? sizes[i] : 1;
    return bytes;
}

// Whether a list is one of tensors torch tells from its type, which takes a call.
inline int64_t bytes_given(const at::RecordFunction &fn) {
    int64_t bytes = 0;
    for (const c10::IValue &input : fn.inputs()) {
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
