// The torch observer: RecordFunction callbacks that write into the collector's own chunks.
// Compiled on the user's machine against the user's torch (capture/torch_ops.py), because
// RecordFunction's layout is torch's to change.

#include "core/record.h"
#include "count_work.h"
#include "open_state.h"
#include "sources/call.h"
#include "sources/counters.h"
#include "sources/unwinding.h"
#include "thread_table.h"
#include "torch_api.h"
#include "write_inputs.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <unordered_set>
#include <utility>
#include <vector>

namespace {

// ---- contexts ------------------------------------------------------------------------------
// An op's context carries its slot from begin to end. One lies ready for each place in a thread's
// stack of open records: a place is not taken again while its record is open, except by a later
// window, whose op then owns it. They are never freed, so destruction is a no-op; torch may destroy
// one on another thread.

struct Context final : at::ObserverContext {
    op_slot slot{};
    const at::RecordFunction *owner = nullptr;
    static void operator delete(void *) {}
};

ThreadTable *make_table(op_thread *t) {
    t->contexts = op_contexts_take();
    if (t->contexts == nullptr) {
        t->contexts = std::aligned_alloc(alignof(ThreadTable), sizeof(ThreadTable));
        if (t->contexts != nullptr) {
            std::memset(t->contexts, 0, sizeof(ThreadTable));
        }
    }
    auto *table = static_cast<ThreadTable *>(t->contexts);
    if (table != nullptr) {
        table->link = nullptr;
        table->pushed_window = 0;
    }
    return table;
}

inline ThreadTable *table_of(op_thread *t) {
    return __builtin_expect(t->contexts != nullptr, 1) ? static_cast<ThreadTable *>(t->contexts)
                                                       : make_table(t);
}

Context *make_block(ThreadTable *table, uint32_t block) {
    auto *memory = static_cast<Context *>(std::malloc(kBlock * sizeof(Context)));
    if (memory == nullptr) {
        return nullptr;
    }
    for (uint32_t i = 0; i < kBlock; i++) {
        new (&memory[i]) Context();
    }
    return table->blocks[block] = memory;
}

inline Context *context_at(ThreadTable *table, uint32_t depth) {
    Context *block = table->blocks[depth / kBlock];
    if (__builtin_expect(block == nullptr, 0)) {
        block = make_block(table, depth / kBlock);
        if (block == nullptr) {
            return nullptr;
        }
    }
    return &block[depth % kBlock];
}

// ---- callbacks -----------------------------------------------------------------------------

// A thread whose window has no room left has no chunk, and begins events that are only counted.
void note_torch_thread(op_thread *t, uint64_t number) {
    t->torch_thread = number;
    if (t->chunk != nullptr) {
        t->chunk->torch_thread = number;
    }
}

constexpr uint32_t kForwardWords = 3;
constexpr uint32_t kWorkWords = kForwardWords + OP_WORK_WORDS;
constexpr uint32_t kMostWords = kWorkWords + OP_FLOPS_WORDS; // where no inputs are told

// Autograd's engine says of each node which thread ran its forward op, but not of its range around it.
op_caller caller_of(const at::RecordFunction &fn, const OpName &name) {
    bool is_engines = (name.flags & OP_FLAG_ENGINE) != 0 || fn.forwardThreadId() != 0;
    return is_engines ? OP_CALLED_BY_ENGINE : OP_CALLED_BY_PYTHON;
}

// Out of line: its array would be every op's stack frame.
template <bool with_inputs, bool with_work>
__attribute__((noinline)) Context *begin_with_args(const at::RecordFunction &fn, uint32_t window,
                                                   Context *context, OpName name, uint32_t aux) {
    uint32_t words[OP_ARGS_MAX_WORDS + 2];
    uint32_t count = write_args<with_inputs, with_work>(words, fn, name);
    op_thread *t = op_thread_ready(window, count);
    if (t == nullptr) {
        return nullptr;
    }
    auto flags = static_cast<uint8_t>(static_cast<uint8_t>(fn.scope()) | name.flags);
    op_begin_on(t, &context->slot, name.id, OP_TORCH, flags, aux, op_add_words(t, words, count));
    op_note_line(&context->slot, caller_of(fn, name));
    return context;
}

// What every event of a window needs besides its record; null where there is no memory for it.
inline Context *context_for(op_thread *t, uint32_t window, const at::RecordFunction &fn) {
    ThreadTable *table = table_of(t);
    if (__builtin_expect(table == nullptr, 0)) {
        return nullptr;
    }
    if (__builtin_expect(table->pushed_window != window, 0)) {
        push_state(table, window);
        note_torch_thread(t, fn.threadId());
    }
    return context_at(table, t->depth);
}

enum class Detail { kNone, kNames, kInputs };

template <Detail detail, bool work>
std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &fn) {
    uint32_t window = op_recording();
    op_thread *t = window != 0 ? op_thread_ready(window, kMostWords) : nullptr;
    Context *context = t != nullptr ? context_for(t, window, fn) : nullptr;
    if (__builtin_expect(context == nullptr, 0)) {
        return nullptr;
    }
    context->owner = &fn;
    OpName name = name_of(static_cast<ThreadTable *>(t->contexts), fn);
    int64_t sequence = fn.seqNr();
    uint32_t aux =
        sequence < 0 || sequence >= OP_NO_SEQUENCE ? OP_NO_SEQUENCE : static_cast<uint32_t>(sequence);
    if (detail != Detail::kNone) {
        return std::unique_ptr<at::ObserverContext>(
            begin_with_args<detail == Detail::kInputs, work>(fn, window, context, name, aux));
    }
    uint64_t thread = fn.forwardThreadId();
    uint16_t args = 0;
    if (work || thread != 0) {
        int64_t bytes = work ? bytes_given(fn, name.known) : 0,
                flops = work ? flops_of(fn, name.formula) : 0;
        constexpr uint32_t kWords = work ? kWorkWords : kForwardWords;
        uint32_t count = work && flops > 0 ? kMostWords : kWords;
        uint32_t *words = count == kWords ? op_take_words(t, kWords) : op_take_words(t, kMostWords);
        words[0] = OP_ARGS_HEADER(OP_ARGS_TORCH, count - 1);
        words[1] = static_cast<uint32_t>(thread);
        words[2] = static_cast<uint32_t>(thread >> 32);
        if (work) {
            put_work(words + kForwardWords, OP_INPUT_WORK, bytes);
        }
        if (flops > 0) {
            put_work(words + kWorkWords, OP_INPUT_FLOPS, flops);
        }
        args = op_publish_words(t, count);
    }
    auto flags = static_cast<uint8_t>(static_cast<uint8_t>(fn.scope()) | name.flags);
    op_begin_on(t, &context->slot, name.id, OP_TORCH, flags, aux, args);
    op_note_line(&context->slot, caller_of(fn, name));
    return std::unique_ptr<at::ObserverContext>(context);
}

