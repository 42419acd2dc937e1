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

// A long sequence of tokens. A value: copies share the tokens, which never change.
class TokenDataset {
 public:
  static TokenDataset from_bytes(std::string bytes);  // every byte is a token

  static TokenDataset from_tokens(const std::vector<std::int32_t>& tokens);

  // A file of nothing but tokens, uint8, uint16 or uint32 in this machine's byte order, read from the disk as it is used.
  static TokenDataset map(const Location& path, DType dtype);

  std::int64_t size() const noexcept { return size_; }

  // Copies the tokens [position, position + into.size()).
  void window(std::int64_t position, std::span<std::int32_t> into) const;

  TokenDataset part(std::int64_t begin, std::int64_t count) const;

  // The largest of all tokens, which are all read for it; of a large file it is kept, see content_at(). 0 of none.
  std::int64_t largest() const;

  // Where they come from: the file, or an empty path, and which of its tokens is the first here.
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

// In words that differ where the content does: the tokens and a digest; of a file, that of the file and which part it is.
std::string content_of(const TokenDataset& tokens);

}  // namespace data
}  // namespace trireme
