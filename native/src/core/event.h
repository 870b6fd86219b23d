/* The record of one event, and the chunk that holds many: the layout in memory, in the
 * session file and in the spill file. Read by C (the collector) and C++ (the torch observer). */
#ifndef OP_EVENT_H
#define OP_EVENT_H

#include <stddef.h>
#include <stdint.h>

enum op_kind {
    OP_RANGE = 1,       /* record_function, range_push */
    OP_TORCH = 2,       /* RecordFunction; its scope is in the low half of its flags */
    OP_ITT = 3,         /* ITT task */
    OP_NVTX = 4,        /* NVTX range */
    OP_PYTHON_CALL = 5, /* Python function */
    OP_C_CALL = 6,      /* builtin called from Python */
    OP_MARK = 7,        /* an instant */
    OP_MEMORY = 8,      /* an instant: memory taken or given back (OP_ARGS_MEMORY) */
    OP_RUNTIME = 9,     /* a call of a device's runtime: a host event */
    OP_DRIVER = 10,     /* a call of its driver: a host event */
    OP_KERNEL = 11,     /* from here on: what ran on a device */
    OP_MEMCPY = 12,
    OP_MEMSET = 13,
    OP_SYNC = 14,
    OP_DEVICE_RANGE = 15, /* from the first to the last kernel launched in a range */
    OP_OUTPUTS = 16,      /* records only: what the op around it gave back (OP_ARGS_OUTPUTS) */
    OP_COUNTERS = 17,     /* records only: what was counted in the event around it (OP_ARGS_FIELDS) */
    OP_STACK = 18,  /* records only, after an event's begin: the number of its C++ stack's innermost
                     * frame is in aux (OP_ARGS_STACK) */
    OP_MODULE = 19, /* records only: a file that the frames lie in, under its path (OP_ARGS_MODULE) */
    OP_DEVICE_MEMORY = 20 /* on the way into the columns only: OP_MEMORY by CUPTI; aux is its place */
};

#define OP_SCOPE_MASK 0x0f      /* at::RecordScope; ranges of other sources: OP_SCOPE_USER */
#define OP_SCOPE_BACKWARD 1     /* at::RecordScope::BACKWARD_FUNCTION */
#define OP_SCOPE_USER 7         /* at::RecordScope::USER_SCOPE */
#define OP_FLAG_CROSSING 0x01   /* a call that overlaps an op or range in part (columns only) */
#define OP_FLAG_VIEW 0x02       /* an op that is a view (views.h; columns only) */
#define OP_FLAG_ASYNC 0x10      /* ended out of order or on another thread: no parent of anything */
#define OP_FLAG_UNFINISHED 0x20 /* open when the window closed */
#define OP_FLAG_BACKGROUND 0x40 /* during a step, on a thread that is not part of it (columns only) */
#define OP_FLAG_ENGINE 0x40     /* a range of autograd's engine around a node (records only) */
#define OP_FLAG_CREDITED                                                                               \
    0x80                    /* memory that the event around it accounts for, or nobody (columns only) */
#define OP_FLAG_BEFORE 0x80 /* a call that was open when the window opened (records only) */
#define OP_FLAG_ALIASES 0x80 /* an op whose schema says that it aliases (records only) */
#define OP_NO_SEQUENCE UINT32_MAX

/* Written in place when the event begins; `end` is filled in later. Events of a thread stand in
 * the order in which they began, so with `depth` that order is the tree in preorder. Python and C
 * calls are a second tree in the same order: a context manager's range outlives the call that
 * began it, and neither may tear the other. */
typedef struct op_event {
    uint64_t start; /* ticks (clock.h) */
    uint64_t end;   /* ticks; 0 while open */
    uint32_t name;  /* interned id (names.h) */
    uint16_t args;  /* word offset from the chunk's start of the argument block; 0: none */
    uint16_t line;  /* of the Python function around it, where it began; 0: unknown */
    uint32_t aux;   /* OP_TORCH: autograd sequence number, OP_NO_SEQUENCE if none */
    uint8_t kind;
    uint8_t flags;
    uint16_t depth; /* open records of its tree below this one on its thread */
} op_event;

#define OP_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */
#define OP_CHUNK_MIN (8u << 10)
#define OP_CHUNK_MAX (256u << 10)

/* Events grow up from the header, argument blocks down from the end. Fields above the line are
 * what a reader of a dead process's file relies on: `count` and `arg_words` are published with
 * release order after what they count. */
typedef struct op_chunk {
    uint32_t magic;     /* OP_CHUNK_MAGIC while owned by a thread, else 0 */
    uint32_t bytes;     /* of the chunk, this header included */
    uint32_t window;    /* the window it belongs to */
    uint32_t thread;    /* index of the owner */
    uint32_t os_tid;    /* of the owner */
    uint32_t sequence;  /* 0, 1, 2... among the owner's chunks in this window */
    uint32_t count;     /* events */
    uint32_t arg_words; /* words of argument blocks, at the end of the chunk */
    /* ---- this process only ---- */
    uint32_t open; /* records without an end, counted by the owner: such a chunk stays in memory */
    uint32_t unit; /* place in the pool */
    struct op_chunk *next; /* in the list of full chunks */
    uint64_t torch_thread; /* torch's own number of the owner, 0 until a torch op was seen */
    uint64_t reserved;
} op_chunk;

