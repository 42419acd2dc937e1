#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "comm/calls/call.hpp"
#include "comm/wire/transport.hpp"
#include "comm/wire/wire_schedule.hpp"

namespace trireme::comm {

// The state that the transfers of one group share; to be used with the wire's turn.
struct WireChannel {
  Transport* transport = nullptr;
  int channel = 0;               // of the transport
  std::vector<bool> on_my_node;  // by group rank
  int active_chunks = 0;
  std::uint64_t starting = 1;                 // the call that may start chunks: all ranks start chunks in the same order
  std::uint64_t chunks = 0;                   // the chunks of all calls so far, the same on every rank
  std::uint64_t bytes_sent = 0;               // to ranks of other nodes
  std::vector<std::vector<std::byte>> spare;  // receive buffers of earlier chunks
};

// A collective in chunks, each with its own schedule. Several chunks are under way at a time, so that one is reduced while
// others are sent.
struct ChunkedSchedule {
  std::uint64_t chunks = 0;  // the same number on all ranks
  std::function<WireSchedule(std::uint64_t chunk)> schedule;
};

// The transfer of one call's data.
class WireTransfer {
 public:
  WireTransfer(WireChannel& channel, const Call& call, std::uint64_t sequence, ChunkedSchedule schedule);
  WireTransfer(const WireTransfer&) = delete;
  WireTransfer& operator=(const WireTransfer&) = delete;

  bool advance();        // true when all chunks have been through all their steps
  void stop() noexcept;  // cancels its messages

 private:
  struct Chunk {
    std::uint64_t number = 0;  // counted over all calls of the group
    WireSchedule schedule;
    std::size_t step = 0;
    bool started = false;
    Batch messages;
    std::vector<std::vector<std::byte>> received;
  };
  void start_chunks();
  bool advance(Chunk& chunk);
  void start(Chunk& chunk, const WireStep& step);
  void take(Chunk& chunk, const WireStep& step);
  std::byte* at(std::int64_t element) const;
  std::size_t bytes_of(Range range) const;

  WireChannel& channel_;
  Call call_;
  std::uint64_t sequence_;
  ChunkedSchedule schedule_;
  std::uint64_t base_ = 0;
  std::uint64_t next_ = 0;
  std::deque<Chunk> active_;
};

}  // namespace trireme::comm
