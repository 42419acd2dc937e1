#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "comm/base/backend.hpp"
#include "comm/conformance.hpp"
#include "comm/expect.hpp"

namespace trireme::test {
namespace {

using namespace std::chrono_literals;

bool is_last(const Group& world) { return world.rank() == world.size() - 1; }

// On all ranks but the last, `action` must throw Error{peer_failed} with `text`; launch then ends them.
template <typename Action>
void expect_peer_failed(Action action, const std::string& text) {
  throw expect_error(ErrorCode::peer_failed, action, text.c_str());
}

int throw_from_main(const Group& world) {
  if (is_last(world)) throw std::runtime_error("boom");
  const std::string text = fmt::format("rank {} failed: boom", world.size() - 1);
  expect_peer_failed([&] { world.barrier(); }, text);
  return 0;
}

int throw_configuration_error(const Group& world) {
  if (is_last(world)) throw Error({.code = ErrorCode::io, .message = "cannot open the data", .path = "/no/such/file"});
  expect_peer_failed([&] { world.barrier(); }, "/no/such/file");
  return 0;
}

int agree_on_configuration_error(const Group& world) {
  world.agree([&] { require(world.rank() != 0, "the batch size is {}", -1); });
  return 0;
}

int throw_while_others_compute(const Group& world) {
  if (is_last(world)) {
    std::this_thread::sleep_for(50ms);
    throw std::runtime_error("late boom");
  }
  expect_peer_failed(
      [] {
        for (;;) comm::progress();
      },
      "late boom");
  return 0;
}

// Calls are in flight when a rank fails: no rank touches its memory after it is freed.
int throw_with_calls_in_flight(const Group& world) {
  std::vector<std::vector<float>> data(20, std::vector<float>(100'000, 1.0f));
  std::vector<Pending> pending;
  for (auto& values : data) pending.push_back(world.all_reduce(std::span(values)));
  if (is_last(world)) throw std::runtime_error("boom in flight");
  expect_peer_failed(
      [&] {
        for (auto& one : pending) one.wait_on_host();
        world.barrier();
      },
      "boom in flight");
  return 0;
}

int leave_early(const Group& world) {
  if (is_last(world)) return 0;
  const std::string text = fmt::format("rank {} left the group \"world\"", world.size() - 1);
  std::vector<float> data(10);
  try {
    world.all_reduce(std::span(data), ReduceOp::sum, "gradient").wait_on_host();
  } catch (const Error& error) {
    expect(error.code() == ErrorCode::peer_failed, "peer_failed, got: {}", error.what());
    // With more than two ranks, another one may have failed of this first.
    expect(std::string(error.what()).find(text) != std::string::npos, "\"{}\" in: {}", text, error.what());
    throw;
  }
  return 0;
}

int miss_a_message(const Group& world) {
  if (world.rank() == 1) return 0;
  std::vector<float> data(10);
  if (world.rank() == 0) {
    throw expect_error(
        ErrorCode::peer_failed, [&] { world.receive(std::span(data), 1, 5).wait_on_host(); }, "rank 1 left", "tag 5");
  }
  return 0;
}

// Waits long enough even if the others notice late that their deadline has passed.
void wait_for_a_failure() {
  const auto end = std::chrono::steady_clock::now() + 30s;
  try {
    while (std::chrono::steady_clock::now() < end) {
      comm::progress();
      std::this_thread::sleep_for(1ms);
    }
  } catch (const Error&) {
    return;
  }
  fail_check("another rank's failure");
}

int miss_a_deadline(const Group& world) {
  world.barrier("together");
  std::vector<float> data(10);
  if (is_last(world)) {
    std::this_thread::sleep_for(300ms);
    wait_for_a_failure();
    const auto go_on = [&] {
      world.all_reduce(std::span(data), ReduceOp::sum, "gradient").wait_on_host();  // what the others sent may be here
      world.barrier("together again");
    };
    expect_peer_failed(go_on, "no progress");
  }
  try {
    world.all_reduce(std::span(data), ReduceOp::sum, "gradient").wait_on_host();
  } catch (const Error& error) {
    expect(error.code() == ErrorCode::timeout || error.code() == ErrorCode::peer_failed, "a timeout, got: {}", error.what());
    const std::string text = error.what();
    for (const char* part : {"no progress for 200 ms", "#2 all_reduce(sum, 10 x float32) \"gradient\""}) {
      expect(text.find(part) != std::string::npos, "\"{}\" in: {}", part, text);
    }
    if (!world.on_one_node()) throw;  // nobody knows where the others are
    const std::string lagging = fmt::format("rank {} last called #1 barrier \"together\"", world.size() - 1);
    expect(text.find(lagging) != std::string::npos, "\"{}\" in: {}", lagging, text);
    throw;
  }
  return 0;
}

// Rank 0 waits for rank 1, which waits for rank 2 in another group: every error names all three.
int miss_a_deadline_of_another_group(const Group& world) {
  const Group pair = world.split(world.rank() < 2 ? 0 : 1, world.rank(), "pair");
  world.barrier("together");
  if (world.rank() == 2) {
    std::this_thread::sleep_for(800ms);
    wait_for_a_failure();
  }
  try {
    (world.rank() == 0 ? pair : world).barrier(world.rank() == 0 ? "aside" : "along");
  } catch (const Error& error) {
    const std::string text = error.what();
    expect(text.find("no progress for 700 ms") != std::string::npos, "a missed deadline: {}", text);
    if (!world.on_one_node()) throw;  // nobody knows where the others are
    for (const char* part : {"\"aside\" of group \"pair\"", "\"along\" of group \"world\"", "rank 2 does not wait"}) {
      expect(text.find(part) != std::string::npos, "\"{}\" in: {}", part, text);
    }
    throw;
  }
  fail_check("a missed deadline");
}

int throw_while_others_wait_for_themselves(const Group& world) {
  int looks = 3;
  world.wait_until([&] { return --looks <= 0; }, "what comes");
  expect(looks <= 0, "a wait that ends");
  if (is_last(world)) throw std::runtime_error("boom");
  const std::string text = fmt::format("rank {} failed: boom", world.size() - 1);
  expect_peer_failed([&] { world.wait_until([] { return false; }, "what never comes"); }, text);
  return 0;
}

int wait_for_itself_for_ever(const Group& world) {
  try {
    world.wait_until([] { return false; }, "the GPU's step");
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* part : {"no progress for 200 ms", "the GPU's step of this rank alone, in group \"world\""}) {
      expect(text.find(part) != std::string::npos, "\"{}\" in: {}", part, text);
    }
    throw;
  }
  fail_check("a missed deadline");
}

// All ranks call something; the last one calls something else. Every rank must get the same error.
template <typename Same, typename Other>
void disagree(const Group& world, Same same, Other other, const std::string& theirs, const std::string& its) {
  world.barrier();
  const std::string last = fmt::format("rank {} called #2 {}", world.size() - 1, its);
  const Error error = expect_error(
      ErrorCode::rank_mismatch, [&] { is_last(world) ? other() : same(); }, last.c_str(),
      fmt::format("called #2 {}", theirs).c_str());
  expect(error.fields().sequence == 2, "call 2");
  throw error;
}

int disagree_on_kind(const Group& world) {
  std::vector<float> data(8);
  disagree(
      world, [&] { world.all_reduce(std::span(data), ReduceOp::sum, "a").wait_on_host(); },
      [&] { world.all_gather(std::span(data), "a").wait_on_host(); }, "all_reduce(sum, 8 x float32) \"a\"",
      "all_gather(8 x float32) \"a\"");
  return 0;
}

int disagree_on_a_comparison(const Group& world) {
  const auto compare = [&world](std::size_t count) {
    const auto backend = comm::backend_of(world);
    const trireme::Call call{.kind = CallKind::all_reduce, .dtype = DType::float32, .count = count};
    const auto operation = backend->start(comm::comparison_of(call));
    comm::wait_for(backend->context(), *operation);
  };
  disagree(
      world, [&] { compare(8); }, [&] { compare(9); }, "all_reduce(sum, 8 x float32)", "all_reduce(sum, 9 x float32)");
  return 0;
}

int disagree_on_op(const Group& world) {
  std::vector<float> data(8);
  disagree(
      world, [&] { world.all_reduce(std::span(data), ReduceOp::sum).wait_on_host(); },
      [&] { world.all_reduce(std::span(data), ReduceOp::max).wait_on_host(); }, "all_reduce(sum, 8 x float32)",
      "all_reduce(max, 8 x float32)");
  return 0;
}

int disagree_on_mean(const Group& world) {
  std::vector<float> data(8);
  disagree(
      world, [&] { world.all_reduce(std::span(data), ReduceOp::sum).wait_on_host(); },
      [&] { world.all_reduce(std::span(data), ReduceOp::mean).wait_on_host(); }, "all_reduce(sum, 8 x float32)",
      "all_reduce(mean, 8 x float32)");
  return 0;
}

int disagree_on_dtype(const Group& world) {
  std::vector<float> data(8);
  std::vector<std::int32_t> others(8);
  disagree(
      world, [&] { world.broadcast(std::span(data), 0).wait_on_host(); },
      [&] { world.broadcast(std::span(others), 0).wait_on_host(); }, "broadcast(8 x float32, root 0)",
      "broadcast(8 x int32, root 0)");
  return 0;
}

int disagree_on_count(const Group& world) {
  std::vector<double> data(80);
  disagree(
      world, [&] { world.reduce_scatter(std::span(data)).wait_on_host(); },
      [&] { world.reduce_scatter(std::span(data).first(79)).wait_on_host(); }, "reduce_scatter(sum, 80 x float64)",
      "reduce_scatter(sum, 79 x float64)");
  return 0;
}

int disagree_on_root(const Group& world) {
  std::vector<float> data(8);
  disagree(
      world, [&] { world.broadcast(std::span(data), 0).wait_on_host(); },
      [&] { world.broadcast(std::span(data), 1).wait_on_host(); }, "broadcast(8 x float32, root 0)",
      "broadcast(8 x float32, root 1)");
  return 0;
}

int disagree_on_name(const Group& world) {
  std::vector<float> data(8);
  disagree(
      world, [&] { world.all_reduce(std::span(data), ReduceOp::sum, "layer.0.weight").wait_on_host(); },
      [&] { world.all_reduce(std::span(data), ReduceOp::sum, "layer.1.weight").wait_on_host(); },
      "all_reduce(sum, 8 x float32) \"layer.0.weight\"", "all_reduce(sum, 8 x float32) \"layer.1.weight\"");
  return 0;
}

int disagree_on_the_end_of_a_long_name(const Group& world) {
  std::vector<float> data(8);
  const std::string name(80, 'n');
  const auto reduce = [&](const char* end) { world.all_reduce(std::span(data), ReduceOp::sum, name + end).wait_on_host(); };
  disagree(
      world, [&] { reduce("1"); }, [&] { reduce("2"); }, "all_reduce(sum, 8 x float32) \"nnn",
      "all_reduce(sum, 8 x float32) \"nnn");
  return 0;
}

int disagree_on_a_message(const Group& world) {
  if (world.rank() == 1) {
    const std::vector<float> data(7);
    world.send(std::span(data), 0, 1, "activation");
  }
  std::vector<float> data(8);
  if (world.rank() == 0) {
    throw expect_error(
        ErrorCode::rank_mismatch, [&] { world.receive(std::span(data), 1, 1).wait_on_host(); }, "8 x float32",
        "7 x float32 \"activation\"");
  }
  expect_error(
      ErrorCode::rank_mismatch, [&] { world.barrier(); }, "disagree on a message");
  return 0;
}

// The failure of a pending call of the world does not hide the cause.
int disagree_with_calls_of_another_group_pending(const Group& world) {
  const Group others = world.split(0, world.rank(), "others");
  std::vector<float> gradient(10);
  std::vector<float> data(8);
  Pending pending;
  if (!is_last(world)) pending = world.all_reduce(std::span(gradient), ReduceOp::sum, "gradient");
  throw expect_error(
      ErrorCode::rank_mismatch,
      [&] { (is_last(world) ? others.all_gather(std::span(data)) : others.all_reduce(std::span(data))).wait_on_host(); },
      "the ranks of group \"others\" disagree", "all_gather(8 x float32)");
}

constexpr auto patient = std::chrono::milliseconds(60'000);

constexpr std::array cases = {
    FailureCase{"a rank throws", 2, 1, patient, throw_from_main},
    FailureCase{"a rank throws a configuration error", 2, 2, patient, throw_configuration_error},
    FailureCase{"all agree on a configuration error", 1, 2, patient, agree_on_configuration_error},
    FailureCase{"a rank throws while others compute", 2, 1, patient, throw_while_others_compute},
    FailureCase{"a rank throws with calls in flight", 2, 1, patient, throw_with_calls_in_flight},
    FailureCase{"a rank leaves early", 2, 1, patient, leave_early},
    FailureCase{"a sender leaves early", 2, 1, patient, miss_a_message},
    FailureCase{"a deadline passes", 2, 3, 200ms, miss_a_deadline},
    FailureCase{"a deadline passes in another group", 3, 3, 700ms, miss_a_deadline_of_another_group},
    FailureCase{"a rank throws while others wait for themselves", 2, 1, patient, throw_while_others_wait_for_themselves},
    FailureCase{"a deadline passes while ranks wait for themselves", 2, 3, 200ms, wait_for_itself_for_ever},
    FailureCase{"different collectives", 2, 2, patient, disagree_on_kind},
    FailureCase{"different operations", 2, 2, patient, disagree_on_op},
    FailureCase{"a sum and a mean", 2, 2, patient, disagree_on_mean},
    FailureCase{"different types", 2, 2, patient, disagree_on_dtype},
    FailureCase{"different counts", 2, 2, patient, disagree_on_count},
    FailureCase{"different roots", 2, 2, patient, disagree_on_root},
    FailureCase{"different names", 2, 2, patient, disagree_on_name},
    FailureCase{"different ends of long names", 2, 2, patient, disagree_on_the_end_of_a_long_name},
    FailureCase{"different comparisons", 2, 2, patient, disagree_on_a_comparison},
    FailureCase{"different collectives while another group has calls pending", 2, 2, patient,
                disagree_with_calls_of_another_group_pending},
    FailureCase{"different messages", 2, 2, patient, disagree_on_a_message},
};

}  // namespace

std::span<const FailureCase> failure_cases() { return cases; }

}  // namespace trireme::test
