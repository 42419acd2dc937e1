#include "comm/memory_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::test {
namespace {

Error network_error(const std::string& text) {
  return Error({.code = ErrorCode::internal, .message = "network: " + text, .operation = "a message between nodes"});
}

std::uint64_t mix(std::uint64_t value) {  // the end of SplitMix64
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

MemoryNetwork::MemoryNetwork(int ranks, const Weather& weather)
    : weather_(weather), inboxes_(static_cast<std::size_t>(ranks)) {}

bool MemoryNetwork::lost(int rank) const {
  const std::lock_guard lock(mutex_);
  return lost_.contains(rank);
}

std::uint64_t MemoryNetwork::draw(const Key& key, int receiver, std::size_t bytes) const {
  std::uint64_t value = mix(weather_.seed);
  const auto [number, sender, tag] = key;
  for (const int part : {number, sender, receiver, tag}) value = mix(value + static_cast<std::uint64_t>(part) + 1);
  return mix(value + bytes);
}

// Messages under way are lost with its memory.
void MemoryNetwork::lose(int rank) {
  lost_.insert(rank);
  inboxes_[static_cast<std::size_t>(rank)].clear();
  for (Inbox& inbox : inboxes_) {
    for (auto& [key, line] : inbox) {
      if (std::get<1>(key) == rank) line.parcels.clear();
    }
  }
}

int MemoryTransport::open(int number, std::vector<int> ranks) {
  channels_.push_back({.number = number, .ranks = std::move(ranks)});
  return static_cast<int>(channels_.size()) - 1;
}

int MemoryTransport::world_rank(const comm::Route& route) const {
  return channels_[static_cast<std::size_t>(route.channel)].ranks[static_cast<std::size_t>(route.peer)];
}

void MemoryTransport::require_alive() const {
  if (network_->lost_.contains(rank_)) throw network_error(fmt::format("rank {} is dead", rank_));
}

void MemoryTransport::post(const comm::Route& to, std::span<const std::byte> data, comm::Batch& batch) {
  const std::lock_guard lock(network_->mutex_);
  const auto& loss = network_->weather_.loss;
  if (loss && loss->rank == rank_ && loss->post == posts_++) network_->lose(rank_);
  require_alive();
  const int receiver = world_rank(to);
  const MemoryNetwork::Key key{channels_[static_cast<std::size_t>(to.channel)].number, rank_, to.tag};
  const std::uint64_t drawn = network_->draw(key, receiver, data.size());
  const auto parcel = std::make_shared<MemoryNetwork::Parcel>();
  parcel->data = data;
  const auto longest = static_cast<std::uint64_t>(network_->weather_.longest_delay);
  parcel->delay = (drawn & 6) == 0 ? static_cast<int>((drawn >> 3) % (longest + 1)) : 0;
  if ((drawn & 1) != 0) {
    parcel->copy.assign(data.begin(), data.end());
    parcel->data = parcel->copy;
  }
  if (!network_->lost_.contains(receiver)) {
    network_->inboxes_[static_cast<std::size_t>(receiver)][key].parcels.push_back(parcel);
  }
  posted_.push_back({.parcel = parcel, .batch = &batch, .receiver = receiver});
  ++batch.outstanding;
  ++under_way_;
}

void MemoryTransport::receive(const comm::Route& from, std::span<std::byte> buffer, comm::Batch& batch) {
  const std::lock_guard lock(network_->mutex_);
  require_alive();
  const MemoryNetwork::Key key{channels_[static_cast<std::size_t>(from.channel)].number, world_rank(from), from.tag};
  network_->inboxes_[static_cast<std::size_t>(rank_)][key].receives.push_back({.buffer = buffer, .batch = &batch});
  ++batch.outstanding;
  ++under_way_;
}

double MemoryTransport::test() {
  const std::lock_guard lock(network_->mutex_);
  require_alive();
  if (network_->weather_.refuses) throw network_error("it is down");
  if (under_way_ == 0) return 1;
  const int before = under_way_;
  return static_cast<double>(look()) / before;
}

int MemoryTransport::look() {
  int done = 0;
  MemoryNetwork::Inbox& inbox = network_->inboxes_[static_cast<std::size_t>(rank_)];
  for (auto& [key, line] : inbox) done += take(line);
  std::erase_if(inbox, [](const auto& entry) { return entry.second.parcels.empty() && entry.second.receives.empty(); });
  std::erase_if(posted_, [&](const Posted& posted) {
    const bool copied = !posted.parcel->copy.empty();
    const bool refused = network_->lost_.contains(posted.receiver) && !posted.parcel->taken;
    if (!refused && !copied && !posted.parcel->taken) return false;
    if (refused) {
      posted.batch->failure = std::make_exception_ptr(network_error(fmt::format("rank {} is out of reach", posted.receiver)));
    }
    --posted.batch->outstanding;
    ++done;
    return true;
  });
  under_way_ -= done;
  return done;
}

int MemoryTransport::take(MemoryNetwork::Line& line) {
  int done = 0;
  for (const auto& parcel : line.parcels) --parcel->delay;
  while (!line.parcels.empty() && !line.receives.empty() && line.parcels.front()->delay < 0) {
    MemoryNetwork::Parcel& parcel = *line.parcels.front();
    const auto [buffer, batch] = line.receives.front();
    if (parcel.data.size() > buffer.size()) {
      batch->failure = std::make_exception_ptr(network_error("a message is longer than its receiver expects"));
    } else if (!parcel.data.empty()) {
      std::memcpy(buffer.data(), parcel.data.data(), parcel.data.size());
    }
    parcel.taken = true;
    --batch->outstanding;
    line.parcels.pop_front();
    line.receives.pop_front();
    ++done;
  }
  return done;
}

// Messages that are posted and not yet taken are copies, so everything can be withdrawn at once.
bool MemoryTransport::cancel(comm::Batch& batch, std::chrono::steady_clock::time_point /*end*/) noexcept {
  const std::lock_guard lock(network_->mutex_);
  for (auto& [key, line] : network_->inboxes_[static_cast<std::size_t>(rank_)]) {
    std::erase_if(line.receives, [&batch](const auto& waiting) { return waiting.batch == &batch; });
  }
  std::erase_if(posted_, [&batch](const Posted& posted) {
    if (posted.batch != &batch) return false;
    MemoryNetwork::Parcel& parcel = *posted.parcel;
    if (parcel.copy.empty()) parcel.copy.assign(parcel.data.begin(), parcel.data.end());
    parcel.data = parcel.copy;
    return true;
  });
  under_way_ -= batch.outstanding;
  batch.outstanding = 0;
  return true;
}

}  // namespace trireme::test
