// What an op is given, as the words of an argument block (event.h, op_input_tag). A part of the
// observer, apart only for its length.
#ifndef OP_WRITE_INPUTS_H
#define OP_WRITE_INPUTS_H

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>

#include "core/event.h"
#include "core/names.h"
#include "count_work.h"
#include "result/flop_formulas.h"
#include "torch_api.h"
#include "write_keywords.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <string_view>

namespace {

// Each tensor's token is followed by one that says which tensor it is.
std::atomic<bool> with_identities{false};
// What ops give back is recorded too, and texts among what they are given.
std::atomic<bool> with_outputs{false};

// And the names of ops' overloads, and the modules of TorchScript that ops ran in.
std::atomic<bool> with_overloads{false};
std::atomic<bool> with_modules{false};

constexpr uint32_t token_of(op_input_tag tag, uint32_t dtype, size_t length) {
    return static_cast<uint32_t>(tag) | dtype << 8 | static_cast<uint32_t>(length) << 16;
}

// Which of a block's words are taken. Each token's are taken at once and then written through a plain
// pointer: the count, advanced word by word, would go through memory each time.
class InputWriter {
  public:
    explicit InputWriter(uint32_t *words) : words_(words) {}

    // NULL where they do not fit; there is always one more, for OP_INPUT_CUT.
    uint32_t *take(size_t words) {
        if (__builtin_expect(count_ + words + 1 >= OP_ARGS_MAX_WORDS, 0))
            return nullptr;
        uint32_t *at = words_ + count_;
        count_ += static_cast<uint32_t>(words);
        return at;
    }
    bool put(uint32_t word) {
        uint32_t *at = take(1);
        if (at == nullptr)
            return false;
        *at = word;
        return true;
    }
    void cut() { words_[count_++] = token_of(OP_INPUT_CUT, 0, 0); }
    uint32_t count() const { return count_; }

