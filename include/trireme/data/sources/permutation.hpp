#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A random permutation of [0, size) that takes no memory: each element is computed from (seed, epoch, position).
class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(size_); }
  std::int64_t operator()(std::int64_t position) const;

 private:
  std::uint64_t shuffled(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint64_t seed_;
  std::uint64_t stream_;
  int half_bits_;
};

}  // namespace data
}  // namespace trireme
