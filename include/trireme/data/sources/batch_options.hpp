#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The samples of a step from step `from_step` on.
struct BatchSizeFrom {
  std::int64_t from_step = 0;
  std::int64_t batch_size = 0;

  bool operator==(const BatchSizeFrom&) const = default;
};

// Batch sizes for later steps, in ascending order of their steps: {{1000, 64}, {5000, 128}}. A container of at most `most`
// elements, without memory of its own, so that options stay cheap to copy. More elements throw Error.
class BatchSizes {
 public:
  static constexpr std::size_t most = 32;

  constexpr BatchSizes() = default;
  BatchSizes(std::initializer_list<BatchSizeFrom> sizes) {
    for (const BatchSizeFrom& size : sizes) push_back(size);
  }

  void push_back(const BatchSizeFrom& size) {
    require(count_ < most, "a schedule of batch sizes has at most {} of them", most);
    sizes_[count_++] = size;
  }
  void pop_back() {
    if (count_ > 0) --count_;
  }
  void clear() { count_ = 0; }

  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  const BatchSizeFrom* begin() const { return sizes_.data(); }
  const BatchSizeFrom* end() const { return begin() + count_; }

  bool operator==(const BatchSizes& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  std::array<BatchSizeFrom, most> sizes_ = {};
  std::size_t count_ = 0;
};

// How the samples of a step are divided between ranks and micro-batches. All loaders have these options:
//
//   const data::BatchOptions batch{.batch_size = 64, .index = world.rank(), .count = world.size()};
//   data::WindowLoader windows(tokens, {.batch = batch, .length = 128});
struct BatchOptions {
  std::int64_t batch_size = 32;  // samples of a step, over all ranks
  // Other sizes for later steps, for example a batch that grows: {{1000, 64}, {5000, 128}}. Steps ascend from 1 on. A step has
  // as many micro-batches as before, of another size.
  BatchSizes batch_size_from_step = {};
  std::int64_t micro_batch_size = 0;  // samples of a micro-batch in step 0; 0: one micro-batch, the rank's whole share
  std::uint64_t seed = 1;
  int index = 0;  // of this rank among the `count` ranks that read
  int count = 1;
  // Allows a batch_size that is not a multiple of count: the first ranks get one sample more. For all samples to have the same
  // weight, pass the batch size to parallel::model_context(mesh, {.batch_size = ...}); trainer::Run does this.
  bool uneven = false;
};

// Batch sizes as text, 64@1000,128@5000: 64 samples from step 1000 on, 128 from step 5000 on. Parsing throws Error for other
// text.
BatchSizes parse_batch_sizes(std::string_view text);
std::string to_text(const BatchSizes& sizes);

// The samples of a step, over all ranks.
std::int64_t batch_size_of(const BatchOptions& options, std::int64_t step);

}  // namespace data
}  // namespace trireme
