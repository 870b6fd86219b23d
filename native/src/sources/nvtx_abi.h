/* The NVTX 3 ABI, as far as either of our sides uses it: layouts and numbers of nvtxDetail/nvtxTypes.h
 * and nvToolsExt.h, which NVTX 3 has frozen. */
#ifndef OP_NVTX_ABI_H
#define OP_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { NVTX_TABLE_CALLBACKS = 1, NVTX_TABLE_VERSION = 3 };                    /* NvtxExportTableID */
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };                         /* NvtxCallbackModule */
enum { NVTX_ASCII = 1, NVTX_UNICODE = 2, NVTX_REGISTERED = 3 };               /* nvtxMessageType_t */
enum { NVTX_U64 = 1, NVTX_I64, NVTX_DOUBLE, NVTX_U32, NVTX_I32, NVTX_FLOAT }; /* nvtxPayloadType_t */
enum { NVTX_COLOR_ARGB = 1 };                                                 /* nvtxColorType_t */
enum { NVTX_NO_TRACKING = -2 }; /* NVTX_NO_PUSH_POP_TRACKING */
enum { NVTX_VERSION = 3 };

typedef struct nvtx_attributes { /* nvtxEventAttributes_v2 */
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    union {
        uint64_t u64;
        int64_t i64;
        double real;
        uint32_t u32;
        int32_t i32;
        float single;
    } payload;
    int32_t message_type;
    union {
        const char *ascii;
        const wchar_t *unicode;
        uintptr_t registered; /* handle returned by the tool */
    } message;
} nvtx_attributes;
_Static_assert(sizeof(nvtx_attributes) == 48, "nvtxEventAttributes_v2");
_Static_assert(offsetof(nvtx_attributes, message) == 40, "nvtxEventAttributes_v2");

typedef void (*nvtx_function)(void);

typedef struct nvtx_callbacks_table { /* NvtxExportTableCallbacks */
    size_t bytes;
    int (*functions_of)(int module, nvtx_function ***table, unsigned *count);
} nvtx_callbacks_table;

typedef struct nvtx_version_table { /* NvtxExportTableVersionInfo */
    size_t bytes;
    uint32_t version, reserved;
    void (*set_injection_version)(uint32_t);
} nvtx_version_table;

#endif
