// What any RecordFunction observer costs: callbacks that do nothing.
#include <ATen/record_function.h>

static at::CallbackHandle handle = 0;

static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &) { return nullptr; }
static void end(const at::RecordFunction &, at::ObserverContext *) {}

extern "C" void empty_enable() {
    if (handle == 0) {
        handle = at::addGlobalCallback(at::RecordFunctionCallback(begin, end));
    } else {
        at::reenableCallback(handle);
    }
}

extern "C" void empty_disable() { at::disableCallback(handle); }
