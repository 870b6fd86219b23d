// What the observer keeps for a thread: the names of its last ops, and where its contexts lie. A part
// of the observer, apart only for its length.
#ifndef OP_THREAD_TABLE_H
#define OP_THREAD_TABLE_H

#include "core/event.h"
#include "core/names.h"
#include "result/flop_formulas.h"
#include "torch_api.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace {

// A program runs the same ops in the same order again and again. So a thread keeps its last few
// thousand names, and where the latest of them stood before, what followed there is the guess for
// what follows now; the whole text confirms it, as names of user scopes and backward nodes lie in
// strings that come and go at the same address. A guess is known an op ahead and is in the
// processor's cache by then. A table found by the name itself waits for memory at each op, which
// costs as much as all the rest of it.

constexpr uint32_t kRecent = 4096;
constexpr uint32_t kKnown = 512;
constexpr uint32_t kBuckets = 1024;

struct alignas(64) KnownName {
    uint32_t id;
    uint32_t length;
    uint32_t seen;      // when, counted in names
    bool is_torchs_own; // of its ops, or of autograd's nodes
    uint8_t flags;      // OP_FLAG_ALIASES, OP_FLAG_ENGINE, or none
    uint8_t formula;    // of its FLOPs (flop_formulas.h), or none
    uint8_t outs;       // how many of its last inputs `overload` only writes to
    const char *overload;
    const char *address; // and where: what to fetch ahead of the next time
    alignas(16) char text[96];
};

// What is found of an op's name.
struct OpName {
    uint32_t id;
    bool is_torchs_own;
    uint8_t flags;
    uint8_t formula;
    KnownName *known; // null: it is not kept
};

constexpr uint32_t kBlock = 256;
constexpr uint32_t kBlocks = (UINT16_MAX + 1) / kBlock;

struct Context;

// What the observer keeps for a thread; what every op needs comes first, in one cache line.
struct ThreadTable {
    void *link;             // the collector chains the tables of ended threads by it
    uint32_t pushed_window; // the last window for which our state was laid on this thread
    uint32_t now;           // counts names
    uint32_t guess;         // the time at which the next name is thought to have been seen before
    uint32_t count;         // of `known`; the first place stands for every name that is not kept
    Context *blocks[kBlocks];
    uint16_t at[kRecent]; // places in `known`, by time
    uint16_t buckets[kBuckets];
    KnownName known[kKnown];
};

inline bool is_same(const KnownName *known, const char *text) {
#if defined(__SSE2__)
    // Whole blocks. They may go past the end of `text`, but into no page that it does not touch.
    constexpr uintptr_t kPage = 4096, kBytes = sizeof(__m128i);
    uint32_t last = known->length & ~(kBytes - 1);
    if (__builtin_expect(reinterpret_cast<uintptr_t>(text) % kPage <= kPage - kBytes - last, 1)) {
        for (uint32_t at = 0;; at += kBytes) {
            __m128i ours = _mm_load_si128(reinterpret_cast<const __m128i *>(known->text + at));
            __m128i theirs = _mm_loadu_si128(reinterpret_cast<const __m128i *>(text + at));
            uint32_t differ = _mm_movemask_epi8(_mm_cmpeq_epi8(ours, theirs)) ^ 0xffff;
            if (at == last) {
                return (differ & ((2u << (known->length - at)) - 1)) == 0; // as far as the final zero
            }
            if (differ != 0) {
                return false;
            }
        }
    }
#endif
    return std::strcmp(known->text, text) == 0;
}

bool is_torchs_own(const char *text) {
    return std::strncmp(text, "aten::", 6) == 0 || std::strncmp(text, "autograd::", 10) == 0;
}

// Whether it is a range around a node, and whether all that it gives back is what it was given, and it
// writes to none of that. The overloads of one name agree on it (tests/oracle/test_views_oracle.py asks
// torch for all of them).
uint8_t flags_of(const at::RecordFunction &fn, const char *text) {
    if (std::strncmp(text, "autograd::engine::", 18) == 0) {
        return OP_FLAG_ENGINE;
    }
    auto schema = fn.operator_schema();
    if (!schema || schema->returns().empty()) {
        return 0;
    }
    for (const c10::Argument &result : schema->returns()) {
        const c10::AliasInfo *alias = result.alias_info();
        if (alias == nullptr || alias->isWrite()) {
            return 0;
        }
    }
    return OP_FLAG_ALIASES;
}

// Ends tell more than beginnings: "autograd::engine::evaluate_function: " begins every sixth name.
uint16_t *bucket_of(ThreadTable *names, const char *text, size_t length) {
    uint64_t words[2] = {0, 0};
    size_t bytes = std::min(length, sizeof words);
    std::memcpy(words, text + length - bytes, bytes);
    uint64_t h = (words[0] * 0x9e3779b97f4a7c15u ^ words[1] ^ length) * 0xc2b2ae3d27d4eb4fu;
    return &names->buckets[(h >> 32) % kBuckets];
}

void keep_name(ThreadTable *names, uint16_t *bucket, uint32_t id, size_t length,
               const at::RecordFunction &fn) {
    const char *text = fn.name();
    names->count = names->count + 1 < kKnown ? names->count + 1 : 1; // the oldest makes room
    *bucket = static_cast<uint16_t>(names->count);
    KnownName *known = &names->known[*bucket];
    known->id = id;
    known->length = static_cast<uint32_t>(length);
    known->seen = names->now;
    known->is_torchs_own = is_torchs_own(text);
    known->flags = flags_of(fn, text);
    known->formula = op_flop_formula(text);
    known->overload = nullptr;
    std::memcpy(known->text, text, length + 1);
}

// Where the guess was wrong.
__attribute__((noinline, cold)) OpName look_up(ThreadTable *names, const at::RecordFunction &fn) {
    const char *text = fn.name();
    size_t length = std::strlen(text);
    uint16_t *bucket = bucket_of(names, text, length);
    uint16_t *now = &names->at[names->now % kRecent];
    if (*bucket == 0 || !is_same(&names->known[*bucket], text)) {
        uint32_t id = op_names_intern(text, length);
        if (length >= sizeof KnownName::text || id == OP_NAME_OVERFLOW) {
            *now = 0;
            names->now++;
            return {id, is_torchs_own(text), flags_of(fn, text), op_flop_formula(text), nullptr};
        }
        keep_name(names, bucket, id, length, fn);
    }
    KnownName *known = &names->known[*bucket];
    names->guess = known->seen + 1;
    known->seen = names->now++;
    known->address = text;
    *now = *bucket;
    return {known->id, known->is_torchs_own, known->flags, known->formula, known};
}

inline OpName name_of(ThreadTable *names, const at::RecordFunction &fn) {
    const char *text = fn.name();
    uint16_t place = names->at[names->guess % kRecent];
    KnownName *known = &names->known[place];
    if (__builtin_expect(place == 0 || !is_same(known, text), 0)) {
        return look_up(names, fn);
    }
    names->at[names->now++ % kRecent] = place;
    uint32_t next = ++names->guess;
    const KnownName *after_next = &names->known[names->at[(next + 1) % kRecent]];
    __builtin_prefetch(names->known[names->at[next % kRecent]].address);
    __builtin_prefetch(after_next);
    __builtin_prefetch(after_next->text + 32);
    return {known->id, known->is_torchs_own, known->flags, known->formula, known};
}

} // namespace

#endif
