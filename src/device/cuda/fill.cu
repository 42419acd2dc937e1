#include <cstdint>
#include <cstring>

#include "device/cuda/fill.hpp"
#include "device/cuda/launch.cuh"

namespace trireme::device {
namespace {

template <typename Word>
cudaError_t fill_words(void* target, const void* element, std::size_t count, cudaStream_t stream) {
  Word word;
  std::memcpy(&word, element, sizeof(Word));
  auto* words = static_cast<Word*>(target);
  return for_each_index(static_cast<std::int64_t>(count), stream, [=] __device__(std::int64_t i) { words[i] = word; });
}

}  // namespace

cudaError_t fill_elements(void* target, const void* element, std::size_t element_bytes, std::size_t count,
                          cudaStream_t stream) {
  switch (element_bytes) {
    case 2: return fill_words<std::uint16_t>(target, element, count, stream);
    case 4: return fill_words<std::uint32_t>(target, element, count, stream);
    case 8: return fill_words<std::uint64_t>(target, element, count, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace trireme::device
