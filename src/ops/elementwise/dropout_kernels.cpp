#include "ops/elementwise/dropout_kernels.hpp"

#include "trireme/math/random.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

constexpr std::int64_t tile = 1024;  // elements whose random words are computed together

template <typename T>
void dropout(const T* x, T factor, const DropoutNumbers& numbers, T* y, std::int64_t count, bool accumulate) {
  std::uint32_t words[tile + 4];
  std::int64_t done = 0;
  while (done < count) {
    const std::uint64_t index = numbers.first_index + static_cast<std::uint64_t>(done);
    const std::uint64_t first_counter = index / 4;
    const auto skipped = static_cast<std::int64_t>(index % 4);
    const std::int64_t part = count - done < tile ? count - done : tile;
    const auto counters = static_cast<std::int32_t>((skipped + part + 3) / 4);
#pragma omp simd
    for (std::int32_t i = 0; i < counters; ++i) {
      const auto four = math::philox(first_counter + static_cast<std::uint64_t>(i), numbers.stream, numbers.seed);
      words[4 * i] = four.word0;
      words[4 * i + 1] = four.word1;
      words[4 * i + 2] = four.word2;
      words[4 * i + 3] = four.word3;
    }
    const std::uint32_t* word = words + skipped;
    const T* from = x + done;
    T* to = y + done;
#pragma omp simd
    for (std::int64_t i = 0; i < part; ++i) {
      const T kept = (word[i] >= numbers.threshold ? factor : T(0)) * from[i];
      to[i] = accumulate ? to[i] + kept : kept;
    }
    done += part;
  }
}

template <typename T>
constexpr DropoutKernels<T> kernels{dropout<T>};

}  // namespace

const KernelTable<DropoutKernels> dropout_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
