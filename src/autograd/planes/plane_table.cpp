#include "trireme/autograd/planes/plane_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/core/error.hpp"

namespace trireme {
namespace {

constexpr std::int64_t staged_elements = 1 << 20;  // elements of a plane that a visit copies to a GPU at once

}  // namespace

int PlaneTable::add(std::string name, const PlaneOptions& options, std::uint64_t owner) {
  require(options.initial == 0 || options.dtype == DType::float32 || options.dtype == DType::float64,
          "plane {} of {} has the initial value {}: only planes of float32 and float64 may start with another value than 0",
          name, name_of(options.dtype), options.initial);
  for (const Entry& entry : entries_) {
    require(entry.removed || entry.owner != owner || entry.name != name,
            "plane {} was added twice by the same owner: give the second one another name", name);
  }
  entries_.push_back({.name = std::move(name), .options = options, .owner = owner});
  return static_cast<int>(entries_.size()) - 1;
}

void PlaneTable::remove(int plane) {
  Entry& entry = at(plane);
  entry.removed = true;
  entry.memory = nullptr;
  entry.shard = nullptr;
}

void PlaneTable::refuse(int plane) const {
  const auto place = static_cast<std::size_t>(plane);
  const bool removed = plane >= 0 && place < entries_.size();
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = removed
                      ? fmt::format("plane {} of the store was used after its owner, such as an optimizer, had ended", plane)
                      : fmt::format("the store has no plane {}, only {} were ever added", plane, entries_.size()),
       .name = removed ? entries_[place].name : "",
       .hint = "use the number that add_plane() returned, as long as the plane's owner lives"});
}

void PlaneTable::lay_out(std::int64_t numel, std::int64_t trainable_numel, std::vector<Range> parts) {
  all_ = {0, numel};
  trainable_ = {0, trainable_numel};
  parts_ = std::move(parts);
}

void PlaneTable::set_shard(std::shared_ptr<Shard> shard) {
  shard_ = std::move(shard);
  held_.clear();
  if (shard_ == nullptr) return;
  std::int64_t in_plane = 0;
  for (const Range& range : shard_->ranges()) {
    if (range.count() == 0) continue;
    if (!held_.empty() && held_.back().range.end == range.begin) {
      held_.back().range.end = range.end;
    } else {
      held_.push_back({.range = range, .in_plane = in_plane});
    }
    in_plane += range.count();
  }
}

const PlaneDevice& PlaneTable::device_at(const Entry& entry) const {
  return entry.options.home == Home::host ? plane_device<Cpu>() : *device_;
}

std::span<const Range> PlaneTable::ranges(int plane) const {
  const Entry& entry = at(plane);
  if (entry.options.extent == Extent::all) return {&all_, 1};
  if (entry.options.extent == Extent::trainable || shard_ == nullptr) return {&trainable_, 1};
  require_same_shard(entry);
  return shard_->ranges();
}

std::int64_t PlaneTable::numel_of(const Entry& entry) const {
  if (entry.options.extent == Extent::all) return all_.end;
  return entry.options.extent == Extent::trainable || shard_ == nullptr ? trainable_.end : shard_->numel();
}

std::size_t PlaneTable::bytes_of(std::int64_t count, DType dtype) {
  std::size_t bytes = 0;
  require(!__builtin_mul_overflow(static_cast<std::size_t>(count), size_of(dtype), &bytes),
          "a model's {} elements of {} have more than 2^64 bytes", count, name_of(dtype));
  return bytes;
}

std::shared_ptr<device::Storage> PlaneTable::filled(const Entry& entry,
                                                    const std::shared_ptr<device::MemoryResource>& resource) const {
  const device::MemoryPurpose purpose(entry.owner == 0 ? "parameters and their gradients" : "state of the optimizer");
  const PlaneDevice& device = device_at(entry);
  const std::int64_t count = numel_of(entry);
  auto memory = std::make_shared<device::Storage>(resource, bytes_of(count, entry.options.dtype), device::Changes::uncounted);
  if (entry.options.initial == 0) {
    device.zero(memory->data(), memory->bytes());
  } else {
    device.fill(memory->data(), entry.options.dtype, entry.options.initial, count);
  }
  return memory;
}

void PlaneTable::require_same_shard(const Entry& entry) const {
  require(!entry.has_memory.made() || entry.options.extent != Extent::shard || entry.shard == shard_,
          "DataParallel was made after the first use of plane {}, and now shards the work over the ranks: make DataParallel "
          "before",
          entry.name);
}

