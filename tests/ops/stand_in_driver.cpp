// A CUDA driver for a machine without a GPU, with which cuDNN makes plans: it has no device, loads every module without looking
// at it and never runs anything. Only the test of plans loads it, as libcuda.so.1.
#include <cstddef>

namespace {

constexpr int success = 0;
constexpr int no_device = 100;
constexpr int not_found = 500;

// Addresses that only the driver would read.
char module_place, kernel_place, global_place;

int give(void** handle, char& place) {
  if (handle != nullptr) *handle = &place;
  return success;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return no_device; }
int cuDeviceGetCount(int* count) {
  *count = 0;
  return no_device;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return success;
}
int cuGetProcAddress_v2(const char*, void** function, int, unsigned long, void*) {
  *function = nullptr;
  return not_found;
}
int cuGetErrorString(int, const char** text) {
  *text = "stand-in driver";
  return success;
}
int cuGetErrorName(int, const char** name) {
  *name = "STAND_IN_DRIVER";
  return success;
}

int cuLibraryLoadData(void** library, const void*, void*, void*, unsigned, void*, void*, unsigned) {
  return give(library, module_place);
}
int cuLibraryLoadFromFile(void** library, const char*, void*, void*, unsigned, void*, void*, unsigned) {
  return give(library, module_place);
}
int cuLibraryGetKernel(void** kernel, void*, const char*) { return give(kernel, kernel_place); }
int cuModuleLoadData(void** module, const void*) { return give(module, module_place); }
int cuModuleLoadDataEx(void** module, const void*, unsigned, void*, void**) { return give(module, module_place); }
int cuModuleLoadFatBinary(void** module, const void*) { return give(module, module_place); }
int cuModuleGetFunction(void** function, void*, const char*) { return give(function, kernel_place); }
int cuModuleGetGlobal_v2(void** address, std::size_t* bytes, void*, const char*) {
  if (bytes != nullptr) *bytes = 0;
  return give(address, global_place);
}
int cuFuncGetAttribute(int* value, int, void*) {
  *value = 0;
  return success;
}
int cuKernelGetAttribute(int* value, int, void*, int) {
  *value = 0;
  return success;
}

// Functions that cuDNN looks up; calls have no effect.
#define TRIREME_DOES_NOTHING(name) \
  int name() { return success; }
TRIREME_DOES_NOTHING(cuCtxGetCurrent)
TRIREME_DOES_NOTHING(cuCtxGetDevice)
TRIREME_DOES_NOTHING(cuCtxGetLimit)
TRIREME_DOES_NOTHING(cuCtxPopCurrent)
TRIREME_DOES_NOTHING(cuCtxPushCurrent)
TRIREME_DOES_NOTHING(cuDeviceGet)
TRIREME_DOES_NOTHING(cuDeviceGetAttribute)
TRIREME_DOES_NOTHING(cuDevicePrimaryCtxRelease)
TRIREME_DOES_NOTHING(cuDevicePrimaryCtxReset)
TRIREME_DOES_NOTHING(cuDevicePrimaryCtxRetain)
TRIREME_DOES_NOTHING(cuFuncSetAttribute)
TRIREME_DOES_NOTHING(cuKernelSetAttribute)
TRIREME_DOES_NOTHING(cuLaunchCooperativeKernel)
TRIREME_DOES_NOTHING(cuLaunchKernel)
TRIREME_DOES_NOTHING(cuLaunchKernelEx)
TRIREME_DOES_NOTHING(cuLibraryUnload)
TRIREME_DOES_NOTHING(cuLinkAddData)
TRIREME_DOES_NOTHING(cuLinkAddData_v2)
TRIREME_DOES_NOTHING(cuLinkAddFile_v2)
TRIREME_DOES_NOTHING(cuLinkComplete)
TRIREME_DOES_NOTHING(cuLinkCreate)
TRIREME_DOES_NOTHING(cuLinkCreate_v2)
TRIREME_DOES_NOTHING(cuLinkDestroy)
TRIREME_DOES_NOTHING(cuMemcpyDtoH_v2)
TRIREME_DOES_NOTHING(cuModuleUnload)
TRIREME_DOES_NOTHING(cuOccupancyMaxActiveBlocksPerMultiprocessor)
TRIREME_DOES_NOTHING(cuOccupancyMaxPotentialClusterSize)
TRIREME_DOES_NOTHING(cuStreamGetCtx)
TRIREME_DOES_NOTHING(cuStreamSynchronize)
TRIREME_DOES_NOTHING(cuTensorMapEncodeTiled)
#undef TRIREME_DOES_NOTHING

}  // extern "C"
