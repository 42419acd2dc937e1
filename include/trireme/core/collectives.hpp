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

// fixed_sum adds in a fixed tree over the ranks, ((0 + 1) + (2 + 3)) + ..., so the result has the same bits for every backend
// and division into nodes. It sends one sum per node only if all nodes have the same number of ranks, this number is a power of
// two, and the ranks of each node are consecutive. Otherwise it sends every rank's elements. min and max are NaN if an element
// is NaN, but NCCL may drop the NaN.
enum class ReduceOp : std::uint8_t { sum, min, max, mean, fixed_sum };
std::string_view name_of(ReduceOp op);

enum class CallKind : std::uint8_t { barrier, all_reduce, reduce_scatter, all_gather, broadcast, send, receive };
std::string_view name_of(CallKind kind);

// One rank's call of a collective or a message.
struct Call {
  CallKind kind = CallKind::barrier;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::uint8;
  std::int32_t peer = 0;  // the root of a broadcast, the other rank of a message
  std::int32_t tag = 0;   // of a message
  void* data = nullptr;   // `send` only reads it
  std::size_t count = 0;
  std::string_view name = {};

  std::size_t bytes() const { return count * size_of(dtype); }
};
std::string describe(const Call& call);  // all_reduce(sum, 1024 x float32) "layer.0.weight"

// The part of `count` elements that belongs to rank `rank` of `ranks` in reduce_scatter and all_gather: contiguous, in rank
// order, with boundaries at multiples of 16 elements.
Range part_of(std::int64_t count, int rank, int ranks);

// The operation behind a Pending. The Pending makes no further call after done() returned true, a wait returned, or a call
// threw. From then on the operation must not touch the call's memory, except for GPU work that wait_on_stream() enqueued.
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

// A running collective. It advances when this rank waits for anything or calls comm::progress(). The destructor waits, so that
// memory in use is never freed.
class [[nodiscard]] Pending {
 public:
  Pending() = default;  // no operation: done() is true
  explicit Pending(std::unique_ptr<PendingOperation> operation);
  Pending(Pending&&) noexcept;
  Pending& operator=(Pending&&) noexcept;
  ~Pending();

  bool done();          // advances the operation, never blocks; throws its error
  void wait_on_host();  // returns when the host can read the result; throws the operation's error

  // Makes the GPU work that this thread submits from now on wait for the collective. For a collective on GPU memory
  // (comm/nccl/gpu_group.hpp) the call returns immediately, and later calls and waits throw the collective's errors. For host
  // memory the call does the same as wait_on_host().
  void wait_on_stream();

 private:
  std::unique_ptr<PendingOperation> operation_;
};

// The collectives of a group of ranks: the interface that other rooms use. Group (comm/base/group.hpp) implements this
// interface; a fake for tests implements only start(). All ranks must call collectives in the same order with the same counts.
// `name` appears in errors. Element types: float, double, std::int32_t, std::int64_t, std::uint64_t; bfloat16 and float16
// (reduced in float, rounded once per node and once per hop between nodes); std::uint8_t (no reductions).
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
  // Afterwards part(rank()) of `data` holds the result; the other parts are undefined.
  template <typename T, std::size_t extent>
  Pending reduce_scatter(std::span<T, extent> data, ReduceOp op = ReduceOp::sum, std::string_view name = {}) const {
    return start_checked(call_of(CallKind::reduce_scatter, data, {.op = op, .name = name}));
  }
  // Sends each rank's part(rank()) of `data` to all ranks.
  template <typename T, std::size_t extent>
  Pending all_gather(std::span<T, extent> data, std::string_view name = {}) const {
    return start_checked(call_of(CallKind::all_gather, data, {.name = name}));
  }
  template <typename T, std::size_t extent>
  Pending broadcast(std::span<T, extent> data, int root, std::string_view name = {}) const {
    return start_checked(call_of(CallKind::broadcast, data, {.peer = root, .name = name}));
  }
  // Copies `data`, so send() never waits for the receiver. Messages between two ranks with the same tag arrive in order.
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

  // Returns the texts of all ranks, by rank. Blocks; meant for start-up, not for training steps.
  std::vector<std::string> gather_texts(std::string_view text, std::string_view name = {}) const;

  // Runs `action` on this rank and exchanges the outcome with all ranks: if `action` threw on some rank, all ranks throw the
  // error of the lowest such rank. Use it for actions that may fail on only some ranks, such as opening files or checking
  // options.
  void agree(const std::function<void()>& action, std::string_view name = {}) const;

 protected:
  Collectives(const Collectives&) = default;
  Collectives& operator=(const Collectives&) = default;

 private:
  // Starts a call. Its arguments have been checked. Call::name, and the data of a `send`, are valid only during start().
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

// While an object of this class exists, every collective or message of this thread throws Error{invalid_argument} that names
// `where`. For code that only some ranks may run, such as a callback.
class WithoutCollectives {
 public:
  explicit WithoutCollectives(const char* where);
  ~WithoutCollectives();
  WithoutCollectives(const WithoutCollectives&) = delete;
  WithoutCollectives& operator=(const WithoutCollectives&) = delete;

 private:
  const char* before_;
};

// The ranks that share a part of a model, for example by tensor parallelism. Null: only this rank.
using Axis = std::shared_ptr<const Collectives>;

}  // namespace trireme
