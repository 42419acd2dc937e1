#pragma once

#include <cstddef>
#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/device/device.hpp"
#include "trireme/ops/update/adam.hpp"

// Adam with moments of 8 bits (Dettmers, Lewis, Shleifer, Zettlemoyer 2022, arXiv 2110.02861). A moment is stored as a code for
// each element and the largest magnitude of each block. Codes are relative to this magnitude; src/ops/update/dynamic_codes.hpp
// defines them.
namespace trireme TRIREME_EXPORT {
namespace ops {

inline constexpr std::int64_t block_of_8bit = 256;  // elements; the first block of a parameter begins at its first element

// Pointers to a run of neighbouring elements in each plane, and to the values of the blocks that contain these elements.
template <typename T>
struct Adam8bitPlanes {
  const T* gradient;
  T* weight;
  std::uint8_t* first_codes;
  std::uint8_t* second_codes;
  float* first_absmax;  // by block
  float* second_absmax;
};

// Updates `count` elements; the first element begins a block. The last block may be shorter. The moments are computed as in
// AdamUpdate, in the type of the weights, and rounded to codes at the end of the step. T: float or double.
template <typename T, typename D = Cpu>
TRIREME_EXPORT void adam_8bit(const AdamStep& step, std::size_t count, const Adam8bitPlanes<T>& planes, D = {});

// For a part of one block, if other ranks update the rest of the block. Sets absmax[0] and absmax[1] to the largest magnitudes
// that the moments of this part will have. Changes nothing else. A skipped step does not write absmax.
template <typename T, typename D = Cpu>
TRIREME_EXPORT void measure_adam_8bit(const AdamStep& step, std::size_t count, const Adam8bitPlanes<T>& planes, float* absmax,
                                      D = {});

// Updates a part of one block. absmax[2 * parts]: the pairs that measure_adam_8bit() made for all parts of the block.
template <typename T, typename D = Cpu>
TRIREME_EXPORT void adam_8bit_part(const AdamStep& step, std::size_t count, const Adam8bitPlanes<T>& planes,
                                   const float* absmax, std::int64_t parts, D = {});

}  // namespace ops
}  // namespace trireme