  private:
    uint32_t *words_;
    uint32_t count_ = 0;
};

constexpr size_t kScalarListLimit = 30; // Kineto's SCALAR_LIST_LENGTH_LIMIT
constexpr size_t kLongestText = 2048;

inline uint32_t *put64(uint32_t *at, int64_t value) {
    std::memcpy(at, &value, sizeof value);
    return at + 2;
}

inline uint32_t *put_address(uint32_t *at, const void *address) {
    return put64(at, static_cast<int64_t>(reinterpret_cast<uintptr_t>(address)));
}

// Out of line is what hardly any tensor is.
__attribute__((noinline)) bool write_unstrided(InputWriter &w, const at::Tensor &x) {
    auto sizes = x.sizes();
    uint32_t *at = w.take(1 + 2 * sizes.size());
    if (at == nullptr)
        return false;
    *at++ = token_of(OP_INPUT_TENSOR_UNSTRIDED, static_cast<uint8_t>(x.scalar_type()), sizes.size());
    for (int64_t v : sizes)
        at = put64(at, v);
    return true;
}

__attribute__((noinline)) bool write_wide(InputWriter &w, const at::Tensor &x) {
    uint32_t *at = w.take(1 + 4 * x.sizes().size());
    if (at == nullptr)
        return false;
    *at++ = token_of(OP_INPUT_TENSOR_WIDE, static_cast<uint8_t>(x.scalar_type()), x.sizes().size());
    for (auto list : {x.sizes(), x.strides()})
        for (int64_t v : list)
            at = put64(at, v);
    return true;
}

__attribute__((noinline)) bool write_identity(InputWriter &w, const at::Tensor &x) {
    constexpr size_t kWords = 8;
    uint32_t *at = w.take(1 + kWords);
    if (at == nullptr)
        return false;
    *at++ = token_of(OP_INPUT_IDENTITY, 0, kWords);
    at = put_address(at, x.unsafeGetTensorImpl());
    at = put_address(at, x.storage().data());
    *at++ = static_cast<uint32_t>(x.device().type());
    *at++ = static_cast<uint32_t>(static_cast<int32_t>(x.device().index()));
    put64(at, x.storage_offset());
    return true;
}

inline bool write_strided(InputWriter &w, const at::Tensor &x) {
    auto sizes = x.sizes();
    auto strides = x.strides();
    size_t rank = sizes.size();
    uint64_t all = 0; // of a negative one too all bits would be too many
    for (size_t i = 0; i < rank; i++)
        all |= static_cast<uint64_t>(sizes[i]) | static_cast<uint64_t>(strides[i]);
    if (__builtin_expect(all > UINT32_MAX, 0))
        return write_wide(w, x);
    uint32_t *at = w.take(1 + 2 * rank);
    if (at == nullptr)
        return false;
    *at++ = token_of(OP_INPUT_TENSOR, static_cast<uint8_t>(x.scalar_type()), rank);
    for (size_t i = 0; i < rank; i++) {
        at[i] = static_cast<uint32_t>(sizes[i]);
        at[rank + i] = static_cast<uint32_t>(strides[i]);
    }
    return true;
}

bool write_tensor(InputWriter &w, const at::Tensor &x) {
    // Sizes of nested and symbolic tensors are not plain; Kineto leaves them empty too.
    if (!x.defined() || x.is_nested() || x.unsafeGetTensorImpl()->has_symbolic_sizes_strides())
        return w.put(token_of(OP_INPUT_UNDEFINED, 0, 0));
    if (__builtin_expect(x.layout() != at::kStrided, 0))
        return write_unstrided(w, x);
    return write_strided(w, x) && (!with_identities.load(std::memory_order_relaxed) ||
                                   !x.has_storage() || write_identity(w, x));
}

int64_t bits_of(double value) {
    int64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// The tag of a list whose elements are numbers of one kind. Empty, it is Kineto's list of scalars;
// of symbols, or of too many numbers, it is nothing in particular.
op_input_tag list_tag(c10::ArrayRef<c10::IValue> elements) {
    if (elements.empty())
        return OP_INPUT_INT_LIST;
    if (elements.size() > kScalarListLimit)
        return OP_INPUT_OTHER;
    auto all = [&](auto is) { return std::all_of(elements.begin(), elements.end(), is); };
    if (all([](const c10::IValue &e) { return e.isInt(); }))
        return OP_INPUT_INT_LIST;
    if (all([](const c10::IValue &e) { return e.isDouble(); }))
        return OP_INPUT_DOUBLE_LIST;
    if (all([](const c10::IValue &e) { return e.isBool(); }))
        return OP_INPUT_BOOL_LIST;
    return OP_INPUT_OTHER;
}

bool write_list(InputWriter &w, const c10::IValue &v) {
    auto elements = v.toListRef();
    op_input_tag tag = list_tag(elements);
    size_t n = tag == OP_INPUT_OTHER ? 0 : elements.size();
    uint32_t *at = w.take(1 + (tag == OP_INPUT_BOOL_LIST ? 1 : 2) * n);
    if (at == nullptr)
        return false;
    *at++ = token_of(tag, 0, n);
    for (size_t i = 0; i < n; i++) {
        if (tag == OP_INPUT_INT_LIST) {
            at = put64(at, elements[i].toInt());
        } else if (tag == OP_INPUT_DOUBLE_LIST) {
            at = put64(at, bits_of(elements[i].toDouble()));
        } else {
            *at++ = elements[i].toBool();
        }
    }
    return true;
}

bool write_tensor_list(InputWriter &w, const c10::IValue &v) {
    auto tensors = v.toListRef();
    if (!w.put(token_of(OP_INPUT_TENSOR_LIST, 0, std::min<size_t>(tensors.size(), UINT16_MAX))))
        return false;
    for (const c10::IValue &x : tensors) {
        if (!(x.isTensor() ? write_tensor(w, x.toTensor()) : w.put(token_of(OP_INPUT_UNDEFINED, 0, 0))))
            return false;
    }
    return true;
}

// Only for an execution trace: Kineto has no texts.
bool write_text(InputWriter &w, std::string_view text) {
    size_t bytes = std::min<size_t>(text.size(), kLongestText);
    size_t words = (bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t);
    uint32_t *at = w.take(1 + words);
    if (at == nullptr)
        return false;
    *at++ = token_of(OP_INPUT_TEXT, 0, bytes);
    if (words != 0)
        at[words - 1] = 0;
    std::memcpy(at, text.data(), bytes);
    return true;
}

bool write_number(InputWriter &w, op_input_tag tag, int64_t bits) {
    uint32_t *at = w.take(3);
    if (at == nullptr)
        return false;
    *at = token_of(tag, 0, 0);
    put64(at + 1, bits);
    return true;
}

// Whether a list is one of tensors torch tells from its type, which takes a call. Kineto has no tensors
// of lists that may have gaps, such as those of an index.
inline bool is_list_of_tensors(const c10::IValue &v) {
    return v.isTensorList() ||
           (with_outputs.load(std::memory_order_relaxed) && v.isOptionalTensorList());
}

// What is not a tensor.
bool write_other(InputWriter &w, const c10::IValue &v) {
    if (v.isNone())
        return w.put(token_of(OP_INPUT_NONE, 0, 0));
    if (v.isInt())
        return write_number(w, OP_INPUT_INT, v.toInt());
    if (v.isDouble())
        return write_number(w, OP_INPUT_DOUBLE, bits_of(v.toDouble()));
    if (v.isBool())
        return w.put(token_of(OP_INPUT_BOOL, 0, v.toBool()));
    if (v.isList())
        return is_list_of_tensors(v) ? write_tensor_list(w, v) : write_list(w, v);
    if (v.isDevice()) {
        c10::Device device = v.toDevice();
        return w.put(token_of(OP_INPUT_OTHER, 1 + static_cast<uint32_t>(device.type()),
                              static_cast<uint16_t>(device.index())));
    }
    if (v.isString() && with_outputs.load(std::memory_order_relaxed))
        return write_text(w, v.toStringRef());
    return w.put(token_of(OP_INPUT_OTHER, 0, 0));
}

inline bool write_input(InputWriter &w, const c10::IValue &v) {
    return v.isTensor() ? write_tensor(w, v.toTensor()) : write_other(w, v);
}

// Of a tensor whose sizes Python tells, or of which torch.func shows one of many, the ops that run
// inside on plain tensors have all of it.
inline bool is_told_by_others(const c10::IValue &v) {
    constexpr c10::DispatchKeySet kOthers({c10::DispatchKey::Python, c10::DispatchKey::FuncTorchBatched,
                                           c10::DispatchKey::FuncTorchGradWrapper});
    return v.isTensor() && v.toTensor().defined() &&
           v.toTensor().unsafeGetTensorImpl()->key_set().has_any(kOthers);
}

bool is_told_inside(const at::RecordFunction &fn) {
    auto inputs = inputs_of(fn);
    return std::any_of(inputs.begin(), inputs.end(), is_told_by_others);
}

// Out of line: its array would be every op's stack frame.
__attribute__((noinline)) int64_t flops_by_formula(const at::RecordFunction &fn, uint8_t formula) {
    uint32_t words[OP_ARGS_MAX_WORDS];
    InputWriter w(words);
    for (const c10::IValue &input : inputs_of(fn)) {
        if (is_told_by_others(input) || !write_input(w, input))
            return 0;
    }
    return op_flops_of(formula, {words, words + w.count()});
}

inline int64_t flops_of(const at::RecordFunction &fn, uint8_t formula) {
    return formula != 0 ? flops_by_formula(fn, formula) : 0;
}

void write_overload(InputWriter &w, const at::RecordFunction &fn) {
    const char *overload = overload_of(fn);
    uint32_t *at = *overload != '\0' ? w.take(2) : nullptr;
    if (at != nullptr) {
        at[0] = token_of(OP_INPUT_OVERLOAD, 0, 0);
        at[1] = op_names_intern(overload, std::strlen(overload));
    }
}

// Out of line: its block would be every op's stack frame.
__attribute__((noinline)) void write_named(InputWriter &w, const at::RecordFunction &fn, bool given) {
    Keywords keywords;
    if (given)
        keywords = fn.kwinputs();
    if (with_modules.load(std::memory_order_relaxed)) {
        std::string modules = script_modules();
        if (!modules.empty())
            keywords.emplace(OP_MODULE_HIERARCHY, std::move(modules));
    }
    if (keywords.empty())
        return;
    op_fields fields;
    uint32_t count = fields_of(&fields, keywords);
    uint32_t *at = count != 0 ? w.take(1 + count) : nullptr;
    if (at == nullptr)
        return;
    *at = token_of(OP_INPUT_KEYWORDS, 0, count);
    std::memcpy(at + 1, fields.words, count * sizeof *at);
}

// Torch refuses to tell the inputs where they were not asked for.
template <bool with_inputs, bool with_work>
uint32_t write_args(uint32_t *words, const at::RecordFunction &fn, const OpName &name) {
    InputWriter w(words + 1);
    put64(w.take(2), static_cast<int64_t>(fn.forwardThreadId()));
    if (with_work)
        put_work(w.take(OP_WORK_WORDS), OP_INPUT_WORK, bytes_given(fn, name.known));
    int64_t flops = with_work ? flops_of(fn, name.formula) : 0;
    if (with_inputs && is_told_inside(fn))
        flops = -1;
    if (flops != 0)
        put_work(w.take(OP_FLOPS_WORDS), OP_INPUT_FLOPS, flops);
    if (with_overloads.load(std::memory_order_relaxed)) {
        write_overload(w, fn);
    }
    // Torch hands them out as a copy, which even where there are none costs some nanoseconds. Its own
    // ops and autograd's nodes have none, and are most of what is recorded.
    bool given = with_inputs && !name.is_torchs_own && fn.scope() != at::RecordScope::BACKWARD_FUNCTION;
    if (given || with_modules.load(std::memory_order_relaxed))
        write_named(w, fn, given);
    for (const auto &input : with_inputs ? inputs_of(fn) : c10::ArrayRef<const c10::IValue>()) {
        if (!write_input(w, input)) {
            w.cut();
            break;
        }
    }
    words[0] = OP_ARGS_HEADER(OP_ARGS_TORCH, w.count());
    return 1 + w.count();
}

uint32_t write_outputs(uint32_t *words, const at::RecordFunction &fn) {
    InputWriter w(words + 1);
    auto schema = fn.operator_schema();
    std::string text = schema ? c10::toString(*schema) : std::string();
    w.put(text.empty() ? OP_NAME_NONE : op_names_intern(text.data(), text.size()));
    for (const auto &output : outputs_of(fn)) {
        if (!write_input(w, output)) {
            w.cut();
            break;
        }
    }
    words[0] = OP_ARGS_HEADER(OP_ARGS_OUTPUTS, w.count());
    return 1 + w.count();
}

} // namespace

#endif
