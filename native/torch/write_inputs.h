// What an op is given, as the words of an argument block (event.h, op_input_tag). A part of the
// observer, apart only for its length.
#ifndef OP_WRITE_INPUTS_H
#define OP_WRITE_INPUTS_H

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include "event.h"
#include "names.h"
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

class InputWriter {
  public:
    explicit InputWriter(uint32_t *words) : words_(words) {}

    void token(op_input_tag tag, uint32_t dtype, size_t length) {
        put(static_cast<uint32_t>(tag) | dtype << 8 | static_cast<uint32_t>(length) << 16);
    }
    void put(uint32_t word) { words_[count_++] = word; }
    void put64(int64_t value) {
        std::memcpy(words_ + count_, &value, sizeof value);
        count_ += 2;
    }
    void put_address(const void *address) {
        put64(static_cast<int64_t>(reinterpret_cast<uintptr_t>(address)));
    }
    bool fits(size_t words) const { return count_ + words + 1 < OP_ARGS_MAX_WORDS; }
    uint32_t count() const { return count_; }

  private:
    uint32_t *words_;
    uint32_t count_ = 0;
};

constexpr size_t kScalarListLimit = 30; // Kineto's SCALAR_LIST_LENGTH_LIMIT
constexpr size_t kLongestText = 2048;

bool write_unstrided(InputWriter &w, const at::Tensor &x) {
    auto sizes = x.sizes();
    if (!w.fits(1 + 2 * sizes.size()))
        return false;
    w.token(OP_INPUT_TENSOR_UNSTRIDED, static_cast<uint8_t>(x.scalar_type()), sizes.size());
    for (int64_t v : sizes)
        w.put64(v);
    return true;
}

bool write_identity(InputWriter &w, const at::Tensor &x) {
    constexpr size_t kWords = 8;
    if (!w.fits(1 + kWords))
        return false;
    w.token(OP_INPUT_IDENTITY, 0, kWords);
    w.put_address(x.unsafeGetTensorImpl());
    w.put_address(x.storage().data());
    w.put(static_cast<uint32_t>(x.device().type()));
    w.put(static_cast<uint32_t>(static_cast<int32_t>(x.device().index())));
    w.put64(x.storage_offset());
    return true;
}

