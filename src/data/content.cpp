#include "trireme/data/content.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <vector>

#include "trireme/core/file_content.hpp"

namespace trireme::data {

std::string content_of(std::string_view text) {
  return fmt::format("{} bytes, digest {:016x}", text.size(), digest_of_bytes(std::as_bytes(std::span(text))));
}

std::string content_of(const TokenDataset& tokens) {
  if (tokens.file().empty()) {
    return fmt::format("{} tokens, digest {:016x}", tokens.size(), digest_of_bytes(tokens.bytes()));
  }
  return fmt::format("{} tokens {} to {} of {}", name_of(tokens.dtype()), tokens.first(), tokens.first() + tokens.size(),
                     content_at(tokens.file()));
}

std::string content_of(const ImageDataset& images) {
  std::vector<std::int32_t> labels;
  std::uint64_t sum = 0;
  for (std::int64_t index = 0; index < images.count(); ++index) {
    labels.push_back(images.label(index));
    sum = 31 * sum + digest_of_bytes(std::as_bytes(images.image(index)));
  }
  sum += digest_of_bytes(std::as_bytes(std::span(labels)));
  const ImageShape& shape = images.shape();
  return fmt::format("{} images of {} x {} x {}, digest {:016x}", images.count(), shape.height, shape.width, shape.channels,
                     sum);
}

std::string content_of(const Table& table) {
  const std::uint64_t features = digest_of_bytes(std::as_bytes(table.features()));
  const std::uint64_t labels = digest_of_bytes(std::as_bytes(table.labels()));
  const std::uint64_t targets = digest_of_bytes(std::as_bytes(table.targets()));
  return fmt::format("{} rows of {} features, digest {:016x}", table.size(), table.num_features(),
                     31 * (31 * features + labels) + targets);
}

}  // namespace trireme::data
