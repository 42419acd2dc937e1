#include "trireme/data/sources/batch_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"

namespace trireme::data {

BatchSizes parse_batch_sizes(std::string_view text) {
  BatchSizes sizes;
  for (bool is_over = text.empty(); !is_over;) {
    const std::string_view one = text.substr(0, text.find(','));
    is_over = one.size() == text.size();
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    const std::size_t sign = one.find('@');
    const auto size = parse_number<std::int64_t>(one.substr(0, sign));
    const auto step = parse_number<std::int64_t>(sign == one.npos ? "" : one.substr(sign + 1));
    require(size && step, "{} is no SIZE@STEP; batch sizes from steps on are written as 64@1000,128@5000", one);
    sizes.push_back({.from_step = *step, .batch_size = *size});
  }
  return sizes;
}

std::string to_text(const BatchSizes& sizes) {
  std::string text;
  for (const auto& [step, size] : sizes) text += fmt::format("{}{}@{}", text.empty() ? "" : ",", size, step);
  return text;
}

std::int64_t batch_size_of(const BatchOptions& options, std::int64_t step) {
  const auto& sizes = options.batch_size_from_step;
  const auto after = std::ranges::upper_bound(sizes, step, {}, &BatchSizeFrom::from_step);
  return after == sizes.begin() ? options.batch_size : std::prev(after)->batch_size;
}

}  // namespace trireme::data