void PlaneTable::make_memory(Entry& entry) {
  take(entry, filled(entry, device_at(entry).memory()));
  if (entry.options.extent == Extent::shard) entry.shard = shard_;
}

void PlaneTable::take(Entry& entry, std::shared_ptr<device::Storage> memory) const {
  entry.memory = std::move(memory);
  if (entry.owner == 0) entry.parts = PlaneParts(entry.memory, parts_, size_of(entry.options.dtype));
}

bool PlaneTable::lies_at(int plane, const void* memory) const {
  const Entry& entry = entries_[static_cast<std::size_t>(plane)];
  return entry.memory != nullptr && entry.memory->data() == memory;
}

void PlaneTable::move(int plane, const std::shared_ptr<device::MemoryResource>& resource) {
  Entry& entry = at(plane);
  if (entry.has_memory.make_once([&] { take(entry, filled(entry, resource)); })) return;
  auto moved = std::make_shared<device::Storage>(resource, entry.memory->bytes(), device::Changes::uncounted);
  device_at(entry).copy(moved->data(), entry.memory->data(), entry.memory->bytes());
  take(entry, std::move(moved));
}

const PlaneTable::Held* PlaneTable::held(const Range& range) const {
  const auto first = std::ranges::partition_point(held_, [&](const Held& each) { return each.range.end <= range.begin; });
  return first != held_.end() && first->range.begin <= range.begin && range.end <= first->range.end ? &*first : nullptr;
}

PlaneTable::Walk::Walk(PlaneTable& table, std::span<const int> planes) : table_(table), elements_(planes.size()) {
  columns_.reserve(planes.size());
  for (const int plane : planes) {
    auto* memory = static_cast<std::byte*>(table.memory(plane)->data());
    const PlaneOptions& options = table.options(plane);
    columns_.push_back({.plane = plane,
                        .memory = memory,
                        .element_bytes = size_of(options.dtype),
                        .extent = options.extent,
                        .is_staged = &table.device_of(plane) != table.device_});
    stages_ = stages_ || columns_.back().is_staged;
  }
}

void PlaneTable::Walk::require_here(const Range& range) const {
  require(range.count() >= 0, "elements [{}, {}) can't be visited: the range ends before it begins", range.begin, range.end);
  if (range.count() == 0) return;
  for (const Column& column : columns_) {
    const bool sharded = column.extent == Extent::shard && table_.shard_ != nullptr;
    const std::int64_t end = column.extent == Extent::all ? table_.all_.end : table_.trainable_.end;
    require(sharded ? table_.held(range) != nullptr : range.begin >= 0 && range.end <= end,
            "elements [{}, {}) can't be visited: plane {} holds {}", range.begin, range.end, table_.name(column.plane),
            sharded ? std::string("only what this rank updates: visit the ranges of the store's shard")
                    : fmt::format("only [0, {}) of the store", end));
  }
}

std::byte* PlaneTable::Walk::find(const Column& column, const Range& range) const {
  std::int64_t place = range.begin;
  if (column.extent == Extent::shard && table_.shard_ != nullptr) {
    const Held* held = table_.held(range);
    place = held->in_plane + range.begin - held->range.begin;
  }
  return column.memory + static_cast<std::size_t>(place) * column.element_bytes;
}

PlaneTable::Piece PlaneTable::Walk::begin(const Range& rest) {
  const Range range{rest.begin, stages_ ? std::min(rest.end, rest.begin + staged_elements) : rest.end};
  for (std::size_t index = 0; index < columns_.size(); ++index) {
    Column& column = columns_[index];
    elements_[index] = find(column, range);
    if (!column.is_staged) continue;
    const std::size_t bytes = static_cast<std::size_t>(range.count()) * column.element_bytes;
    if (column.stage == nullptr || column.stage->bytes() < bytes) {
      column.stage = std::make_shared<device::Storage>(table_.device_->memory(), bytes);
    }
    table_.device_->write(column.stage->data(), elements_[index], bytes);
    elements_[index] = column.stage->data();
  }
  return {.range = range, .elements = elements_};
}

void PlaneTable::Walk::end(const Piece& piece) {
  if (!stages_) return;
  for (const Column& column : columns_) {
    if (!column.is_staged) continue;
    table_.device_->read(column.stage->data(), find(column, piece.range),
                         static_cast<std::size_t>(piece.range.count()) * column.element_bytes);
  }
}

}  // namespace trireme
