#pragma once

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

class Exchange;

// The coroutine that CommunicationHook::reduce returns. It stops at every co_await and continues when the awaited exchange is
// done.
class [[nodiscard]] HookTask {
 public:
  struct promise_type {
    Exchange* exchange = nullptr;  // the exchange that the coroutine awaits

    HookTask get_return_object() { return HookTask(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }  // resume() throws it
  };
  using Handle = std::coroutine_handle<promise_type>;

  explicit HookTask(Handle task) : task_(task) {}
  HookTask(HookTask&& other) noexcept : task_(std::exchange(other.task_, nullptr)) {}
  HookTask& operator=(HookTask&& other) noexcept {
    std::swap(task_, other.task_);
    return *this;
  }
  ~HookTask() {
    if (task_) task_.destroy();
  }

  // Runs the coroutine to the next co_await and returns the awaited exchange, which the caller starts. Returns null at the
  // end.
  Exchange* resume() {
    task_.resume();
    return task_.done() ? nullptr : task_.promise().exchange;
  }

 private:
  Handle task_;
};

// A collective that a hook awaits. Exchanges start in the order of the buckets, which is the same on all ranks.
class [[nodiscard]] Exchange {
 public:
  using Start = std::function<void(const Group&, std::vector<Pending>&)>;

  explicit Exchange(Start start, std::function<void()> receive = {}) : start_(std::move(start)), receive_(std::move(receive)) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool await_ready() const noexcept { return false; }
  void await_suspend(HookTask::Handle task) noexcept { task.promise().exchange = this; }
  void await_resume() const {
    if (receive_) receive_();
  }

  void start(const Group& group) { start_(group, pending_); }
  std::vector<Pending>& pending() { return pending_; }

 private:
  Start start_;
  std::function<void()> receive_;
  std::vector<Pending> pending_;
};

struct NamedTensor {
  std::string name;
  Tensor<float> values;
};

// The gradients of a bucket that a hook reduces, and collectives between the ranks that reduce it. Write co_await right before
// each call of a collective. Buffers must live until the collective is done, so make them local variables of the coroutine.
class GradientBucket {
 public:
  struct Place {
    std::string name;  // for errors
    std::int64_t step = 0;
    int rank = 0;
    int size = 1;
  };
  GradientBucket(Place place, std::vector<NamedTensor> gradients)
      : place_(std::move(place)), gradients_(std::move(gradients)) {}

  const std::string& name() const { return place_.name; }
  const std::vector<NamedTensor>& gradients() const { return gradients_; }  // one per parameter, in the order of the store
  std::size_t numel() const;                                                // of all gradients together
  std::int64_t step() const { return place_.step; }                         // counted from 0 at the first compressed step
  int rank() const { return place_.rank; }                                  // among the ranks that reduce this bucket
  int size() const { return place_.size; }

  // Sums data over the ranks, in place. The result has the same bits on all ranks.
  template <typename T>
  Exchange all_reduce(std::span<T> data) const {
    return Exchange([this, data](const Group& group, std::vector<Pending>& pending) {
      pending.push_back(group.all_reduce(data, ReduceOp::sum, place_.name));
    });
  }

  // Gathers `mine` of all ranks into `all` [size, mine.size()], in rank order.
  template <typename T>
  Exchange all_gather(const std::vector<T>& mine, std::vector<T>& all) const {
    const std::size_t stride = (mine.size() + 15) / 16 * 16;  // Group::part
    all.resize(stride * ranks());
    return Exchange(
        [this, &mine, &all, stride](const Group& group, std::vector<Pending>& pending) {
          std::ranges::copy(mine, all.begin() + at(rank(), stride));
          pending.push_back(group.all_gather(std::span(all), place_.name));
        },
        [this, &mine, &all, stride] {
          for (int peer = 1; peer < size(); ++peer) {
            std::copy_n(all.begin() + at(peer, stride), mine.size(), all.begin() + at(peer, mine.size()));
          }
          all.resize(mine.size() * ranks());
        });
  }

  // Sends part p of `parts` [size, n] to rank p, and receives part p of `received` [size, n] from rank p.
  template <typename T>
  Exchange all_to_all(const std::vector<T>& parts, std::vector<T>& received) const {
    const std::size_t count = parts.size() / ranks();
    require(parts.size() == count * ranks(), "{}: {} elements can't be divided among {} ranks", place_.name, parts.size(),
            size());
    received.resize(parts.size());
    return Exchange([this, &parts, &received, count](const Group& group, std::vector<Pending>& pending) {
      for (int peer = 0; peer < size(); ++peer) {
        const std::span part(parts.begin() + at(peer, count), count);
        const std::span place(received.begin() + at(peer, count), count);
        if (peer == rank()) {
          std::ranges::copy(part, place.begin());
        } else {
          group.send(part, peer, 0, place_.name);
          pending.push_back(group.receive(place, peer, 0, place_.name));
        }
      }
    });
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(place_.size); }
  static std::ptrdiff_t at(int peer, std::size_t stride) { return static_cast<std::ptrdiff_t>(stride) * peer; }

  Place place_;
  std::vector<NamedTensor> gradients_;
};

// Sums the gradients of buckets over the ranks, compressed or in any other way. Derive from this class to write a hook of your
// own. Each DataParallel needs its own object.
//
//   class Signs final : public CommunicationHook {
//     std::string str() const override { return "signs"; }
//     HookTask reduce(GradientBucket& bucket) override {
//       const std::vector<std::uint8_t> mine = encode(bucket.gradients());
//       std::vector<std::uint8_t> all;
//       co_await bucket.all_gather(mine, all);
//       decode(all, bucket.gradients());
//     }
//   };
class CommunicationHook {
 public:
  CommunicationHook() = default;
  CommunicationHook(const CommunicationHook&) = delete;
  CommunicationHook& operator=(const CommunicationHook&) = delete;
  virtual ~CommunicationHook() = default;

  // The name and settings, which must be the same on all ranks.
  virtual std::string str() const = 0;

  // The most exchanges that reduce() awaits for one bucket.
  virtual int max_exchanges() const { return 1; }

  // Called once before the first bucket, with the parameters whose gradients this rank's hook will get.
  virtual void prepare(std::span<const ParameterInfo> parameters);

  // Replaces every gradient of the bucket by the sum over the ranks, or by an approximation with the same bits on all ranks.
  // reduce() is called as soon as the gradients are final, for the same buckets in the same order on all ranks. It runs while
  // the backward pass continues. All ranks must await the same number of exchanges.
  virtual HookTask reduce(GradientBucket& bucket) = 0;

  // All tensors that the hook keeps from step to step. Saving a checkpoint reads them, and loading a checkpoint fills them.
  virtual std::vector<NamedTensor> state() { return {}; }

  // Whether the hook changes the update itself, as momentum does. Such a hook runs in every step, even on one rank.
  virtual bool indispensable() const { return false; }
};

}  // namespace parallel
}  // namespace trireme