bool write_tensor(InputWriter &w, const at::Tensor &x) {
    // Sizes of nested and symbolic tensors are not plain; Kineto leaves them empty too.
    if (!x.defined() || x.is_nested() || x.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {
        if (!w.fits(1))
            return false;
        w.token(OP_INPUT_UNDEFINED, 0, 0);
        return true;
    }
    if (x.layout() != at::kStrided)
        return write_unstrided(w, x);
    auto sizes = x.sizes();
    auto strides = x.strides();
    bool wide = false;
    for (size_t i = 0; i < sizes.size(); i++) {
        wide |= sizes[i] > UINT32_MAX || strides[i] > UINT32_MAX || strides[i] < 0;
    }
    size_t rank = sizes.size();
    if (!w.fits(1 + rank * (wide ? 4 : 2)))
        return false;
    w.token(wide ? OP_INPUT_TENSOR_WIDE : OP_INPUT_TENSOR, static_cast<uint8_t>(x.scalar_type()), rank);
    for (auto list : {sizes, strides}) {
        for (int64_t v : list) {
            wide ? w.put64(v) : w.put(static_cast<uint32_t>(v));
        }
    }
    return !with_identities.load(std::memory_order_relaxed) || !x.has_storage() || write_identity(w, x);
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
    if (!w.fits(1 + 2 * n))
        return false;
    w.token(tag, 0, n);
    for (size_t i = 0; i < n; i++) {
        if (tag == OP_INPUT_INT_LIST) {
            w.put64(elements[i].toInt());
        } else if (tag == OP_INPUT_DOUBLE_LIST) {
            w.put64(bits_of(elements[i].toDouble()));
        } else {
            w.put(elements[i].toBool());
        }
    }
    return true;
}

bool write_tensor_list(InputWriter &w, const c10::IValue &v) {
    const auto &tensors = v.toTensorVector();
    if (!w.fits(1))
        return false;
    w.token(OP_INPUT_TENSOR_LIST, 0, tensors.size() <= UINT16_MAX ? tensors.size() : UINT16_MAX);
    for (const auto &x : tensors) {
        if (!write_tensor(w, x))
            return false;
    }
    return true;
}

// Only for an execution trace: Kineto has no texts.
bool write_text(InputWriter &w, std::string_view text) {
    size_t bytes = std::min<size_t>(text.size(), kLongestText);
    if (!w.fits(1 + bytes / sizeof(uint32_t) + 1))
        return false;
    w.token(OP_INPUT_TEXT, 0, bytes);
    for (size_t at = 0; at < bytes; at += sizeof(uint32_t)) {
        uint32_t word = 0;
        std::memcpy(&word, text.data() + at, std::min(sizeof word, bytes - at));
        w.put(word);
    }
    return true;
}

bool write_input(InputWriter &w, const c10::IValue &v) {
    if (v.isTensor())
        return write_tensor(w, v.toTensor());
    if (v.isTensorList())
        return write_tensor_list(w, v);
    if (!w.fits(3))
        return false;
    if (v.isInt()) {
        w.token(OP_INPUT_INT, 0, 0);
        w.put64(v.toInt());
    } else if (v.isDouble()) {
        w.token(OP_INPUT_DOUBLE, 0, 0);
        w.put64(bits_of(v.toDouble()));
    } else if (v.isBool()) {
        w.token(OP_INPUT_BOOL, 0, v.toBool());
    } else if (v.isNone()) {
        w.token(OP_INPUT_NONE, 0, 0);
    } else if (v.isList()) {
        return write_list(w, v);
    } else if (v.isDevice()) {
        c10::Device device = v.toDevice();
        w.token(OP_INPUT_OTHER, 1 + static_cast<uint32_t>(device.type()),
                static_cast<uint16_t>(device.index()));
    } else if (v.isString() && with_outputs.load(std::memory_order_relaxed)) {
        return write_text(w, v.toStringRef());
    } else {
        w.token(OP_INPUT_OTHER, 0, 0);
    }
    return true;
}

// Older torches do not tell.
template <typename Function> auto overload_of(const Function &fn, int) -> decltype(fn.overload_name()) {
    return fn.overload_name();
}
template <typename Function> const char *overload_of(const Function &, long) { return ""; }

void write_overload(InputWriter &w, const at::RecordFunction &fn) {
    const char *overload = overload_of(fn, 0);
    if (*overload != '\0') {
        w.token(OP_INPUT_OVERLOAD, 0, 0);
        w.put(op_names_intern(overload, std::strlen(overload)));
    }
}

// Out of line: its block would be every op's stack frame.
__attribute__((noinline)) void write_named(InputWriter &w, const at::RecordFunction &fn, bool given) {
    Keywords keywords;
    if (given)
        keywords = keywords_of(fn, 0);
    if (with_modules.load(std::memory_order_relaxed)) {
        std::string modules = script_modules();
        if (!modules.empty())
            keywords.emplace(OP_MODULE_HIERARCHY, std::move(modules));
    }
    if (keywords.empty())
        return;
    op_fields fields;
    uint32_t count = fields_of(&fields, keywords);
    if (count == 0 || !w.fits(1 + count))
        return;
    w.token(OP_INPUT_KEYWORDS, 0, count);
    for (uint32_t i = 0; i < count; i++)
        w.put(fields.words[i]);
}

// Torch refuses to tell the inputs where they were not asked for.
template <bool with_inputs> uint32_t write_args(uint32_t *words, const at::RecordFunction &fn) {
    InputWriter w(words + 1);
    w.put64(static_cast<int64_t>(fn.forwardThreadId()));
    if (with_overloads.load(std::memory_order_relaxed)) {
        write_overload(w, fn);
    }
    bool given = with_inputs && may_have_keywords(fn);
    if (given || with_modules.load(std::memory_order_relaxed))
        write_named(w, fn, given);
    for (const auto &input : with_inputs ? fn.inputs() : c10::ArrayRef<const c10::IValue>()) {
        if (!write_input(w, input)) {
            w.token(OP_INPUT_CUT, 0, 0);
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
    for (const auto &output : fn.outputs()) {
        if (!write_input(w, output)) {
            w.token(OP_INPUT_CUT, 0, 0);
            break;
        }
    }
    words[0] = OP_ARGS_HEADER(OP_ARGS_OUTPUTS, w.count());
    return 1 + w.count();
}

} // namespace

#endif
