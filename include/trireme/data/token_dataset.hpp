#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A long sequence of tokens. A value: copies share the tokens, which never change.
class TokenDataset {
 public:
  static TokenDataset from_bytes(std::string bytes);  // every byte is a token

  static TokenDataset from_tokens(const std::vector<std::int32_t>& tokens);

  // A file of nothing but tokens, uint8, uint16 or uint32 in this machine's byte order, read from the disk as it is used.
  static TokenDataset map(const std::filesystem::path& path, DType dtype);

  std::int64_t size() const noexcept { return size_; }

  // Copies the tokens [position, position + into.size()).
  void window(std::int64_t position, std::span<std::int32_t> into) const;

  TokenDataset part(std::int64_t begin, std::int64_t count) const;

 private:
  TokenDataset(std::shared_ptr<const std::byte> tokens, DType dtype, std::int64_t size);

  std::shared_ptr<const std::byte> tokens_;
  DType dtype_;
  std::int64_t size_;
};

struct TrainingSplit {
  TokenDataset training;    // the first part
  TokenDataset validation;  // the last `validation_fraction` of the tokens
};

TrainingSplit split(const TokenDataset& dataset, double validation_fraction);

}  // namespace data
}  // namespace trireme