/* Argument block: one header word (type in the low byte, words after the header above it). */
enum op_args_type {
    OP_ARGS_TEXT = 1,  /* byte length, then the bytes */
    OP_ARGS_TORCH = 2, /* forward thread (2 words), then one token an input */
    /* OP_ARGS_MEMORY_WORDS words: two each for the address, the bytes (negative: given back), the
     * bytes that the allocator has given out and those it holds (-1: unknown); then one each for
     * the device's type and index (torch's numbers, index -1 for the host). Address 0: memory that
     * was asked for and not to be had. */
    OP_ARGS_MEMORY = 3,
    /* Named values (fields.h), each a word of its key's name id, a word of its type (low byte) and
     * count, and then so many values. */
    OP_ARGS_FIELDS = 4,
    OP_ARGS_OUTPUTS = 5, /* id of the op's schema, then one token an output */
    /* Results only: of a call of CUDA an op_device_call, of what ran on a device an op_device_work. */
    OP_ARGS_DEVICE_CALL = 6,
    OP_ARGS_DEVICE_WORK = 7,
    /* Frames of a thread's C++ stacks that were not met before on it in this window: the number of the
     * frame that called the first of them, then an address of two words for each, outermost first.
     * They are numbered on, and the last has the number in aux. */
    OP_ARGS_STACK = 8,
    OP_ARGS_MODULE = 9, /* op_module (loaded.h) */
    OP_ARGS_INPUT = 10  /* as OP_ARGS_TEXT, where inputs are recorded: torch takes the text for one */
};
#define OP_STACK_BOTTOM 0u /* what calls the first frame of a thread */
#define OP_STACK_BEYOND 1u /* what calls the outermost frame of a stack that was too deep */
#define OP_STACK_FIRST 2u
#define OP_ARGS_MEMORY_WORDS 10u
/* Of what is given back; a result has the bytes of when it was taken, 0 if before the window. */
#define OP_BYTES_UNKNOWN INT64_MIN
#define OP_ARGS_HEADER(type, words) ((uint32_t)(type) | ((uint32_t)(words) << 8))
#define OP_ARGS_MAX_WORDS 1024u

/* Input tokens of OP_ARGS_TORCH: tag in bits 0-7, dtype 8-15, rank or length 16-31. */
enum op_input_tag {
    OP_INPUT_OTHER = 0,       /* a device where dtype is not 0: 1 + its type, its index in the length */
    OP_INPUT_TENSOR = 1,      /* rank sizes, rank strides, a word each */
    OP_INPUT_TENSOR_WIDE = 2, /* the same, two words each */
    OP_INPUT_UNDEFINED = 3,   /* a tensor without storage */
    OP_INPUT_TENSOR_LIST = 4, /* length, then so many tensor tokens */
    OP_INPUT_INT = 5,         /* two words */
    OP_INPUT_DOUBLE = 6,      /* two words */
    OP_INPUT_BOOL = 7,        /* value in the length field */
    OP_INPUT_INT_LIST = 8,    /* length elements of two words */
    OP_INPUT_DOUBLE_LIST = 9,
    OP_INPUT_BOOL_LIST = 10, /* length elements of one word */
    OP_INPUT_TEXT = 11,      /* length bytes, padded to words */
    OP_INPUT_NONE = 12,
    OP_INPUT_CUT = 13,              /* the inputs from here on did not fit */
    OP_INPUT_TENSOR_UNSTRIDED = 14, /* sparse and the like: rank sizes of two words, no strides */
    /* Which tensor the token before is, in length words: two for the address of its TensorImpl, two
     * for that of its storage, one each for the device's type and index, two for where in the storage
     * it begins, in elements. */
    OP_INPUT_IDENTITY = 15,
    /* Before the inputs, no input itself: the name id of the op's overload, where there is one and it
     * was asked for. */
    OP_INPUT_OVERLOAD = 16,
    /* Before the inputs too, behind an overload: length words, a block of named values
     * (OP_ARGS_FIELDS) that the op was given by keyword. */
    OP_INPUT_KEYWORDS = 17,
    /* Before all of these: the nodes of autograd's graph that the op made (bits 8 to 31, filled in at
     * its end), and two words of bytes of the tensors that it was given. */
    OP_INPUT_WORK = 18,
    /* Behind it, two words: the FLOPs of an op that has a formula (flop_formulas.h), where not 0. */
    OP_INPUT_FLOPS = 19
};
#define OP_WORK_WORDS 3u
#define OP_FLOPS_WORDS 3u
/* The key of such a value that nobody gave: the modules that the op ran in. */
#define OP_MODULE_HIERARCHY "Module Hierarchy"

/* What the torch observer looks at besides the ops themselves. */
enum op_observe {
    OP_OBSERVE_INPUTS = 1,
    OP_OBSERVE_MEMORY = 2,
    OP_OBSERVE_IDENTITIES = 4,
    OP_OBSERVE_OUTPUTS = 8,
    OP_OBSERVE_OVERLOADS = 16,
    OP_OBSERVE_CLOSELY = 32,  /* counters, or C++ stacks */
    OP_OBSERVE_MODULES = 64,  /* of TorchScript */
    OP_OBSERVE_WORK = 128,    /* OP_INPUT_WORK and OP_INPUT_FLOPS of each op */
    OP_OBSERVE_RETAINED = 256 /* of memory, only what steps leave in use */
};

#ifdef __cplusplus
#define OP_STATIC_ASSERT static_assert
#else
#define OP_STATIC_ASSERT _Static_assert
#endif
OP_STATIC_ASSERT(sizeof(op_event) == 32, "two events a cache line");
OP_STATIC_ASSERT(offsetof(op_event, depth) == 30, "no padding inside an event");
OP_STATIC_ASSERT(sizeof(op_chunk) == 64, "events start on a cache line");
OP_STATIC_ASSERT(OP_CHUNK_MAX / sizeof(uint32_t) <= UINT16_MAX + 1,
                 "any word of a chunk has an offset");
OP_STATIC_ASSERT(offsetof(op_chunk, arg_words) == 28, "what the file's reader relies on");

#endif
