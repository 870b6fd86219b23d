/* The record of one event and the chunk that holds many: their layout in memory, in the session file
 * and in the spill file. Shared by C (the collector) and C++ (the torch observer). */
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
    OP_MEMORY = 8,      /* an instant: memory allocated or freed (OP_ARGS_MEMORY) */
    OP_RUNTIME = 9,     /* host event: a call of a device's runtime */
    OP_DRIVER = 10,     /* host event: a call of a device's driver */
    OP_KERNEL = 11,     /* this and the following run on a device */
    OP_MEMCPY = 12,
    OP_MEMSET = 13,
    OP_SYNC = 14,
    OP_DEVICE_RANGE = 15, /* from the first to the last kernel launched in a range */
    OP_OUTPUTS = 16,      /* records only: outputs of the op around it (OP_ARGS_OUTPUTS) */
    OP_COUNTERS = 17,     /* records only: counters of the event around it (OP_ARGS_FIELDS) */
    OP_STACK = 18,  /* records only, after an event's begin: aux is the number of the innermost frame of
                       its C++ stack (OP_ARGS_STACK) */
    OP_MODULE = 19, /* records only: a file with such frames, named by its path (OP_ARGS_MODULE) */
    OP_DEVICE_MEMORY = 20 /* only before the columns exist: OP_MEMORY from CUPTI; aux is its index */
};

#define OP_SCOPE_MASK 0x0f      /* at::RecordScope; OP_SCOPE_USER for ranges of other sources */
#define OP_SCOPE_BACKWARD 1     /* at::RecordScope::BACKWARD_FUNCTION */
#define OP_SCOPE_USER 7         /* at::RecordScope::USER_SCOPE */
#define OP_FLAG_CROSSING 0x01   /* a call that partly overlaps an op or range (columns only) */
#define OP_FLAG_VIEW 0x02       /* an op that is a view (views.h; columns only) */
#define OP_FLAG_ASYNC 0x10      /* ended out of order or on another thread: parent of nothing */
#define OP_FLAG_UNFINISHED 0x20 /* open when the window closed */
#define OP_FLAG_BACKGROUND                                                                             \
    0x40 /* during a step, on a thread that does not take part in it (columns only) */
#define OP_FLAG_ENGINE 0x40   /* a range of autograd's engine around a node (records only) */
#define OP_FLAG_CREDITED 0x80 /* memory of another event, or of none (columns only) */
#define OP_FLAG_BEFORE 0x80   /* a call that was open before the window (records only) */
#define OP_FLAG_ALIASES 0x80  /* an op whose schema has aliases (records only) */
#define OP_NO_SEQUENCE UINT32_MAX

/* Written in place when the event begins; `end` is filled in later. A thread's events are in order of
 * begin, which with `depth` gives the tree in preorder. Python and C calls form a second tree in the
 * same order: a context manager's range outlives its call, and neither tree may break the other. */
typedef struct op_event {
    uint64_t start; /* ticks (clock.h) */
    uint64_t end;   /* ticks; 0 while open */
    uint32_t name;  /* interned id (names.h) */
    uint16_t args;  /* word offset of the argument block from the chunk's start; 0: none */
    uint16_t line;  /* line in the enclosing Python function at begin; 0: unknown */
    uint32_t aux;   /* OP_TORCH: autograd sequence number, OP_NO_SEQUENCE if none */
    uint8_t kind;
    uint8_t flags;
    uint16_t depth; /* open records of its own tree below it on this thread */
} op_event;

#define OP_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */
#define OP_CHUNK_MIN (8u << 10)
#define OP_CHUNK_MAX (256u << 10)

/* Events grow up from the header, argument blocks down from the end. A reader of a dead process's file
 * relies on the fields above the line: `count` and `arg_words` are stored last, with release order. */
typedef struct op_chunk {
    uint32_t magic; /* OP_CHUNK_MAGIC while owned by a thread, else 0 */
    uint32_t bytes; /* of the chunk, this header included */
    uint32_t window;
    uint32_t thread;    /* index of the owning thread */
    uint32_t os_tid;    /* of the owning thread */
    uint32_t sequence;  /* 0, 1, 2... among the owner's chunks in this window */
    uint32_t count;     /* number of events */
    uint32_t arg_words; /* words of argument blocks, at the end of the chunk */
    /* ---- this process only ---- */
    uint32_t open;         /* records without an end; while there are any, the chunk stays in memory */
    uint32_t unit;         /* place in the pool */
    struct op_chunk *next; /* in the list of full chunks */
    uint64_t torch_thread; /* torch's number of the owner; 0 until it ran a torch op */
    uint64_t reserved;
} op_chunk;

