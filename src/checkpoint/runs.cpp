#include <algorithm>

#include "trireme/checkpoint/manifest.hpp"

namespace trireme::checkpoint {

std::vector<Runs> runs_of(std::span<const Range> ranges) {
  std::vector<Runs> runs;
  for (const Range& range : ranges) {
    if (!runs.empty()) {
      Runs& last = runs.back();
      const std::int64_t end = last.first + (last.times - 1) * last.stride + last.count;
      const std::int64_t stride = last.times == 1 ? range.begin - last.first : last.stride;
      if (range.begin == end && last.times == 1) {
        last.count += range.count();
        continue;
      }
      if (range.count() == last.count && range.begin == last.first + last.times * stride) {
        last.stride = stride;
        ++last.times;
        continue;
      }
    }
    runs.push_back({.first = range.begin, .count = range.count()});
  }
  return runs;
}

std::vector<Range> ranges_of(std::span<const Runs> runs) {
  std::vector<Range> ranges;
  for (const Runs& run : runs) {
    for (std::int64_t time = 0; time < run.times; ++time) {
      const std::int64_t begin = run.first + time * run.stride;
      ranges.push_back({begin, begin + run.count});
    }
  }
  return ranges;
}

std::int64_t numel_of(std::span<const Runs> runs) {
  std::int64_t count = 0;
  for (const Runs& run : runs) count += run.count * run.times;
  return count;
}

}  // namespace trireme::checkpoint
