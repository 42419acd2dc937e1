#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "comm/calls/call.hpp"

namespace trireme::comm {

// The address of a rank's buffer, valid for all ranks of the node. Segment 0: the others can't reach it.
struct Address {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
};

// A published call: the fields that ranks compare, and the address of the data. A peer reads only the first cache line unless
// calls differ. Fields are atomic because a rank that reports a failure may read while the owner publishes its next call.
class alignas(64) PublishedCall {
 public:
  void publish(const Call& call, Address address, std::uint64_t sequence);

  // Brings the slot into this core's cache, so that the next publication doesn't wait for it.
  void prepare() {
    __builtin_prefetch(&sequence_, 1);
    __builtin_prefetch(&name_, 1);
  }

  bool holds(std::uint64_t sequence) const { return sequence_.load(std::memory_order_acquire) == sequence; }
  void add_parcel(std::uint64_t sequence) { parcel_.store(sequence, std::memory_order_release); }
  bool has_parcel(std::uint64_t sequence) const { return parcel_.load(std::memory_order_acquire) == sequence; }
  bool same_as(const PublishedCall& other) const;
  Address address() const { return {segment_.load(std::memory_order_relaxed), offset_.load(std::memory_order_relaxed)}; }

  // The text of call `sequence`; nothing if the slot holds another call by now.
  std::optional<std::string> describe(std::uint64_t sequence) const;

 private:
  static constexpr std::size_t name_words = 8;

  std::atomic<std::uint64_t> sequence_{0};  // written last
  std::atomic<std::uint64_t> what_{0};      // kind, op, dtype, peer
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> name_hash_{0};
  std::atomic<std::uint64_t> segment_{0};
  std::atomic<std::uint64_t> offset_{0};
  std::atomic<std::uint64_t> parcel_{0};                                   // the call with data in this rank's parcel
  alignas(64) std::array<std::atomic<std::uint64_t>, name_words> name_{};  // written by write_name()
};

// The progress of a rank. Each counter is written by its rank only.
struct RankProgress {
  alignas(64) std::atomic<std::uint64_t> finished{0};  // this rank did its part of all calls up to this one
  alignas(64) std::atomic<std::uint64_t> published{0};
  std::atomic<std::uint32_t> working{0};               // 1 while it accesses other ranks' buffers
  alignas(64) std::atomic<std::uint64_t> staged{0};    // rounds for which its staging block was filled
  alignas(64) std::atomic<std::uint64_t> combined{0};  // rounds of which it did its part
};

// Marks that this rank accesses other ranks' buffers, so that their owners keep them. After making one, a rank must check
// whether the job has failed before it accesses a buffer.
class Working {
 public:
  explicit Working(RankProgress& mine) : flag_(mine.working) { flag_.store(1); }
  ~Working() { flag_.store(0, std::memory_order_release); }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

 private:
  std::atomic<std::uint32_t>& flag_;
};

// A view of the memory through which the ranks of one group work together.
class GroupControl {
 public:
  static constexpr std::uint64_t slots = 1024;  // how many calls a rank may be ahead of another
  static constexpr std::uint64_t parcels = 8;   // blocks of a rank for the data of small calls
  static constexpr std::size_t parcel_bytes = std::size_t{4} << 10;

  static std::size_t bytes(int ranks, std::size_t staging_bytes);
  static void create(std::byte* memory, int ranks);  // once, before other ranks use the memory
  GroupControl(std::byte* memory, int ranks, std::size_t staging_bytes);

  PublishedCall& call(int rank, std::uint64_t sequence) const {
    return calls_[static_cast<std::uint64_t>(rank) * slots + sequence % slots];
  }
  RankProgress& progress(int rank) const { return progress_[rank]; }

  std::byte* parcel(int rank, std::uint64_t sequence) const {
    return parcels_ + (static_cast<std::uint64_t>(rank) * parcels + sequence % parcels) * parcel_bytes;
  }

  // A rank's block for data that the others can't reach.
  std::byte* staging(int rank) const { return staging_ + static_cast<std::size_t>(rank) * staging_bytes_; }
  std::size_t staging_bytes() const { return staging_bytes_; }

 private:
  RankProgress* progress_;
  PublishedCall* calls_;
  std::byte* parcels_;
  std::byte* staging_;
  std::size_t staging_bytes_;
};

}  // namespace trireme::comm
