#include "trireme/data/tables/series_windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::data {

SeriesWindows::SeriesWindows(Table rows, const SeriesWindowOptions& options) : rows_(std::move(rows)), options_(options) {
  const auto& [length, horizon, stride] = options;
  require(length > 0 && horizon >= 0 && stride > 0,
          "windows of {} rows with {} rows after them, {} apart, do not exist: set .length above 0", length, horizon, stride);
  require(length <= rows_.size() && horizon <= rows_.size() - length, "{} rows hold no window of {} rows and {} after it",
          rows_.size(), length, horizon);
  size_ = (rows_.size() - length - horizon) / stride + 1;
}

SeriesBatch SeriesWindows::collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const {
  const std::int64_t count = std::ssize(indices), width = rows_.num_features();
  const auto& [length, horizon, stride] = options_;
  SeriesBatch batch{.x = Tensor<float>({count, length, width}), .first_sample = first_sample};
  if (horizon > 0) batch.next = Tensor<float>({count, horizon, width});
  if (horizon > 0 && !rows_.targets().empty()) batch.targets = Tensor<float>({count, horizon, 1});
  const float* features = rows_.features().data();
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t index = indices[static_cast<std::size_t>(row)];
    require(index >= 0 && index < size_, "window {} does not exist among {} windows", index, size_);
    const std::int64_t begin = index * stride, end = begin + length;
    std::copy_n(features + begin * width, length * width, batch.x.data() + row * length * width);
    if (batch.next.defined()) {
      std::copy_n(features + end * width, horizon * width, batch.next.data() + row * horizon * width);
    }
    if (batch.targets.defined()) std::copy_n(rows_.targets().data() + end, horizon, batch.targets.data() + row * horizon);
  }
  return batch;
}

std::string content_of(const SeriesWindows& windows) {
  const auto& [length, horizon, stride] = windows.options();
  return fmt::format("{}; windows of {} and {} rows, {} apart", content_of(windows.table()), length, horizon, stride);
}

}  // namespace trireme::data
