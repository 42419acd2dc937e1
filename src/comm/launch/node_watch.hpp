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

// Sees the first rank of another node die: the system closes its connections, however its process ends, and nobody answers
// any more who knows its password. The first ranks are a ring, each connected to the next one. Within a node
// RankContext::check_neighbours() sees it.
class NodeWatch final : public Progress {
 public:
  // Collective over the ranks of `exchange`; `is_first` on its node. Where the next one does not answer, as through a
  // firewall, that pair does not watch each other.
  NodeWatch(std::shared_ptr<RankContext> context, const Exchange& exchange, bool is_first);
  ~NodeWatch() override;
  NodeWatch(const NodeWatch&) = delete;
  NodeWatch& operator=(const NodeWatch&) = delete;

  void advance() override {
    look([](int /*rank*/) { return false; });
  }

  // `has_left`: whether a rank has said that it leaves.
  void look(const std::function<bool(int rank)>& has_left);

  // Where the first rank of a node listens, as all ranks know it.
  struct Post {
    int rank = 0;                // in the world
    std::uint64_t network = 0;   // of two nodes with the same one 127.0.0.1 leads to both; 0: unknown
    std::uint64_t password = 0;  // of who comes and who answers
    int port = 0;
    std::vector<std::string> addresses = {};
  };

 private:
  struct Watched {
    Socket socket;
    Post post;
    bool lost = false;                        // at the last look
    std::optional<LivenessProbe> probe = {};  // while it is asked whether it lives
  };
  static bool is_gone(Watched& one);

  std::shared_ptr<RankContext> context_;
  Post own_;
  std::optional<LivenessResponder> responder_;  // as long as this rank lives; none: nobody can come
  std::vector<Watched> watched_;
  std::chrono::steady_clock::time_point next_look_{};
};

}  // namespace trireme::comm