// In windows that also have C++ stacks, or counters.
template <Detail detail, bool work>
std::unique_ptr<at::ObserverContext> begin_closely(const at::RecordFunction &fn) {
    op_frames frames;
    op_unwind_take(&frames); // first: an op's time is its own
    std::unique_ptr<at::ObserverContext> context = begin<detail, work>(fn);
    if (context != nullptr) {
        const op_slot *slot = &static_cast<Context *>(context.get())->slot;
        op_unwind_note(slot, &frames);
        if (op_counts() != 0) {
            op_count_begin(slot);
        }
    }
    return context;
}

// What an op gave back is a record of its own, just before its end: the op's own is written already.
__attribute__((noinline)) void note_outputs(const at::RecordFunction &fn, const op_slot *slot) {
    op_thread *t = op_self;
    if (t != slot->thread || t->depth == 0 || t->stack[t->depth - 1].event != slot->event) {
        return;
    }
    uint32_t words[OP_ARGS_MAX_WORDS + 2];
    uint32_t count = write_outputs(words, fn);
    op_instant(OP_NAME_NONE, OP_OUTPUTS, 0, words, count);
}

template <bool outputs, bool work, bool closely>
void end(const at::RecordFunction &fn, at::ObserverContext *context) {
    auto *own = static_cast<Context *>(context);
    if (own != nullptr && own->owner == &fn) {
        op_slot *slot = &own->slot;
        if (closely && op_counts() != 0) {
            op_count_end(slot); // first: what an op gives back takes time to write
        }
        if (outputs) {
            note_outputs(fn, slot);
        }
        if (work) {
            put_nodes(slot);
        }
        op_end(slot);
    }
}

template <Detail detail, bool outputs, bool work> at::RecordFunctionCallback callback_of(bool closely) {
    using Callback = at::RecordFunctionCallback;
    return closely ? Callback(begin_closely<detail, work>, end<outputs, work, true>)
                   : Callback(begin<detail, work>, end<outputs, work, false>);
}

template <bool work> at::RecordFunctionCallback callback_for(uint32_t looks) {
    bool closely = (looks & OP_OBSERVE_CLOSELY) != 0;
    if ((looks & OP_OBSERVE_OUTPUTS) != 0) {
        return callback_of<Detail::kInputs, true, work>(closely).needsInputs(true).needsOutputs(true);
    }
    if ((looks & OP_OBSERVE_INPUTS) != 0) {
        return callback_of<Detail::kInputs, false, work>(closely).needsInputs(true);
    }
    bool has_names = (looks & (OP_OBSERVE_OVERLOADS | OP_OBSERVE_MODULES)) != 0;
    auto callback = has_names ? callback_of<Detail::kNames, false, work>(closely)
                              : callback_of<Detail::kNone, false, work>(closely);
    return callback.needsInputs(work);
}

