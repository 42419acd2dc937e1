#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "comm/conformance.hpp"
#include "comm/expect.hpp"
#include "comm/memory_nodes.hpp"
#include "comm/transport_cases.hpp"

using trireme::Algorithm;
using trireme::Group;
using trireme::ProgressMode;
using trireme::test::launch_on_nodes;
using trireme::test::NodesJob;

namespace {

std::string describe(const NodesJob& job) {
  return fmt::format("nodes of {} ranks, algorithm {}, seed {}", fmt::join(job.nodes, " + "), static_cast<int>(job.algorithm),
                     job.weather.seed);
}

// All cases, or those with these names.
void check_conformance(const NodesJob& job, const std::vector<std::string_view>& names = {}) {
  for (const auto& one : trireme::test::conformance_cases()) {
    if (!names.empty() && std::ranges::find(names, one.name) == names.end()) continue;
    INFO(one.name << ", " << describe(job));
    CHECK(launch_on_nodes(job, [&](const Group& world) {
            one.check(world);
            return 0;
          }) == 0);
  }
}

void check_failures(NodesJob job) {
  const int ranks = std::accumulate(job.nodes.begin(), job.nodes.end(), 0);
  for (const auto& one : trireme::test::failure_cases()) {
    if (ranks < one.least_ranks) continue;
    job.deadline = one.deadline;
    INFO(one.name << ", " << describe(job));
    CHECK(launch_on_nodes(job, one.run) == one.exit_code);
    CHECK(trireme::test::failed_checks.exchange(0) == 0);
  }
}

}  // namespace

TEST_CASE("ranks on several nodes keep the contract of a group") {
  std::uint64_t seed = 0;
  for (const std::vector<int>& nodes : {std::vector{1, 1}, {2, 1}, {1, 1, 1}, {2, 2, 1}}) {
    check_conformance({.nodes = nodes, .weather = {.seed = ++seed}});
  }
}

TEST_CASE("nodes of any shape keep the contract of a group", "[many]") {
  std::uint64_t seed = 100;
  for (const std::vector<int>& nodes : {std::vector{1}, {2}, {1, 3}, {2, 2}, {3, 1, 2}, {1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}}) {
    check_conformance({.nodes = nodes, .weather = {.seed = ++seed}});
  }
}

// An algorithm only changes how an all-reduce moves data.
TEST_CASE("each algorithm between nodes keeps the contract of a group") {
  const std::vector<std::string_view> all_reduces = {"float32 reductions", "all_reduce of bfloat16", "same bits on all ranks",
                                                     "many calls in flight"};
  for (const Algorithm algorithm : {Algorithm::all_pairs, Algorithm::direct, Algorithm::ring, Algorithm::halving_doubling}) {
    check_conformance({.nodes = {1, 1, 1}, .algorithm = algorithm}, all_reduces);
    check_conformance({.nodes = {2, 1, 1, 1}, .algorithm = algorithm, .progress = ProgressMode::cooperative}, all_reduces);
  }
}

TEST_CASE("ranks on several nodes fail together") {
  check_failures({.nodes = {1, 1}});
  check_failures({.nodes = {2, 1}, .progress = ProgressMode::cooperative});
  check_failures({.nodes = {2, 2}});
  // The algorithm with the longest chain of waiting ranks is tested for all.
  check_failures({.nodes = {1, 1, 1}, .algorithm = Algorithm::ring});
}

TEST_CASE("a network in memory is a transport") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    INFO("seed " << seed);
    trireme::test::MemoryTransport transport(
        std::make_shared<trireme::test::MemoryNetwork>(1, trireme::test::Weather{.seed = seed}), 0);
    CHECK_NOTHROW(trireme::test::check_transport(transport, transport.open(7, {0})));
  }
}

// A rank dies in the middle of a collective: no other rank waits for ever or goes on with incomplete data.
TEST_CASE("a rank that is lost ends all others, whatever it has sent") {
  using namespace trireme;
  for (const Algorithm algorithm : {Algorithm::all_pairs, Algorithm::direct, Algorithm::ring, Algorithm::halving_doubling}) {
    for (const int post : {0, 1, 3, 10}) {
      for (const int culprit : {0, 1, 2}) {
        std::atomic<int> ended = 0;
        const NodesJob job{.nodes = {1, 1, 1},
                           .weather = {.seed = static_cast<std::uint64_t>(post), .loss = test::Weather::Loss{culprit, post}},
                           .algorithm = algorithm,
                           .deadline = std::chrono::milliseconds(200)};
        INFO(fmt::format("rank {} is lost in post {}, {}", culprit, post, describe(job)));
        const int code = launch_on_nodes(job, [&](const Group& world) {
          std::vector<float> data(30'000, 1.0f);
          try {
            for (int round = 0; round < 20; ++round) {
              world.all_reduce(std::span(data), ReduceOp::max).wait_on_host();
              world.all_gather(std::span(data)).wait_on_host();
              world.broadcast(std::span(data), round % 3).wait_on_host();
            }
          } catch (const Error&) {
            ++ended;
            throw;
          }
          return 0;
        });
        CHECK(code != 0);
        CHECK(ended == 3);
      }
    }
  }
}

TEST_CASE("what the network refuses while the wire's thread looks ends the job and not the process") {
  using namespace trireme;
  std::atomic<int> ended = 0;
  const int code = launch_on_nodes({.nodes = {1, 1}, .weather = {.refuses = true}}, [&](const Group& world) {
    try {
      world.barrier("over the network");
    } catch (const Error& error) {
      if (std::string_view(error.what()).find("network: it is down") != std::string_view::npos) ++ended;
      throw;
    }
    return 0;
  });
  CHECK(code == 1);
  CHECK(ended == 2);
}
