#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/rank_context.hpp"
#include "comm/calls/exchange.hpp"
#include "comm/launch/liveness.hpp"

namespace trireme::comm {

// Notices when the first rank of another node dies: the system closes its connections, and no answer with its password comes
// any more. The first ranks form a ring, each connected to the next. Within a node RankContext::check_neighbours() notices it.
class NodeWatch final : public Progress {
 public:
  // `is_first`: this rank is the first of its node. If the next first rank does not answer, for example because of a firewall,
  // the two do not watch each other. Collective over the ranks of `exchange`.
  NodeWatch(std::shared_ptr<RankContext> context, const Exchange& exchange, bool is_first);
  ~NodeWatch() override;
  NodeWatch(const NodeWatch&) = delete;
  NodeWatch& operator=(const NodeWatch&) = delete;

  void advance() override {
    look([](int /*rank*/) { return false; });
  }

  // `has_left`: whether a rank has announced that it leaves.
  void look(const std::function<bool(int rank)>& has_left);

  // Where the first rank of a node listens; all ranks know it.
  struct Post {
    int rank = 0;                // in the world
    std::uint64_t network = 0;   // nodes with the same number reach each other at 127.0.0.1; 0: unknown
    std::uint64_t password = 0;  // both sides prove that they know it
    int port = 0;
    std::vector<std::string> addresses = {};
  };

 private:
  struct Watched {
    Socket socket;
    Post post;
    bool lost = false;                        // the connection was closed at the last look
    std::optional<LivenessProbe> probe = {};  // while a probe is under way
  };
  static bool is_gone(Watched& one);

  std::shared_ptr<RankContext> context_;
  Post own_;
  std::optional<LivenessResponder> responder_;  // none if this rank can't listen, or is not the first
  std::vector<Watched> watched_;
  std::chrono::steady_clock::time_point next_look_{};
};

}  // namespace trireme::comm
