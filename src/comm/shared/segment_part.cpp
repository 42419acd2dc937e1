#include "comm/shared/segment_part.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/reduce/copy_past_caches.hpp"
#include "comm/reduce/reduce.hpp"

namespace trireme::comm {
namespace {

Range intersection(Range a, Range b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

void reduce_range(const Portion& portion, Range range, bool to_all) {
  if (range.count() <= 0) return;
  const std::size_t offset = static_cast<std::size_t>(range.begin - portion.range.begin) * size_of(portion.call.dtype);
  thread_local std::vector<const std::byte*> from;
  thread_local std::vector<std::byte*> to;
  from.clear();
  to.clear();
  for (const std::byte* block : portion.from) from.push_back(block + offset);
  if (to_all) {
    for (std::byte* block : portion.to) to.push_back(block + offset);
  } else {
    to.push_back(portion.to[static_cast<std::size_t>(portion.me)] + offset);
  }
  reduce(portion.call.arithmetic(), portion.call.dtype, from, to, static_cast<std::size_t>(range.count()));
}

void copy_range(const Portion& portion, Range range, int owner) {
  if (range.count() <= 0 || owner == portion.me) return;
  const std::size_t size = size_of(portion.call.dtype);
  const std::size_t offset = static_cast<std::size_t>(range.begin - portion.range.begin) * size;
  std::memcpy(portion.to[static_cast<std::size_t>(portion.me)] + offset, portion.from[static_cast<std::size_t>(owner)] + offset,
              static_cast<std::size_t>(range.count()) * size);
}

// The owner copies its data to the others, since they are in its cache; the copies bypass the cache.
void copy_to_others(const Portion& portion, Range range) {
  if (range.count() <= 0) return;
  const std::size_t size = size_of(portion.call.dtype);
  const std::size_t offset = static_cast<std::size_t>(range.begin - portion.range.begin) * size;
  const auto me = static_cast<std::size_t>(portion.me);
  for (std::size_t rank = 0; rank < portion.to.size(); ++rank) {
    if (rank == me) continue;
    copy_past_caches(portion.to[rank] + offset, portion.from[me] + offset, static_cast<std::size_t>(range.count()) * size);
  }
}

// Calls action(range, owner) for the range of each part of the data that lies in the portion.
template <typename Action>
void for_each_part(const Portion& portion, Action action) {
  const int parts = portion.call.num_parts(static_cast<int>(portion.from.size()));
  for (int part = 0; part < parts; ++part) {
    const Range range = part_of(static_cast<std::int64_t>(portion.call.count), part, parts);
    action(intersection(range, portion.range), portion.call.owner_of(part));
  }
}

}  // namespace

void do_my_part(const Portion& portion) {
  switch (portion.call.work()) {
    case CallKind::send:
    case CallKind::receive:
    case CallKind::barrier: return;
    case CallKind::all_reduce: {
      const Range mine = part_of(portion.range.count(), portion.me, static_cast<int>(portion.from.size()));
      reduce_range(portion, {portion.range.begin + mine.begin, portion.range.begin + mine.end}, true);
      return;
    }
    case CallKind::reduce_scatter:
      for_each_part(portion, [&](Range range, int owner) {
        if (owner == portion.me) reduce_range(portion, range, false);
      });
      return;
    case CallKind::all_gather:
      for_each_part(portion, [&](Range range, int owner) {
        if (portion.staged) {
          copy_range(portion, range, owner);
        } else if (owner == portion.me) {
          copy_to_others(portion, range);
        }
      });
      return;
    case CallKind::broadcast: copy_range(portion, portion.range, portion.call.source()); return;
  }
}

}  // namespace trireme::comm
