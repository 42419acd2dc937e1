#pragma once

#include <barrier>
#include <thread>
#include <vector>

#include "device/cuda/team.hpp"

namespace trireme::device {

// A team of host threads: tests run kernels for a GPU with it.
class HostTeam {
 public:
  class Shared {
   public:
    explicit Shared(int size) : size_(size), barrier_(size), values_(static_cast<std::size_t>(size)) {}

   private:
    friend HostTeam;
    int size_;
    std::barrier<> barrier_;
    std::vector<double> values_;
  };

  HostTeam(Shared& shared, int rank) : shared_(&shared), rank_(rank) {}

  int rank() const { return rank_; }
  int size() const { return shared_->size_; }
  void wait() const { shared_->barrier_.arrive_and_wait(); }

  template <typename T>
  T sum(T x) const {
    return reduce(x, [](T a, T b) { return a + b; });
  }
  template <typename T>
  Two<T> sum(Two<T> x) const {
    return {sum(x.first), sum(x.second)};
  }
  template <typename T>
  T max(T x) const {
    return reduce(x, [](T a, T b) { return a > b ? a : b; });
  }

 private:
  template <typename T, typename Combine>
  T reduce(T x, Combine combine) const {
    shared_->values_[static_cast<std::size_t>(rank_)] = static_cast<double>(x);
    wait();
    T result = static_cast<T>(shared_->values_[0]);
    for (std::size_t i = 1; i < shared_->values_.size(); ++i) result = combine(result, static_cast<T>(shared_->values_[i]));
    wait();
    return result;
  }

  Shared* shared_;
  int rank_;
};
static_assert(IsTeam<HostTeam>);

// Calls body(team) on each of `size` threads.
template <typename Body>
void run_host_team(int size, const Body& body) {
  HostTeam::Shared shared(size);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { body(HostTeam(shared, rank)); });
}

}  // namespace trireme::device