/* Argument block: a header word (type in the low byte, length in words above it), then the words. */
enum op_args_type {
    OP_ARGS_TEXT = 1,  /* byte length, then the bytes */
    OP_ARGS_TORCH = 2, /* forward thread (2 words), then one token per input */
    /* OP_ARGS_MEMORY_WORDS words. Two each: the address (0: the allocation failed), the bytes
     * (negative: freed), the bytes that the allocator has handed out and has reserved (-1: unknown).
     * One each: the device's type and index (torch's numbers, index -1 for the host). */
    OP_ARGS_MEMORY = 3,
    /* Named values (fields.h). Each is the name id of its key, a word with its type (low byte) and
     * count, and that many values. */
    OP_ARGS_FIELDS = 4,
    OP_ARGS_OUTPUTS = 5, /* id of the op's schema, then one token per output */
    /* Results only: an op_device_call of a CUDA call, an op_device_work of device work. */
    OP_ARGS_DEVICE_CALL = 6,
    OP_ARGS_DEVICE_WORK = 7,
    /* Frames of a thread's C++ stacks that are new on it in this window: the number of the frame that
     * called the first of them, then a two-word address for each, outermost first. Their numbers
     * continue the thread's; aux has the last one. */
    OP_ARGS_STACK = 8,
    OP_ARGS_MODULE = 9, /* op_module (loaded.h) */
    OP_ARGS_INPUT = 10 /* like OP_ARGS_TEXT if inputs are recorded: torch treats the text as an input */
};
#define OP_STACK_BOTTOM 0u /* caller of a thread's outermost frame */
#define OP_STACK_BEYOND 1u /* caller of the outermost frame kept of a stack that was too deep */
#define OP_STACK_FIRST 2u
#define OP_ARGS_MEMORY_WORDS 10u
/* Bytes of a freed block until the result fills them in; 0 if it was allocated before the window. */
#define OP_BYTES_UNKNOWN INT64_MIN
#define OP_ARGS_HEADER(type, words) ((uint32_t)(type) | ((uint32_t)(words) << 8))
#define OP_ARGS_MAX_WORDS 1024u

/* Input tokens of OP_ARGS_TORCH: tag in bits 0-7, dtype in 8-15, rank or length in 16-31. */
enum op_input_tag {
    OP_INPUT_OTHER = 0,       /* a device if dtype is not 0: 1 + its type; its index is in the length */
    OP_INPUT_TENSOR = 1,      /* rank sizes, rank strides, one word each */
    OP_INPUT_TENSOR_WIDE = 2, /* the same, two words each */
    OP_INPUT_UNDEFINED = 3,   /* a tensor without storage */
    OP_INPUT_TENSOR_LIST = 4, /* then `length` tensor tokens */
    OP_INPUT_INT = 5,         /* two words */
    OP_INPUT_DOUBLE = 6,      /* two words */
    OP_INPUT_BOOL = 7,        /* value in the length field */
    OP_INPUT_INT_LIST = 8,    /* length elements, two words each */
    OP_INPUT_DOUBLE_LIST = 9,
    OP_INPUT_BOOL_LIST = 10, /* length elements, one word each */
    OP_INPUT_TEXT = 11,      /* length bytes, padded to words */
    OP_INPUT_NONE = 12,
    OP_INPUT_CUT = 13,              /* the remaining inputs did not fit */
    OP_INPUT_TENSOR_UNSTRIDED = 14, /* sparse or similar: rank sizes of two words, no strides */
    /* Identity of the tensor in the previous token, `length` words. Two each: the address of its
     * TensorImpl, the address of its storage. One each: the device's type and index. Two: its offset
     * into the storage, in elements. */
    OP_INPUT_IDENTITY = 15,
    /* Before the inputs, not an input: the name id of the op's overload, if it has one and is asked
     * for. */
    OP_INPUT_OVERLOAD = 16,
    /* Also before the inputs, after an overload: `length` words, a block of named values
     * (OP_ARGS_FIELDS) that were passed by keyword. */
    OP_INPUT_KEYWORDS = 17,
    /* Before all of these: the number of autograd graph nodes that the op made (bits 8 to 31, filled in
     * at its end), and in two words the bytes of its input tensors. */
    OP_INPUT_WORK = 18,
    /* After OP_INPUT_WORK, two words: FLOPs of an op with a formula (flop_formulas.h), if not 0.
     * Negative, only if inputs follow: they tell too little, and the ops inside have all FLOPs. */
    OP_INPUT_FLOPS = 19
};
#define OP_WORK_WORDS 3u
#define OP_FLOPS_WORDS 3u
/* The key of such a value that nobody passed: the modules in which the op ran. */
#define OP_MODULE_HIERARCHY "Module Hierarchy"

/* What the torch observer records besides the ops themselves. */
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
