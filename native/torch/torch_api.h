// What the observer asks of torch that torch's releases do not agree on. The headers are asked, by the
// compiler, never their version; all else in this folder knows one torch.
#ifndef OP_TORCH_API_H
#define OP_TORCH_API_H

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <string>
#include <vector>

// The stack of TorchScript's modules on this thread; a torch without it is none the worse.
namespace torch::jit {
__attribute__((weak)) std::vector<std::string> currentModuleHierarchy();
}

namespace {

using torch::profiler::impl::ProfilerStateBase;

// Of a boxed call torch hands out the whole stack, such as all variables of a script, where the op's
// own values come last. A range has no schema that says how many these are.
template <typename Values>
c10::ArrayRef<const c10::IValue> last_of(const Values &values, size_t count) {
    size_t skipped = count != 0 && count < values.size() ? values.size() - count : 0;
    return c10::ArrayRef<const c10::IValue>(values.data() + skipped, values.size() - skipped);
}

inline c10::ArrayRef<const c10::IValue> inputs_of(const at::RecordFunction &fn) {
    return last_of(fn.inputs(), fn.num_inputs());
}

inline c10::ArrayRef<const c10::IValue> outputs_of(const at::RecordFunction &fn) {
    return last_of(fn.outputs(), fn.num_outputs());
}

// The profiler that is on here: the process's, else this thread's. From torch 2.14 on these are two
// questions.
template <typename State> auto profiler_here(int) -> decltype(State::getTLS()) {
    State *global = State::getGlobal().get(); // it lives on without us: only its address is compared
    return global != nullptr ? global : State::getTLS();
}
template <typename State> State *profiler_here(long) { return State::get(); }

inline ProfilerStateBase *profiler_here() { return profiler_here<ProfilerStateBase>(0); }

// Before torch 2.7 ops do not tell their overload.
template <typename Function> auto overload_of(const Function &fn, int) -> decltype(fn.overload_name()) {
    return fn.overload_name();
}
template <typename Function> const char *overload_of(const Function &, long) { return ""; }

inline const char *overload_of(const at::RecordFunction &fn) { return overload_of(fn, 0); }

} // namespace

#endif
