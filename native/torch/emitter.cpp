// Torch's ops as ranges for other tools, in the words of torch's emit_itt and emit_nvtx: what torch
// itself can do only where it was built with NVTX, and on the thread that asked. Compiled on the
// user's machine against the user's torch, as the observer is.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include "sources/emit.h"

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace {

enum Target : uint32_t { kItt = 1, kNvtx = 2 }; // op_emit_target
enum Option : uint32_t { kShapes = 1, kTorchsOwnText = 2 };

// ---- who made a tensor ---------------------------------------------------------------------
// By the tensor's address. A weak reference keeps another tensor from getting that address, and
// tells which of them are gone; torch's own table confuses the two.

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

struct Producer {
    WeakTensor tensor;
    at::RecordFunctionHandle op;
    int output;
};

class Producers {
  public:
    void note(const at::Tensor &tensor, at::RecordFunctionHandle op, int output) {
        std::lock_guard<std::mutex> guard(lock_);
        if (by_address_.size() >= limit_) {
            forget_the_dead();
        }
        by_address_.insert_or_assign(tensor.unsafeGetTensorImpl(),
                                     Producer{WeakTensor(tensor.getIntrusivePtr()), op, output});
    }

    // Operation and output that the tensor came from; (0, -1) where none is known.
    std::pair<at::RecordFunctionHandle, int> of(const at::Tensor &tensor) {
        std::lock_guard<std::mutex> guard(lock_);
        auto found = by_address_.find(tensor.unsafeGetTensorImpl());
        return found == by_address_.end() ? std::make_pair(at::RecordFunctionHandle{0}, -1)
                                          : std::make_pair(found->second.op, found->second.output);
    }

    void clear() {
        std::lock_guard<std::mutex> guard(lock_);
        by_address_.clear();
    }

  private:
    void forget_the_dead() {
        for (auto it = by_address_.begin(); it != by_address_.end();) {
            it = it->second.tensor.expired() ? by_address_.erase(it) : std::next(it);
        }
        limit_ = std::max<size_t>(1024, 2 * by_address_.size());
    }

    std::mutex lock_;
    std::unordered_map<const void *, Producer> by_address_;
    size_t limit_ = 1024;
};

// Never destroyed: other threads may run ops while the process ends.
Producers &producers() {
    static auto *table = new Producers();
    return *table;
}

// ---- text ----------------------------------------------------------------------------------

void put_sizes(std::string &text, const at::Tensor &tensor) {
    text += '[';
    bool plain = tensor.defined() && !tensor.is_nested() &&
                 !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
    if (plain) {
        const char *between = "";
        for (int64_t size : tensor.sizes()) {
            text += between;
            text += std::to_string(size);
            between = ", ";
        }
    }
    text += ']';
}

// Calls `on_tensor` for each tensor among the inputs, those in lists one by one, and `on_other` for
// each other input and for a list without a tensor: torch's rule, for sizes and ids alike.
template <typename OnTensor, typename OnOther>
void each_input(const at::RecordFunction &fn, OnTensor on_tensor, OnOther on_other) {
    for (const c10::IValue &input : fn.inputs()) {
        bool any = false;
        if (input.isTensor()) {
            on_tensor(input.toTensor());
            any = true;
        } else if (input.isList()) {
            for (const c10::IValue &member : input.toListRef()) {
                if (member.isTensor()) {
                    on_tensor(member.toTensor());
                    any = true;
                }
            }
        }
        if (!any) {
            on_other();
        }
    }
}

void put_all_sizes(std::string &text, const at::RecordFunction &fn) {
    if (fn.inputs().empty()) {
        return;
    }
    const char *between = ", sizes = [";
    each_input(
        fn,
        [&](const at::Tensor &tensor) {
            text += std::exchange(between, ", ");
            put_sizes(text, tensor);
        },
        [&] {
            text += std::exchange(between, ", ");
            text += "[]";
        });
    text += ']';
}

void put_id(std::string &text, std::pair<at::RecordFunctionHandle, int> producer) {
    text += '(' + std::to_string(producer.first) + ',' + std::to_string(producer.second) + ')';
}

void put_input_ids(std::string &text, const at::RecordFunction &fn) {
    if (fn.inputs().empty()) {
        return;
    }
    const char *between = ", input_op_ids = [";
    each_input(
        fn,
        [&](const at::Tensor &tensor) {
            text += std::exchange(between, ", ");
            put_id(text, tensor.defined() ? producers().of(tensor)
                                          : std::make_pair(at::RecordFunctionHandle{0}, -1));
        },
        [&] {
            text += std::exchange(between, ", ");
            put_id(text, {0, 0});
        });
    text += ']';
}

template <Target target, uint32_t options> std::string text_of(const at::RecordFunction &fn) {
    std::string text = fn.name();
    if (target == kNvtx) {
        if (fn.seqNr() >= 0) {
            bool stashed =
                fn.scope() == at::RecordScope::BACKWARD_FUNCTION && !(options & kTorchsOwnText);
            text += (stashed ? ", stashed seq = " : ", seq = ") + std::to_string(fn.seqNr());
        }
        if (fn.handle() > 0) {
            text += ", op_id = " + std::to_string(fn.handle());
        }
    }
    // Torch's ITT ranges are bare names, whatever its documentation promises.
    if ((options & kShapes) && (target == kNvtx || !(options & kTorchsOwnText))) {
        put_all_sizes(text, fn);
        if (target == kNvtx) {
            put_input_ids(text, fn);
        }
    }
    return text;
}

// ---- callbacks -----------------------------------------------------------------------------

template <Target target, uint32_t options>
std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &fn) {
    if (options == 0 && target == kItt) {
        op_emit_push_to(target, fn.name());
    } else {
        op_emit_push_to(target, text_of<target, options>(fn).c_str());
    }
    return nullptr;
}

template <Target target, uint32_t options>
void end(const at::RecordFunction &fn, at::ObserverContext *) {
    op_emit_pop_from(target);
    if (target != kNvtx || !(options & kShapes)) {
        return;
    }
    int number = 0;
    for (const c10::IValue &output : fn.outputs()) {
        if (output.isTensor() && output.toTensor().defined()) {
            producers().note(output.toTensor(), fn.handle(), number);
        }
        number++;
    }
}

// Registered once each and switched on and off: torch forbids to remove one while other threads
// run ops.
template <Target target, uint32_t options> void set(bool on) {
    static at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
    if (handle == at::INVALID_CALLBACK_HANDLE) {
        constexpr bool with_tensors = (options & kShapes) != 0;
        handle = at::addGlobalCallback(
            at::RecordFunctionCallback(begin<target, options>, end<target, options>)
                .needsInputs(with_tensors)
                .needsOutputs(with_tensors && target == kNvtx)
                .needsIds(target == kNvtx));
        at::disableCallback(handle);
    }
    on ? at::reenableCallback(handle) : at::disableCallback(handle);
}

template <Target target> void set_any(uint32_t options, bool on) {
    constexpr std::array<void (*)(bool), 4> each = {set<target, 0>, set<target, 1>, set<target, 2>,
                                                    set<target, 3>};
    each[options & 3](on);
}

} // namespace

// Under the caller's lock, which is Python's.
extern "C" {

__attribute__((visibility("default"))) void opprof_emitter_set(uint32_t target, uint32_t options,
                                                               int on) {
    target == kItt ? set_any<kItt>(options, on != 0) : set_any<kNvtx>(options, on != 0);
    if (!on) {
        producers().clear();
    }
}
}
