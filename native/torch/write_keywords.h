// What an op is given by keyword, as named values (fields.h): torch.compile's and Triton's launches
// tell so which kernel they launch. A part of the observer.
#ifndef OP_WRITE_KEYWORDS_H
#define OP_WRITE_KEYWORDS_H

#include "core/fields.h"
#include "core/names.h"
#include "core/real_text.h"
#include "torch_api.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using Keywords = std::unordered_map<std::string, c10::IValue>;

// As Kineto writes it: outermost first, a point after each.
std::string script_modules() {
    std::string out;
    if (torch::jit::currentModuleHierarchy != nullptr)
        for (const std::string &module : torch::jit::currentModuleHierarchy())
            out += module + ".";
    return out;
}

std::string json_text(const std::string &text) {
    std::string out = "\"";
    for (char c : text) {
        char escaped[8] = {c, '\0'};
        if (c == '"' || c == '\\') {
            std::snprintf(escaped, sizeof escaped, "\\%c", c);
        } else if (static_cast<unsigned char>(c) < ' ') {
            std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
        }
        out += escaped;
    }
    return out + "\"";
}

std::string json_number(double value) {
    char text[OP_REAL_BYTES];
    std::string written = op_real_text(text, 17, value);
    return std::isfinite(value) ? written : '"' + written + '"';
}

template <typename Elements> std::string json_list(const Elements &elements);

// Empty for what has no word there, such as a tensor.
std::string json_of(const c10::IValue &v) {
    return v.isString()   ? json_text(v.toStringRef())
           : v.isBool()   ? (v.toBool() ? "true" : "false")
           : v.isInt()    ? std::to_string(v.toInt())
           : v.isDouble() ? json_number(v.toDouble())
           : v.isNone()   ? "null"
           : v.isList()   ? json_list(v.toListRef())
           : v.isTuple()  ? json_list(v.toTupleRef().elements())
                          : "";
}

template <typename Elements> std::string json_list(const Elements &elements) {
    std::string out = "[";
    for (const c10::IValue &element : elements) {
        std::string text = json_of(element);
        if (text.empty()) {
            return "";
        }
        out += (out.size() > 1 ? ", " : "") + text;
    }
    return out + "]";
}

void put_keyword(op_fields *fields, uint32_t key, const c10::IValue &v) {
    uint64_t bits = 0;
    if (v.isInt()) {
        bits = static_cast<uint64_t>(v.toInt());
        op_fields_put_numbers(fields, key, OP_FIELD_SIGNED, &bits, 1);
    } else if (v.isDouble()) {
        double value = v.toDouble();
        std::memcpy(&bits, &value, sizeof bits);
        op_fields_put_numbers(fields, key, OP_FIELD_DOUBLE, &bits, 1);
    } else if (v.isBool()) {
        op_fields_put_word(fields, key, OP_FIELD_BOOL, v.toBool());
    } else if (v.isString()) {
        const std::string &text = v.toStringRef();
        op_fields_put_text(fields, key, OP_FIELD_TEXT, text.data(), text.size());
    } else {
        std::string text = json_of(v);
        if (!text.empty()) {
            op_fields_put_text(fields, key, OP_FIELD_JSON, text.data(), text.size());
        }
    }
}

// The block's words; 0 where there is nothing to keep. In the keywords' order, which a hash has not.
uint32_t fields_of(op_fields *fields, const Keywords &keywords) {
    op_fields_clear(fields);
    for (const auto &[name, value] :
         std::map<std::string, c10::IValue>(keywords.begin(), keywords.end())) {
        put_keyword(fields, op_names_intern(name.data(), name.size()), value);
    }
    return op_fields_close(fields);
}

} // namespace

#endif
