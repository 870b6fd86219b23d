/* The exported CUPTI functions. */
#include "fake.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ENTER(need)                                                                                    \
    do {                                                                                               \
        CUptiResult early = fake_enter(__func__, need);                                                \
        if (early != CUPTI_SUCCESS)                                                                    \
            return early;                                                                              \
    } while (0)

static CUpti_TimestampCallbackFunc clock_callback;
static CUpti_ActivityThreadIdType thread_id_type;
static char subscriber[1], other_subscriber[64]; /* the other's name; "": none */
static bool subscribed;

/* ---- version, texts, clock --------------------------------------------------------------- */

CUptiResult cuptiGetVersion(uint32_t *version) {
    ENTER(FAKE_ANYWHERE);
    if (!version)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *version = fake_api_version();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text) {
    ENTER(FAKE_ANYWHERE);
    if (!text)
        return CUPTI_ERROR_INVALID_PARAMETER;
    const char *name = fake_result_name(result);
    *text = name ? name : "<unknown>";
    return name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char **name) {
    ENTER(FAKE_WITHOUT_GPU);
    if (!name)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *name = fake_call_name(domain, cbid);
    return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

uint64_t fake_now(void) {
    CUpti_TimestampCallbackFunc callback = __atomic_load_n(&clock_callback, __ATOMIC_ACQUIRE);
    if (callback)
        return callback();
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp) {
    ENTER(FAKE_WITHOUT_GPU);
    if (!timestamp)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *timestamp = fake_now();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
    ENTER(FAKE_WITH_GPU);
    if (!callback)
        return CUPTI_ERROR_INVALID_PARAMETER;
    __atomic_store_n(&clock_callback, callback, __ATOMIC_RELEASE);
    return CUPTI_SUCCESS;
}

/* ---- threads ----------------------------------------------------------------------------- */

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
    ENTER(FAKE_WITH_GPU);
    if (type > CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
        return CUPTI_ERROR_INVALID_PARAMETER;
    __atomic_store_n(&thread_id_type, type, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type) {
    ENTER(FAKE_WITH_GPU);
    if (!type)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *type = __atomic_load_n(&thread_id_type, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

uint32_t fake_thread_id(void) {
    if (__atomic_load_n(&thread_id_type, __ATOMIC_RELAXED) == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
        return (uint32_t)gettid();
    return (uint32_t)pthread_self();
}

/* ---- one subscriber at a time ------------------------------------------------------------ */

static CUptiResult subscribe(CUpti_SubscriberHandle *handle, char *old, size_t old_size) {
    if (!handle)
        return CUPTI_ERROR_INVALID_PARAMETER;
    CUptiResult result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    fake_lock("cuptiSubscribe");
    if (!subscribed && !other_subscriber[0]) {
        subscribed = true;
        *handle = (CUpti_SubscriberHandle)(void *)subscriber;
        result = CUPTI_SUCCESS;
    } else if (old && old_size) {
        const char *name = other_subscriber[0] ? other_subscriber : "CUPTI for (null)";
        size_t length = strlen(name) < old_size ? strlen(name) : old_size - 1;
        memcpy(old, name, length);
        old[length] = 0;
    }
    fake_unlock();
    return result;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *data) {
    ENTER(FAKE_WITH_GPU);
    (void)callback;
    (void)data;
    return subscribe(handle, NULL, 0);
}

#if CUPTI_API_VERSION >= 130001
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *data,
                              CUpti_SubscriberParams *parameters) {
    ENTER(FAKE_WITH_GPU);
    (void)callback;
    (void)data;
    if (!parameters)
        return subscribe(handle, NULL, 0);
    if (parameters->structSize < CUpti_SubscriberParams_STRUCT_SIZE)
        return CUPTI_ERROR_INVALID_PARAMETER;
    return subscribe(handle, parameters->oldSubscriberName, parameters->oldSubscriberSize);
}
#endif

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
    ENTER(FAKE_WITH_GPU);
    fake_lock(__func__);
    bool ours = subscribed && (void *)handle == (void *)subscriber;
    subscribed = subscribed && !ours;
    fake_unlock();
    return ours ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

void fake_other_subscriber(const char *name) {
    fake_lock(__func__);
    strncpy(other_subscriber, name ? name : "", sizeof other_subscriber - 1);
    fake_unlock();
}

/* ---- kinds ------------------------------------------------------------------------------- */

static CUptiResult enable(CUpti_ActivityKind kind, bool on) {
    if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= FAKE_KINDS)
        return CUPTI_ERROR_INVALID_KIND;
    fake_lock(on ? "cuptiActivityEnable" : "cuptiActivityDisable");
    fake_enable(kind, on);
    if (on)
        fake_start_worker();
    fake_unlock();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    ENTER(FAKE_WITH_GPU);
    return enable(kind, true);
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
    ENTER(FAKE_WITH_GPU);
    return enable(kind, false);
}

static CUptiResult filter(CUpti_ActivityKind kind, CUpti_CallbackId cbid, uint8_t on) {
    fake_lock("a filter of calls");
    fake_filter(kind, cbid, on);
    if (on)
        fake_start_worker();
    fake_unlock();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t on) {
    ENTER(FAKE_WITH_GPU);
    return filter(CUPTI_ACTIVITY_KIND_RUNTIME, cbid, on);
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t on) {
    ENTER(FAKE_WITH_GPU);
    return filter(CUPTI_ACTIVITY_KIND_DRIVER, cbid, on);
}

CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t on) {
    ENTER(FAKE_WITH_GPU);
    fake_lock(__func__);
    fake_want_idle_queries(on);
    fake_unlock();
    return CUPTI_SUCCESS;
}

/* ---- attributes: allowed in a buffer callback too ---------------------------------------- */

static CUptiResult flag_attribute(CUpti_ActivityAttribute attribute, size_t *size, void *value) {
    if (!size || !value)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (attribute != CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER &&
        attribute != CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER)
        return CUPTI_ERROR_INVALID_PARAMETER;
    return *size < sizeof(uint8_t) ? CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT : CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t *size, void *value) {
    ENTER(FAKE_WITH_GPU);
    CUptiResult result = flag_attribute(attribute, size, value);
    if (result != CUPTI_SUCCESS)
        return result;
    bool on = *(const uint8_t *)value != 0;
    if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER)
        fake_set_zeroed(on);
    else
        fake_set_per_thread(on);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, size_t *size, void *value) {
    ENTER(FAKE_WITH_GPU);
    CUptiResult result = flag_attribute(attribute, size, value);
    if (result != CUPTI_SUCCESS)
        return result;
    *(uint8_t *)value = attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER
                            ? fake_is_zeroed()
                            : fake_is_per_thread();
    *size = sizeof(uint8_t);
    return CUPTI_SUCCESS;
}

/* ---- buffers and records ----------------------------------------------------------------- */

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
    ENTER(FAKE_WITHOUT_GPU);
    if (!request || !complete)
        return CUPTI_ERROR_INVALID_PARAMETER;
    fake_lock(__func__);
    fake_set_callbacks((fake_callbacks){.request = request, .complete = complete});
    fake_unlock();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
    ENTER(FAKE_WITH_GPU);
    fake_lock(__func__);
    bool registered = fake_get_callbacks().complete != NULL;
    fake_unlock();
    if (!registered)
        return CUPTI_ERROR_INVALID_OPERATION;
    fake_flush((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped) {
    ENTER(FAKE_WITHOUT_GPU);
    (void)context;
    (void)stream;
    if (!dropped)
        return CUPTI_ERROR_INVALID_PARAMETER;
    fake_lock(__func__);
    *dropped = fake_take_dropped();
    fake_unlock();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *data, size_t valid, CUpti_Activity **record) {
    ENTER(FAKE_WITHOUT_GPU);
    if (!data || !record)
        return CUPTI_ERROR_INVALID_PARAMETER;
    uint8_t *next = data;
    if (*record)
        next = (uint8_t *)*record + fake_stride((*record)->kind);
    if (next >= data + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    size_t stride = fake_stride(((CUpti_Activity *)next)->kind);
    if (!stride)
        return CUPTI_ERROR_INVALID_KIND;
    if (next + stride > data + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)next;
    return CUPTI_SUCCESS;
}

void fake_reset_settings(void) {
    __atomic_store_n(&clock_callback, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&thread_id_type, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT, __ATOMIC_RELAXED);
    subscribed = false;
    other_subscriber[0] = 0;
}
