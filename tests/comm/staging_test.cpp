#include "comm/shared/staging.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "comm/shared/group_control.hpp"
#include "trireme/device/memory.hpp"

namespace {

using namespace trireme;
using namespace trireme::comm;

constexpr std::size_t staging_bytes = std::size_t{1} << 22;
constexpr std::array<int, 2> node_ranks{0, 1};

// Two ranks whose data lie out of the other's reach.
struct TwoRanks {
  TwoRanks() {
    for (int rank = 0; rank < 2; ++rank) {
      contexts.push_back(
          std::make_unique<RankContext>(RankContext::Place{.rank = rank, .node_rank = rank, .shares_all = true}, node));
      stagings.push_back(std::make_unique<Staging>(control, *contexts.back(), node_ranks, rank));
      data.emplace_back(staging_bytes / sizeof(float), 1.0f);
    }
  }

  bool advance(int rank) {
    const auto at = static_cast<std::size_t>(rank);
    comm::Call call;
    call.kind = CallKind::all_reduce;
    call.dtype = DType::float32;
    call.data = data[at].data();
    call.count = data[at].size();
    std::array<std::byte*, 2> blocks{};
    return stagings[at]->advance(call, blocks);
  }

  std::size_t bytes = GroupControl::bytes(2, staging_bytes);
  std::shared_ptr<std::byte> memory{[this] {
                                      auto* block = static_cast<std::byte*>(device::host_memory()->allocate(bytes));
                                      GroupControl::create(block, 2);
                                      return block;
                                    }(),
                                    [size = bytes](std::byte* block) { device::host_memory()->deallocate(block, size); }};
  GroupControl control{memory.get(), 2, staging_bytes};
  std::shared_ptr<NodeControl> node = make_node_control(2);
  std::vector<std::unique_ptr<RankContext>> contexts;
  std::vector<std::unique_ptr<Staging>> stagings;
  std::vector<std::vector<float>> data;
};

}  // namespace

// A rank that gives up waits until no other rank works on its data: ranks that have seen the failure must not begin.
TEST_CASE("no rank works on the staged data of a job that has failed") {
  TwoRanks ranks;
  CHECK_FALSE(ranks.advance(0));
  ranks.node->record_failure({.rank = 0, .text = "a rank that fails"});
  CHECK_FALSE(ranks.advance(1));
  CHECK(ranks.control.progress(1).combined.load() == 0);
  CHECK(ranks.data[1].front() == 1.0f);
}

TEST_CASE("a rank that works on staged data is seen at work") {
  TwoRanks ranks;
  std::atomic<int> rounds{0};  // that both ranks may make
  std::atomic<bool> enough{false};
  const auto run = [&](int rank) {
    for (int made = 0; !enough.load() || made < rounds.load();) {
      if (made == rounds.load()) {
        std::this_thread::yield();
        continue;
      }
      while (!ranks.advance(rank)) std::this_thread::yield();
      ++made;
    }
  };
  bool seen = false;
  {
    const std::jthread first(run, 0);
    const std::jthread second(run, 1);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (int turn = 0; !seen && std::chrono::steady_clock::now() < end; ++turn) {
      if (turn % 100 == 0) ++rounds;
      for (int rank = 0; rank < 2; ++rank) seen = seen || ranks.control.progress(rank).working.load() != 0;
      std::this_thread::yield();
    }
    enough = true;
  }
  CHECK(seen);
  CHECK(ranks.control.progress(0).working.load() + ranks.control.progress(1).working.load() == 0);
}
