#include "trireme/data/text/token_dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/files/file_content.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {
namespace {

template <typename Stored>
void widen(const std::byte* tokens, std::int64_t position, std::span<std::int32_t> into) {
  const std::byte* source = tokens + static_cast<std::size_t>(position) * sizeof(Stored);
  for (std::int32_t& token : into) {
    Stored stored;
    std::memcpy(&stored, source, sizeof stored);
    source += sizeof stored;
    require(std::in_range<std::int32_t>(stored), "the token {} in the window at {} is more than {}", stored, position,
            std::numeric_limits<std::int32_t>::max());
    token = static_cast<std::int32_t>(stored);
  }
}

}  // namespace

TokenDataset::TokenDataset(std::shared_ptr<const std::byte> tokens, DType dtype, std::int64_t size, Location file,
                           std::int64_t first)
    : tokens_(std::move(tokens)), dtype_(dtype), size_(size), file_(std::move(file)), first_(first) {}

TokenDataset TokenDataset::from_bytes(std::string bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  const std::span<const std::byte> tokens = std::as_bytes(std::span(*owner));
  return {{owner, tokens.data()}, DType::uint8, static_cast<std::int64_t>(tokens.size())};
}

TokenDataset TokenDataset::from_tokens(const std::vector<std::int32_t>& tokens) {
  const auto owner = std::make_shared<const std::vector<std::uint32_t>>(tokens.begin(), tokens.end());
  return {{owner, std::as_bytes(std::span(*owner)).data()}, DType::uint32, static_cast<std::int64_t>(owner->size())};
}

TokenDataset TokenDataset::map(const Location& path, DType dtype) {
  require(dtype == DType::uint8 || dtype == DType::uint16 || dtype == DType::uint32,
          "tokens are stored as uint8, uint16 or uint32, not as {}", name_of(dtype));
  const auto file = open_file(path);
  const std::uint64_t bytes = file->size();
  if (bytes == 0 || bytes % size_of(dtype) != 0) {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = fmt::format("a file of {} bytes does not hold {} tokens", bytes, name_of(dtype)),
                 .path = path.string()});
  }
  return {file->map(), dtype, static_cast<std::int64_t>(bytes / size_of(dtype)), path};
}

void TokenDataset::window(std::int64_t position, std::span<std::int32_t> into) const {
  const auto count = static_cast<std::int64_t>(into.size());
  require(position >= 0 && count <= size_ && position <= size_ - count, "{} tokens from {} on do not exist among {} tokens",
          count, position, size_);
  switch (dtype_) {
    case DType::uint16: widen<std::uint16_t>(tokens_.get(), position, into); break;
    case DType::uint32: widen<std::uint32_t>(tokens_.get(), position, into); break;
    default: widen<std::uint8_t>(tokens_.get(), position, into); break;
  }
}

TokenDataset TokenDataset::part(std::int64_t begin, std::int64_t count) const {
  require(begin >= 0 && count >= 0 && begin <= size_ && count <= size_ - begin,
          "{} tokens from {} on do not exist among {} tokens", count, begin, size_);
  const std::byte* first = tokens_.get() + static_cast<std::size_t>(begin) * size_of(dtype_);
  return {{tokens_, first}, dtype_, count, file_, first_ + begin};
}

std::int64_t TokenDataset::largest() const {
  const auto look = [this](std::span<const std::byte>) {
    std::vector<std::int32_t> part(1 << 16);
    std::int32_t largest = 0;
    for (std::int64_t begin = 0; begin < size_; begin += std::ssize(part)) {
      part.resize(static_cast<std::size_t>(std::min(std::ssize(part), size_ - begin)));
      window(begin, part);
      largest = std::max(largest, std::ranges::max(part));
    }
    return static_cast<std::uint64_t>(largest);
  };
  const bool is_file = !file_.empty() && first_ == 0 && open_file(file_)->size() == bytes().size();
  return static_cast<std::int64_t>(is_file ? number_of_file(file_, fmt::format("largest {}", name_of(dtype_)), look)
                                           : look({}));
}

TrainingSplit split(const TokenDataset& dataset, double validation_fraction) {
  require(validation_fraction >= 0 && validation_fraction < 1, "the validation fraction {} does not lie in [0, 1)",
          validation_fraction);
  const auto training = static_cast<std::int64_t>(static_cast<double>(dataset.size()) * (1 - validation_fraction));
  return {dataset.part(0, training), dataset.part(training, dataset.size() - training)};
}

std::string content_of(const TokenDataset& tokens) {
  if (tokens.file().empty()) {
    return fmt::format("{} tokens, digest {:016x}", tokens.size(), digest_of_bytes(tokens.bytes()));
  }
  return fmt::format("{} tokens {} to {} of {}", name_of(tokens.dtype()), tokens.first(), tokens.first() + tokens.size(),
                     content_at(tokens.file()));
}

}  // namespace trireme::data
