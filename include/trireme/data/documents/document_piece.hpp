#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Tokens [begin, begin + count) of a document.
struct DocumentPiece {
  std::int64_t document = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;

  bool operator==(const DocumentPiece&) const = default;
};

// What happens to a document that is longer than a row.
enum class LongDocuments : std::uint8_t {
  truncated,  // keeps its first tokens
  split,      // cuts it into several documents; keeps all tokens and targets
  refused,    // throws Error with its number
};

}  // namespace data
}  // namespace trireme
