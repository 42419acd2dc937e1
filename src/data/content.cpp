#include "trireme/data/content.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <vector>

#include "trireme/core/digest.hpp"

namespace trireme::data {
namespace {

// Of eight bytes at a time, then of those that are left.
std::uint64_t digest_of(std::span<const std::byte> bytes) {
  const auto words = static_cast<std::int64_t>(bytes.size() / 8);
  const auto rest = bytes.subspan(static_cast<std::size_t>(words) * 8);
  return digest("data", DType::uint64, bytes.data(), words) +
         digest("data", DType::uint8, rest.data(), static_cast<std::int64_t>(rest.size()), words);
}

}  // namespace

std::string content_of(std::string_view text) {
  return fmt::format("{} bytes, digest {:016x}", text.size(), digest_of(std::as_bytes(std::span(text))));
}

std::string content_of(const ImageDataset& images) {
  std::vector<std::int32_t> labels;
  std::uint64_t sum = 0;
  for (std::int64_t index = 0; index < images.count(); ++index) {
    labels.push_back(images.label(index));
    sum = 31 * sum + digest_of(std::as_bytes(images.image(index)));
  }
  sum += digest_of(std::as_bytes(std::span(labels)));
  const ImageShape& shape = images.shape();
  return fmt::format("{} images of {} x {} x {}, digest {:016x}", images.count(), shape.height, shape.width, shape.channels,
                     sum);
}

std::string content_of(const Table& table) {
  const std::uint64_t features = digest_of(std::as_bytes(table.features()));
  const std::uint64_t labels = digest_of(std::as_bytes(table.labels()));
  const std::uint64_t targets = digest_of(std::as_bytes(table.targets()));
  return fmt::format("{} rows of {} features, digest {:016x}", table.size(), table.num_features(),
                     31 * (31 * features + labels) + targets);
}

}  // namespace trireme::data
