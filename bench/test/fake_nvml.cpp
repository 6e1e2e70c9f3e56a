/// A library with NVML's functions, for the tests: one device, whose figures follow from the number of the call. The
/// environment variable FAKE_NVML takes functions away: "no-device", "no-clock", "no-instant-power".

#include <cstdlib>
#include <cstring>

namespace {

constexpr int success = 0;
constexpr int invalid_argument = 2;
constexpr int not_supported = 3;
constexpr int not_found = 6;

int device = 0;
int users = 0;
unsigned clock_calls = 0;

bool is_asked_for(const char* fault)
{
    const char* const wanted = std::getenv("FAKE_NVML");
    return wanted != nullptr && std::strcmp(wanted, fault) == 0;
}

// The layout of nvmlFieldValue_t, written a second time on purpose.
struct FieldValue {
    unsigned field_id;
    unsigned scope_id;
    long long timestamp;
    long long latency_usec;
    unsigned value_type;
    unsigned nvml_return;
    unsigned long long value;
};

}  // namespace

extern "C" {

int nvmlInit_v2()
{
    ++users;
    return success;
}

int nvmlShutdown()
{
    --users;
    return success;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** found)
{
    if (is_asked_for("no-device") || std::strcmp(bus_id, "0000:1A:00.0") != 0) {
        return not_found;
    }
    *found = &device;
    return success;
}

int nvmlDeviceGetClockInfo(void* which, unsigned type, unsigned* mhz)
{
    if (is_asked_for("no-clock")) {
        return not_supported;
    }
    if (which != &device || type != 1) {
        return invalid_argument;
    }
    *mhz = 1400 + 100 * clock_calls++;
    return success;
}

int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts)
{
    *milliwatts = 333000;
    return success;
}

int nvmlDeviceGetFieldValues(void*, int count, FieldValue* values)
{
    if (is_asked_for("no-instant-power")) {
        values[0].nvml_return = not_supported;
        return success;
    }
    if (count != 1 || values[0].field_id != 186 || values[0].scope_id != 0) {
        return invalid_argument;
    }
    values[0].nvml_return = success;
    values[0].value = 698500;
    return success;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons)
{
    *reasons = 0x4;
    return success;
}

/// Not NVML's: how many times it was initialized and not shut down.
int fake_nvml_users() { return users; }
}
