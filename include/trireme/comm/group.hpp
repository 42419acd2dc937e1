#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/dtype.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/range.hpp"
#include "trireme/device/memory.hpp"

namespace trireme {

class Group;
namespace comm {
class Backend;    // what a backend implements; src/comm only
class Operation;  // one collective under way; src/comm only
std::shared_ptr<Backend> backend_of(const Group& group);
}  // namespace comm

// fixed_sum adds in a fixed tree over the ranks, ((0 + 1) + (2 + 3)) + ...: the same bits for every backend and division into
// nodes. Unless the nodes hold equal powers of two of consecutive ranks, every rank's elements travel, not a node's sum.
enum class ReduceOp : std::uint8_t { sum, min, max, mean, fixed_sum };

// A collective under way. It advances when this rank waits for anything or calls comm::progress().
// Destroying it without waiting waits: memory in flight is never given back.
class [[nodiscard]] Pending {
 public:
  Pending();  // nothing under way: done() is true
  explicit Pending(std::unique_ptr<comm::Operation> operation);
  Pending(Pending&&) noexcept;
  Pending& operator=(Pending&&) noexcept;
  ~Pending();

  bool done();          // advances, never blocks; throws what went wrong
  void wait_on_host();  // returns when the result is in memory; throws what went wrong

  // Returns when whatever this rank does next finds the result: of a collective on a GPU's memory (comm/gpu_group.hpp) at once,
  // the operations that this thread then gives its GPU begin when the result is there, and what goes wrong meanwhile is thrown
  // by later calls and waits. Any other waits on the host.
  void wait();

 private:
  std::unique_ptr<comm::Operation> operation_;
};

// Ranks that work together. A value: copies mean the same group. All ranks call its collectives in the same order with the
// same counts; where they don't, every rank gets one Error{rank_mismatch} that names the ranks and the operations.
// A collective that makes no progress until the deadline throws Error{timeout}; a rank that failed or left makes the others
// throw Error{peer_failed} with its message. `name` appears in those errors.
// Element types: float, double, bfloat16, float16 (reduced in float, rounded once a node and once a hop between nodes),
// std::int32_t, std::int64_t, std::uint64_t, std::uint8_t (the last without arithmetic).
class Group {
 public:
  explicit Group(std::shared_ptr<comm::Backend> backend);

  int rank() const;
  int size() const;

  // Ranks with the same colour form a group, ordered by (key, rank). Collective.
  Group split(int color, int key, std::string_view name) const;

  // Memory whose collectives copy nothing: a segment shared by the ranks of a node, else the heap. Collective on allocate.
  std::shared_ptr<device::MemoryResource> memory() const;

  // Bytes that this rank has sent to other nodes in this group's collectives and messages.
  std::uint64_t bytes_sent() const;

  // Whether all ranks run on one node and reach each other's memory().
  bool on_one_node() const;

  // The ranks of each node, in ascending order; nodes in the order of their lowest ranks.
  std::vector<std::vector<int>> nodes() const;

  // The part of `count` elements that belongs to `rank` in reduce_scatter and all_gather: contiguous, in rank order,
  // boundaries at multiples of 16 elements.
  Range part(std::int64_t count, int rank) const;

  template <typename T, std::size_t extent>
  Pending all_reduce(std::span<T, extent> data, ReduceOp op = ReduceOp::sum, std::string_view name = {}) const {
    return all_reduce(data.data(), data.size(), dtype_of<T>, op, name);
  }
  // Afterwards part(rank()) of `data` holds the reduction; the other parts are undefined.
  template <typename T, std::size_t extent>
  Pending reduce_scatter(std::span<T, extent> data, ReduceOp op = ReduceOp::sum, std::string_view name = {}) const {
    return reduce_scatter(data.data(), data.size(), dtype_of<T>, op, name);
  }
  // Every rank gives its part(rank()) of `data` to all.
  template <typename T, std::size_t extent>
  Pending all_gather(std::span<T, extent> data, std::string_view name = {}) const {
    return all_gather(data.data(), data.size(), dtype_of<T>, name);
  }
  template <typename T, std::size_t extent>
  Pending broadcast(std::span<T, extent> data, int root, std::string_view name = {}) const {
    return broadcast(data.data(), data.size(), dtype_of<T>, root, name);
  }
  // Copies `data`, so it never waits for the receiver. Messages between two ranks with one tag arrive in order.
  template <typename T, std::size_t extent>
  void send(std::span<const T, extent> data, int to, int tag, std::string_view name = {}) const {
    send(data.data(), data.size(), dtype_of<T>, to, tag, name);
  }
  template <typename T, std::size_t extent>
  Pending receive(std::span<T, extent> data, int from, int tag, std::string_view name = {}) const {
    return receive(data.data(), data.size(), dtype_of<T>, from, tag, name);
  }
  void barrier(std::string_view name = {}) const;

  // Waits until done(), which does not wait and stays true: for something of this rank's own, such as its GPU, as a collective
  // waits for the ranks. What another rank fails with is thrown here too, and Error{timeout} with `name` at the deadline.
  void wait_until(const std::function<bool()>& done, std::string_view name) const;

  // The texts of all ranks, by rank. Blocking; for start-up, not for steps.
  std::vector<std::string> gather_texts(std::string_view text, std::string_view name = {}) const;

  // Runs `action` on this rank, then lets all ranks agree how it went: when any rank threw, all throw the error of the
  // lowest rank that did. Use it wherever ranks may diverge: opening files, checking options.
  void agree(const std::function<void()>& action, std::string_view name = {}) const;

 private:
  friend std::shared_ptr<comm::Backend> comm::backend_of(const Group& group);

  Pending all_reduce(void* data, std::size_t count, DType dtype, ReduceOp op, std::string_view name) const;
  Pending reduce_scatter(void* data, std::size_t count, DType dtype, ReduceOp op, std::string_view name) const;
  Pending all_gather(void* data, std::size_t count, DType dtype, std::string_view name) const;
  Pending broadcast(void* data, std::size_t count, DType dtype, int root, std::string_view name) const;
  void send(const void* data, std::size_t count, DType dtype, int to, int tag, std::string_view name) const;
  Pending receive(void* data, std::size_t count, DType dtype, int from, int tag, std::string_view name) const;

  std::shared_ptr<comm::Backend> backend_;
};

namespace comm {
void progress();  // advances every collective this rank has under way, without waiting
}

}  // namespace trireme
