#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "comm/base/rank_context.hpp"
#include "comm/wire/wire.hpp"

namespace trireme::comm {

// Informs the ranks of other nodes of what a node's own ranks read in their NodeControl: failures, and ranks whose main has
// returned or that have left. Derived classes send the notices.
class Alarm : public Progress {
 public:
  Alarm(std::shared_ptr<RankContext> context, std::shared_ptr<Wire> wire,
        std::vector<int> others);  // world ranks of other nodes
  ~Alarm() override;
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  void advance() override;
  bool needs_polling() const override { return !others_.empty(); }

  void tell_return();
  bool returned(int world_rank) const { return returned_.contains(world_rank); }
  void leave();
  bool left(int world_rank) const { return left_.contains(world_rank); }
  bool all_left() const { return left_.size() == others_.size(); }

 protected:
  struct Notice {
    enum Kind : std::int32_t { failure, returned, leaving };

    Kind kind = leaving;
    std::int32_t rank = 0;  // in the world
    std::int32_t exit_code = 0;
    ErrorCode code = ErrorCode::internal;
    std::uint64_t sequence = 0;
    std::array<char, 2016> text{};
  };

  const std::vector<int>& others() const { return others_; }

  // Both are called with the wire's turn and must not wait. Notices of one rank arrive in the order in which it sent them.
  virtual void send(const Notice& notice) = 0;  // to all of others()
  virtual std::optional<Notice> next() = 0;     // the next notice that has arrived

 private:
  void relay_failure();
  void say_farewell(const Notice& notice);
  void take(const Notice& notice);

  std::shared_ptr<RankContext> context_;
  std::shared_ptr<Wire> wire_;
  std::vector<int> others_;
  std::chrono::steady_clock::time_point next_look_{};
  std::set<int> returned_;
  std::set<int> left_;
};

}  // namespace trireme::comm
