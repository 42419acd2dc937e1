#pragma once

#include <cuda_runtime_api.h>

#include "trireme/device/stream.hpp"

namespace trireme::device {

inline cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }
inline cudaStream_t native_stream() { return native(current_stream()); }  // this thread's stream

}  // namespace trireme::device
