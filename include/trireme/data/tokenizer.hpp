#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Every byte is a token.
class ByteTokenizer {
 public:
  static constexpr std::int64_t vocabulary_size = 256;

  std::vector<std::int32_t> encode(std::string_view text) const;
  std::string decode(std::span<const std::int32_t> tokens) const;
};

}  // namespace data
}  // namespace trireme
