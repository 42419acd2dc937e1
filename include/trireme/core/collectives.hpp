#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"

namespace trireme TRIREME_EXPORT {

// fixed_sum adds in a fixed tree over the ranks, ((0 + 1) + (2 + 3)) + ...: the same bits for every backend and division into
// nodes. Unless the nodes hold equal powers of two of consecutive ranks, every rank's elements travel, not a node's sum.
enum class ReduceOp : std::uint8_t { sum, min, max, mean, fixed_sum };
std::string_view name_of(ReduceOp op);

enum class CallKind : std::uint8_t { barrier, all_reduce, reduce_scatter, all_gather, broadcast, send, receive };
std::string_view name_of(CallKind kind);

// One rank's call of a collective or a message.
struct Call {
  CallKind kind = CallKind::barrier;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::uint8;
  std::int32_t peer = 0;  // a broadcast's root, a message's other rank
  std::int32_t tag = 0;   // a message's
  void* data = nullptr;   // `send` only reads it
  std::size_t count = 0;
  std::string_view name = {};

  std::size_t bytes() const { return count * size_of(dtype); }
};
std::string describe(const Call& call);  // all_reduce(sum, 1024 x float32) "layer.0.weight"

// The part of `count` elements that belongs to rank `rank` of `ranks` in reduce_scatter and all_gather: contiguous, in rank
// order, boundaries at multiples of 16 elements.
Range part_of(std::int64_t count, int rank, int ranks);

// What a Pending waits for. A Pending calls nothing more after done() has been true, a wait has returned, or anything has
// thrown: from then on nobody may touch the call's memory, but for what wait_on_stream() has left to a GPU.
class PendingOperation {
 public:
  PendingOperation() = default;
  PendingOperation(const PendingOperation&) = delete;
  PendingOperation& operator=(const PendingOperation&) = delete;
  virtual ~PendingOperation() = default;

  virtual bool done() = 0;
  virtual void wait_on_host() = 0;
  virtual void wait_on_stream() = 0;
};

// A collective under way. It advances when this rank waits for anything or calls comm::progress().
// Destroying it without waiting waits: memory in flight is never given back.
class [[nodiscard]] Pending {
 public:
  Pending() = default;  // nothing under way: done() is true
  explicit Pending(std::unique_ptr<PendingOperation> operation);
  Pending(Pending&&) noexcept;
  Pending& operator=(Pending&&) noexcept;
  ~Pending();

  bool done();          // advances, never blocks; throws what went wrong
  void wait_on_host();  // returns when the host can read the result; throws what went wrong

  // What this thread then gives its GPU finds the result; for host memory: wait_on_host(). Of a collective on a GPU's memory
  // (comm/nccl/gpu_group.hpp) it returns at once, and what goes wrong meanwhile is thrown by later calls and waits.
  void wait_on_stream();

 private:
  std::unique_ptr<PendingOperation> operation_;
};

// Ranks that work together, as all rooms see them; Group (comm/base/group.hpp) is one, and a fake for tests has to write
// start() alone. All ranks call its collectives in the same order with the same counts. `name` appears in errors. Element
// types: float, double, bfloat16, float16 (reduced in float, rounded once a node and once a hop between nodes), std::int32_t,
// std::int64_t, std::uint64_t, std::uint8_t (the last without arithmetic).
class Collectives {
 public:
  Collectives(int rank, int size);
  virtual ~Collectives() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  Range part(std::int64_t count, int rank) const;  // part_of

  template <typename T, std::size_t extent>
  Pending all_reduce(std::span<T, extent> data, ReduceOp op = ReduceOp::sum, std::string_view name = {}) const {
    return start_checked(call_of(CallKind::all_reduce, data, {.op = op, .name = name}));
  }
  // Afterwards part(rank()) of `data` holds the reduction; the other parts are undefined.
  template <typename T, std::size_t extent>
  Pending reduce_scatter(std::span<T, extent> data, ReduceOp op = ReduceOp::sum, std::string_view name = {}) const {
    return start_checked(call_of(CallKind::reduce_scatter, data, {.op = op, .name = name}));
  }
  // Every rank gives its part(rank()) of `data` to all.
  template <typename T, std::size_t extent>
  Pending all_gather(std::span<T, extent> data, std::string_view name = {}) const {
    return start_checked(call_of(CallKind::all_gather, data, {.name = name}));
  }
  template <typename T, std::size_t extent>
  Pending broadcast(std::span<T, extent> data, int root, std::string_view name = {}) const {
    return start_checked(call_of(CallKind::broadcast, data, {.peer = root, .name = name}));
  }
  // Copies `data`, so it never waits for the receiver. Messages between two ranks with one tag arrive in order.
  template <typename T, std::size_t extent>
  void send(std::span<const T, extent> data, int to, int tag, std::string_view name = {}) const {
    const std::span<T, extent> read(const_cast<T*>(data.data()), data.size());
    start_checked(call_of(CallKind::send, read, {.peer = to, .tag = tag, .name = name})).wait_on_host();
  }
  template <typename T, std::size_t extent>
  Pending receive(std::span<T, extent> data, int from, int tag, std::string_view name = {}) const {
    return start_checked(call_of(CallKind::receive, data, {.peer = from, .tag = tag, .name = name}));
  }
  void barrier(std::string_view name = {}) const;

  // The texts of all ranks, by rank. Blocking; for start-up, not for steps.
  std::vector<std::string> gather_texts(std::string_view text, std::string_view name = {}) const;

  // Runs `action` on this rank, then lets all ranks agree how it went: when any rank threw, all throw the error of the
  // lowest rank that did. Use it wherever ranks may diverge: opening files, checking options.
  void agree(const std::function<void()>& action, std::string_view name = {}) const;

 protected:
  Collectives(const Collectives&) = default;
  Collectives& operator=(const Collectives&) = default;

 private:
  // The call is checked. Its name, and what a `send` reads, need not stay longer than this call.
  virtual Pending start(const Call& call) const = 0;
  virtual int rank_in_job() const { return rank_; }  // this rank's number in errors

  template <typename T, std::size_t extent>
  static Call call_of(CallKind kind, std::span<T, extent> data, Call call) {
    call.kind = kind;
    call.dtype = dtype_of<T>;
    call.data = data.data();
    call.count = data.size();
    return call;
  }
  Pending start_checked(const Call& call) const;

  int rank_;
  int size_;
};

// While it lives every collective of this thread is an Error{invalid_argument} that says where it was called: in code that
// ranks may leave out, such as a callback.
class WithoutCollectives {
 public:
  explicit WithoutCollectives(const char* where);
  ~WithoutCollectives();
  WithoutCollectives(const WithoutCollectives&) = delete;
  WithoutCollectives& operator=(const WithoutCollectives&) = delete;

 private:
  const char* before_;
};

// Ranks between which something of a model is divided. Null: this rank alone.
using Axis = std::shared_ptr<const Collectives>;

}  // namespace trireme