using Handles = std::vector<at::CallbackHandle>;

// Torch draws which ops a sampled callback sees; of an op that nobody sees it makes no
// RecordFunction. What somebody named is there each time, so another callback sees those ranges. And
// the work of a node or a range is that of the ops inside: torch boxes no inputs for them.
Handles add_callbacks(uint32_t looks, double sampling) {
    using Scope = at::RecordScope;
    std::unordered_set<Scope> ops;
    for (int i = 0; i < static_cast<int>(Scope::NUM_SCOPES); i++) {
        auto scope = static_cast<Scope>(i);
        if (scope != Scope::USER_SCOPE && scope != Scope::BACKWARD_FUNCTION) {
            ops.insert(scope);
        }
    }
    bool work = (looks & OP_OBSERVE_WORK) != 0;
    auto of_ops = work ? callback_for<true>(looks) : callback_for<false>(looks);
    return {at::addGlobalCallback(of_ops.scopes(ops).samplingProb(sampling)),
            at::addGlobalCallback(
                callback_for<false>(looks).scopes({Scope::BACKWARD_FUNCTION}).samplingProb(sampling)),
            at::addGlobalCallback(callback_for<false>(looks).scopes({Scope::USER_SCOPE}))};
}

// Callbacks are registered once for each way to look and each share of ops, and switched on and off:
// torch forbids to remove one while other threads run ops. Never destroyed: windows may close late.
Handles active_handles;

void switch_on(uint32_t looks, double sampling) {
    static auto *known = new std::map<std::pair<uint32_t, double>, Handles>();
    auto [entry, is_new] = known->try_emplace({looks, sampling});
    if (is_new) {
        entry->second = add_callbacks(looks, sampling); // which switches them on
    } else {
        for (auto handle : entry->second) {
            at::reenableCallback(handle);
        }
    }
    active_handles = entry->second;
}

} // namespace

// From the thread that opens and closes windows, one at a time.
extern "C" {

__attribute__((visibility("default"))) void opprof_observer_enable(uint32_t flags, double sampling) {
    intern_names_of_memory();
    with_identities = (flags & OP_OBSERVE_IDENTITIES) != 0;
    with_memory = (flags & OP_OBSERVE_MEMORY) != 0     ? Memory::kAll
                  : (flags & OP_OBSERVE_RETAINED) != 0 ? Memory::kRetained
                                                       : Memory::kNone;
    log_errors_only(with_memory != Memory::kNone);
    with_outputs = (flags & OP_OBSERVE_OUTPUTS) != 0;
    open_state()->tell_inputs((flags & (OP_OBSERVE_INPUTS | OP_OBSERVE_OUTPUTS)) != 0);
    with_overloads = (flags & OP_OBSERVE_OVERLOADS) != 0;
    with_modules = (flags & OP_OBSERVE_MODULES) != 0;
    constexpr uint32_t kWays = OP_OBSERVE_INPUTS | OP_OBSERVE_OUTPUTS | OP_OBSERVE_OVERLOADS |
                               OP_OBSERVE_CLOSELY | OP_OBSERVE_MODULES | OP_OBSERVE_WORK;
    switch_on(flags & kWays, sampling);
}

// torch's own profiler refuses to start on a thread where a state lies; ours leaves this thread.
__attribute__((visibility("default"))) void opprof_observer_step_aside() { pop_state(); }

__attribute__((visibility("default"))) void opprof_observer_disable() {
    for (auto handle : active_handles) {
        at::disableCallback(handle);
    }
    with_memory = Memory::kNone;
    log_errors_only(false);
    open_state()->tell_inputs(false);
    pop_state(); // on other threads it lies where it is, until torch's own profiler starts there
}

// Torch takes us for an open profiler on this thread from here on, not only from its first op:
// torch.compile's ranges ask before they make one. Also when torch's own profiler has left it.
__attribute__((visibility("default"))) void opprof_observer_adopt_thread() {
    uint32_t window = op_recording();
    op_thread *t = op_self;
    if (window != 0 && (t == nullptr || t->window != window)) {
        t = op_thread_prepare(window, 0);
    }
    if (window == 0 || t == nullptr) {
        return;
    }
    ThreadTable *table = table_of(t);
    if (table != nullptr) {
        push_state(table, window);
        note_torch_thread(t, at::RecordFunction::currentThreadId());
    }
}
}
