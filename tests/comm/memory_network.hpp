#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "comm/wire/transport.hpp"

namespace trireme::test {

// What a network does to messages. This depends only on the seed and the route and size of each message, so a failure can be
// repeated, however the threads of the ranks run.
struct Weather {
  std::uint64_t seed = 1;
  int longest_delay = 8;  // looks of the receiver that every fourth message comes late, at most
  // A rank that dies in its call of post() with this number, from 0.
  struct Loss {
    int rank = 0;
    int post = 0;
  };
  std::optional<Loss> loss = {};
  bool refuses = false;  // test() throws
};

// A network between ranks that are threads of this process. A post of every second message is done only once its receiver has
// copied it out of the sender's memory, where ThreadSanitizer sees a sender that writes to it before.
class MemoryNetwork {
 public:
  MemoryNetwork(int ranks, const Weather& weather);

  bool lost(int rank) const;

 private:
  friend class MemoryTransport;

  struct Parcel {
    std::span<const std::byte> data;  // the sender's memory, or `copy`
    std::vector<std::byte> copy;
    int delay = 0;  // looks of the receiver
    bool taken = false;
  };
  struct Waiting {  // a receive
    std::span<std::byte> buffer;
    comm::Batch* batch = nullptr;
  };
  struct Line {  // the messages of one route
    std::deque<std::shared_ptr<Parcel>> parcels;
    std::deque<Waiting> receives;
  };
  using Key = std::tuple<int, int, int>;  // the channel as all ranks number it, the sender in the world, the tag
  using Inbox = std::map<Key, Line>;

  std::uint64_t draw(const Key& key, int receiver, std::size_t bytes) const;
  void lose(int rank);

  mutable std::mutex mutex_;
  Weather weather_;
  std::vector<Inbox> inboxes_;  // by receiver
  std::set<int> lost_;
};

// One rank's end of it.
class MemoryTransport final : public comm::Transport {
 public:
  MemoryTransport(std::shared_ptr<MemoryNetwork> network, int rank) : network_(std::move(network)), rank_(rank) {}

  int open(int number, std::vector<int> ranks);  // a channel that all of its world ranks know by `number`

  void post(const comm::Route& to, std::span<const std::byte> data, comm::Batch& batch) override;
  void receive(const comm::Route& from, std::span<std::byte> buffer, comm::Batch& batch) override;
  double test() override;
  bool cancel(comm::Batch& batch, std::chrono::steady_clock::time_point end) noexcept override;

 private:
  struct Channel {
    int number = 0;
    std::vector<int> ranks;
  };
  struct Posted {
    std::shared_ptr<MemoryNetwork::Parcel> parcel;
    comm::Batch* batch = nullptr;
    int receiver = 0;
  };
  int world_rank(const comm::Route& route) const;
  void require_alive() const;
  int look();
  int take(MemoryNetwork::Line& line);

  std::shared_ptr<MemoryNetwork> network_;
  int rank_;
  std::vector<Channel> channels_;
  std::vector<Posted> posted_;
  int under_way_ = 0;
  int posts_ = 0;
};

}  // namespace trireme::test
