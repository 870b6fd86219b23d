// The state that torch takes for an open profiler. A part of the observer, apart only for its length.
#ifndef OP_OPEN_STATE_H
#define OP_OPEN_STATE_H

#include "core/names.h"
#include "core/record.h"
#include "sources/retained.h"
#include "thread_table.h"
#include "torch_api.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace {

using torch::profiler::impl::ActiveProfilerType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

// While it lies on a thread, _RecordFunctionFast (torch.compile's and Triton's launch ranges)
// makes RecordFunctions, as it does under torch.profiler. It derives from torch's own base class,
// because torch casts whatever lies in that slot, and it says that it is disabled: that there is a
// state is enough for those ranges. Only where inputs are recorded it says that it is on: else those
// ranges keep what they were given to themselves. Torch's allocators ask it too, at each allocation and
// each free on such a thread, whether to report them.

enum class Memory { kNone, kAll, kRetained };
std::atomic<Memory> with_memory{Memory::kNone};
uint32_t memory_name = 0, out_of_memory_name = 0;

void record_memory(uint32_t name, const void *address, int64_t bytes, size_t allocated, size_t reserved,
                   c10::Device device) {
    const op_memory_change change = {
        reinterpret_cast<uintptr_t>(address), bytes,
        static_cast<int64_t>(allocated),      static_cast<int64_t>(reserved),
        static_cast<int32_t>(device.type()),  device.index()};
    op_memory_changed(name, &change);
}

class OpenState final : public ProfilerStateBase {
  public:
    OpenState() : ProfilerStateBase(ProfilerConfig(ProfilerState::Disabled)) {}
    // Torch asks on any thread, at any time, and not for both at once.
    void tell_inputs(bool wanted) {
        __atomic_store_n(&config_.report_input_shapes, wanted, __ATOMIC_RELAXED);
        ProfilerState told = wanted ? ProfilerState::CPU : ProfilerState::Disabled;
        __atomic_store(&config_.state, &told, __ATOMIC_RELAXED);
    }
    // Of the legacy profiler, where it is on, torch's RPC would ask for a profile on the other side.
    ActiveProfilerType profilerType() override { return ActiveProfilerType::KINETO; }
    bool memoryProfilingEnabled() const override {
        return with_memory.load(std::memory_order_relaxed) != Memory::kNone;
    }
    void reportMemoryUsage(void *address, int64_t bytes, size_t allocated, size_t reserved,
                           c10::Device device) override {
        if (with_memory.load(std::memory_order_relaxed) == Memory::kAll) {
            record_memory(memory_name, address, bytes, allocated, reserved, device);
        } else if (bytes > 0) {
            op_retained_take(reinterpret_cast<uintptr_t>(address), bytes);
        } else {
            op_retained_give(reinterpret_cast<uintptr_t>(address));
        }
    }
    void reportOutOfMemory(int64_t bytes, size_t allocated, size_t reserved,
                           c10::Device device) override {
        if (with_memory.load(std::memory_order_relaxed) == Memory::kAll) {
            record_memory(out_of_memory_name, nullptr, bytes, allocated, reserved, device);
        }
    }
};

// One for all threads and windows, never destroyed: a forked child finds it as it is, with no lock
// that its parent may have held.
const std::shared_ptr<OpenState> &open_state() {
    static const auto *state = new std::shared_ptr<OpenState>(std::make_shared<OpenState>());
    return *state;
}

// Torch pops only what lies on top. Under a state of another kind ours stays where it is, until the
// guard that pushed the other one takes both away.
void pop_state() {
    if (profiler_here() == open_state().get()) {
        try {
            c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE);
        } catch (const c10::Error &) {
        }
    }
}

// Where torch's own profiler is on, it sees those ranges already, and the slot is its.
void push_state(ThreadTable *table, uint32_t window) {
    table->pushed_window = window;
    if (profiler_here() == nullptr) {
        c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, open_state());
    }
}

// While its allocators report, torch logs a warning when a block is freed that was taken before that:
// of each window, and of no use to anybody. Tests that read what a program prints would see it.
#ifdef C10_USE_GLOG
#define LOG_LEVEL FLAGS_minloglevel
#else
#define LOG_LEVEL FLAGS_caffe2_log_level
#endif

constexpr int kErrors = 2;
int log_level_before = 0;
bool logs_less = false;

void log_errors_only(bool only) {
    if (only && !logs_less) {
        log_level_before = LOG_LEVEL;
        LOG_LEVEL = std::max(static_cast<int>(LOG_LEVEL), kErrors);
    } else if (!only && logs_less) {
        LOG_LEVEL = log_level_before;
    }
    logs_less = only;
}

void intern_names_of_memory() {
    constexpr char kMemory[] = "[memory]", kOutOfMemory[] = "[OutOfMemory]";
    memory_name = op_names_intern(kMemory, sizeof kMemory - 1);
    out_of_memory_name = op_names_intern(kOutOfMemory, sizeof kOutOfMemory - 1);
}

} // namespace

#endif
