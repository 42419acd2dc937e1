#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A long sequence of tokens. Copies are cheap: they share the tokens, which are immutable.
class TokenDataset {
 public:
  static TokenDataset from_bytes(std::string bytes);  // each byte is a token

  static TokenDataset from_tokens(const std::vector<std::int32_t>& tokens);

  // Memory-maps a file that holds only tokens, as uint8, uint16 or uint32 in this machine's byte order.
  static TokenDataset map(const Location& path, DType dtype);

  std::int64_t size() const noexcept { return size_; }

  // Copies the tokens [position, position + into.size()). Throws Error if some of them do not exist.
  void window(std::int64_t position, std::span<std::int32_t> into) const;

  // Tokens [begin, begin + count). Throws Error if some of them do not exist.
  TokenDataset part(std::int64_t begin, std::int64_t count) const;

  // The largest token; 0 if there are no tokens. Reads all tokens; for a large file the result is cached, see number_of_file().
  std::int64_t largest() const;

  // The mapped file (an empty path if there is none), and the place of this dataset's first token in the file.
  const Location& file() const noexcept { return file_; }
  std::int64_t first() const noexcept { return first_; }
  DType dtype() const noexcept { return dtype_; }
  std::span<const std::byte> bytes() const {  // as they are stored
    return {tokens_.get(), static_cast<std::size_t>(size_) * size_of(dtype_)};
  }

 private:
  TokenDataset(std::shared_ptr<const std::byte> tokens, DType dtype, std::int64_t size, Location file = {},
               std::int64_t first = 0);

  std::shared_ptr<const std::byte> tokens_;
  DType dtype_;
  std::int64_t size_;
  Location file_;
  std::int64_t first_;
};

struct TrainingSplit {
  TokenDataset training;    // the first part
  TokenDataset validation;  // the last `validation_fraction` of the tokens
};

TrainingSplit split(const TokenDataset& dataset, double validation_fraction);

// A text that identifies the content: the number of tokens and a digest; for a mapped file, content_at() of the file and the
// part of the file that this dataset is.
std::string content_of(const TokenDataset& tokens);

}  // namespace data
}  // namespace trireme
