#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace trireme::device {

// Sets `count` elements of 2, 4 or 8 bytes to *element, which lies on the host.
cudaError_t fill_elements(void* target, const void* element, std::size_t element_bytes, std::size_t count, cudaStream_t stream);

}  // namespace trireme::device
