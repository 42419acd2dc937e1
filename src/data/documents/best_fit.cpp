#include "data/documents/best_fit.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace trireme::data {

std::vector<std::vector<std::size_t>> best_fit(std::span<const std::int64_t> sizes, std::int64_t capacity) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t item) { return sizes[item]; });
  std::map<std::int64_t, std::vector<std::size_t>> by_room;  // bins, by how much still fits
  std::vector<std::vector<std::size_t>> bins;
  for (const std::size_t item : order) {
    const auto closest = by_room.lower_bound(sizes[item]);
    const bool fits = closest != by_room.end();
    const std::size_t bin = fits ? closest->second.back() : bins.size();
    const std::int64_t room = fits ? closest->first : capacity;
    if (fits) {
      closest->second.pop_back();
      if (closest->second.empty()) by_room.erase(closest);
    } else {
      bins.emplace_back();
    }
    bins[bin].push_back(item);
    if (room > sizes[item]) by_room[room - sizes[item]].push_back(bin);
  }
  return bins;
}

}  // namespace trireme::data
