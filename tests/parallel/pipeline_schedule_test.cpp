#include "trireme/parallel/pipeline/pipeline_schedule.hpp"

#include <algorithm>
#include <functional>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/parallel/pipeline/pipeline_timeline.hpp"

using namespace trireme;
using namespace trireme::parallel;

namespace {

using Kind = PipelineAction::Kind;

// Every schedule of up to 6 ranks, 13 micro-batches and 3 chunks.
void for_each_schedule(const std::function<void(const PipelineSchedule&)>& check) {
  for (const std::string& name : pipeline_schedule_names()) {
    for (int ranks = 1; ranks <= 6; ++ranks) {
      for (int micro_batches = 1; micro_batches <= 13; ++micro_batches) {
        if (name != "interleaved") {
          check(make_pipeline_schedule({.name = name, .num_ranks = ranks, .num_micro_batches = micro_batches}));
        } else if (micro_batches % ranks == 0) {
          for (const int chunks : {2, 3}) {
            check(make_pipeline_schedule(
                {.name = name, .num_ranks = ranks, .num_chunks = chunks, .num_micro_batches = micro_batches}));
          }
        }
      }
    }
  }
}

PipelineTimeline run(const PipelineSchedule& schedule, const StageSeconds& seconds, double transfer = 0) {
  return simulate(schedule, std::vector(static_cast<std::size_t>(schedule.num_stages()), seconds), transfer);
}

// How long each rank waits; f, b and w are the times of a stage.
double idle_formula(const PipelineSchedule& schedule, const StageSeconds& seconds) {
  const auto [f, b, w] = seconds;
  const int p = schedule.num_ranks;
  const int m = schedule.num_micro_batches;
  if (schedule.name == "zb") return (p - 1) * std::max({f, b, f + b - w}) + std::max(p - m, 0) * std::min({f, b, w});
  return (p - 1) * (f + b + w);  // of one stage: 1 / v of the rank's where it has v
}

PipelineAction& find(PipelineSchedule& schedule, std::size_t rank, const PipelineAction& action) {
  return *std::ranges::find(schedule.actions[rank], action);
}

void expect_refused(const std::string& name, const std::string& text, const std::function<void(PipelineSchedule&)>& spoil) {
  PipelineSchedule schedule = make_pipeline_schedule({.name = name, .num_ranks = 3, .num_micro_batches = 4});
  require_valid(schedule);
  spoil(schedule);
  CHECK_THROWS_WITH(require_valid(schedule), ContainsSubstring(text));
}

}  // namespace

TEST_CASE("every schedule is valid and keeps exactly as many activations as it says") {
  for_each_schedule([](const PipelineSchedule& schedule) {
    CAPTURE(schedule.name, schedule.num_ranks, schedule.num_chunks, schedule.num_micro_batches);
    CHECK_NOTHROW(require_valid(schedule));
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      CHECK(peak_activations(schedule, rank) == schedule.activation_bounds[static_cast<std::size_t>(rank)]);
    }
  });
}

TEST_CASE("in virtual time every schedule waits exactly as long as its formula says") {
  for_each_schedule([](const PipelineSchedule& schedule) {
    for (const StageSeconds& seconds : {StageSeconds{1, 1, 1}, StageSeconds{2, 3, 1}, StageSeconds{1, 2, 4},
                                        StageSeconds{5, 1, 2}, StageSeconds{1, 5, 3}, StageSeconds{3, 3, 1}}) {
      CAPTURE(schedule.name, schedule.num_ranks, schedule.num_chunks, schedule.num_micro_batches, seconds.forward,
              seconds.backward, seconds.weight_gradient);
      const PipelineTimeline timeline = run(schedule, seconds);
      const double busy =
          schedule.num_chunks * schedule.num_micro_batches * (seconds.forward + seconds.backward + seconds.weight_gradient);
      const double idle = idle_formula(schedule, seconds);
      CHECK(timeline.seconds == busy + idle);
      for (int rank = 0; rank < schedule.num_ranks; ++rank) CHECK(timeline.idle_seconds(rank) == idle);
      CHECK(timeline.bubble() == Approx(idle / (busy + idle)));
    }
  });
}

TEST_CASE("the share of waiting of schedules as their papers give it") {
  const auto bubble = [](const std::string& name, int chunks) {
    return run(make_pipeline_schedule({.name = name, .num_ranks = 4, .num_chunks = chunks, .num_micro_batches = 8}), {})
        .bubble();
  };
  CHECK(bubble("gpipe", 1) == Approx(3.0 / 11));
  CHECK(bubble("1f1b", 1) == Approx(3.0 / 11));
  CHECK(bubble("interleaved", 2) == Approx(3.0 / 19));
  CHECK(bubble("zb", 1) == Approx(1.0 / 9));  // (p - 1) (f + b - w) of m (f + b + w) and that
}

TEST_CASE("transfers delay what needs them and nothing else") {
  for (const char* name : {"gpipe", "1f1b", "zb"}) {
    const PipelineSchedule one = make_pipeline_schedule({.name = name, .num_ranks = 4, .num_micro_batches = 1});
    CHECK(run(one, {1, 2, 3}, 0.5).seconds == run(one, {1, 2, 3}).seconds + 6 * 0.5);
  }
  const PipelineSchedule gpipe = make_pipeline_schedule({.name = "gpipe", .num_ranks = 4, .num_micro_batches = 9});
  CHECK(run(gpipe, {}, 0.5).seconds == run(gpipe, {}).seconds + 6 * 0.5);  // messages overlap
}

TEST_CASE("the slowest stage sets the pace") {
  std::vector<StageSeconds> stages(3);
  stages[1] = {2, 2, 2};
  const PipelineSchedule schedule = make_pipeline_schedule({.name = "gpipe", .num_ranks = 3, .num_micro_batches = 5});
  const PipelineTimeline timeline = simulate(schedule, stages);
  CHECK(timeline.seconds == 5 * 6 + 3 + 3);
  CHECK(timeline.idle_seconds(1) == 6);
  CHECK(timeline.idle_seconds(0) == timeline.seconds - 15);
  CHECK_THROWS_AS(simulate(schedule, std::vector<StageSeconds>(2)), Error);
}

TEST_CASE("numbers that do not fit are refused with those that would") {
  CHECK_THROWS_WITH(make_pipeline_schedule({.name = "zigzag"}),
                    ContainsSubstring("choose one of gpipe, 1f1b, interleaved, zb"));
  CHECK_THROWS_WITH(make_pipeline_schedule({.name = "interleaved", .num_ranks = 4, .num_chunks = 2, .num_micro_batches = 10}),
                    ContainsSubstring("not 10; 8 or 12 would do"));
  CHECK_THROWS_WITH(make_pipeline_schedule({.name = "interleaved", .num_ranks = 4, .num_chunks = 2, .num_micro_batches = 3}),
                    ContainsSubstring("not 3; 4 would do"));
  CHECK_THROWS_WITH(make_pipeline_schedule({.name = "interleaved", .num_ranks = 4, .num_micro_batches = 4}),
                    ContainsSubstring("2 chunks a rank or more, got 1"));
  CHECK_THROWS_WITH(make_pipeline_schedule({.name = "zb", .num_chunks = 2}), ContainsSubstring("1 chunk a rank, not 2"));
  CHECK_THROWS_WITH(make_pipeline_schedule({.name = "1f1b", .num_ranks = 1 << 30, .num_micro_batches = 1 << 30}),
                    ContainsSubstring("up to 4194304 forward passes"));
  CHECK_THROWS_AS(make_pipeline_schedule({.num_micro_batches = 0}), Error);
  CHECK_THROWS_AS(make_pipeline_schedule({.num_ranks = 0}), Error);
}

TEST_CASE("a schedule that is wrong is refused, and the first wrong action named") {
  expect_refused("1f1b", "rank 1 has F 1.2 twice", [](PipelineSchedule& schedule) {
    schedule.actions[1].push_back({Kind::forward, 1, 2});
  });
  expect_refused("1f1b", "rank 2 lacks B 2.3", [](PipelineSchedule& schedule) {
    std::erase(schedule.actions[2], PipelineAction{Kind::backward, 2, 3});
    std::erase(schedule.actions[2], PipelineAction{Kind::send_backward, 2, 3});
  });
  expect_refused("1f1b", "rank 0 has F 1.0, which is not its own",
                 [](PipelineSchedule& schedule) { schedule.actions[0].front().stage = 1; });
  expect_refused("1f1b", "rank 2 has B 2.0 before F 2.0", [](PipelineSchedule& schedule) {
    std::swap(find(schedule, 2, {Kind::forward, 2, 0}), find(schedule, 2, {Kind::backward, 2, 0}));
  });
  expect_refused("zb", "rank 1 has W 1.0 before B 1.0", [](PipelineSchedule& schedule) {
    std::swap(find(schedule, 1, {Kind::weight_gradient, 1, 0}), find(schedule, 1, {Kind::backward, 1, 0}));
  });
  expect_refused("gpipe", "rank 1 has F 1.1 before RECV_F 1.1", [](PipelineSchedule& schedule) {
    std::swap(find(schedule, 1, {Kind::forward, 1, 1}), find(schedule, 1, {Kind::receive_forward, 1, 1}));
  });
  expect_refused("gpipe", "rank 0 sends for RECV_F 1.0 where rank 1 posts RECV_F 1.1", [](PipelineSchedule& schedule) {
    std::swap(find(schedule, 1, {Kind::receive_forward, 1, 0}), find(schedule, 1, {Kind::receive_forward, 1, 1}));
    std::swap(find(schedule, 1, {Kind::forward, 1, 0}), find(schedule, 1, {Kind::forward, 1, 1}));
    std::swap(find(schedule, 1, {Kind::send_forward, 1, 0}), find(schedule, 1, {Kind::send_forward, 1, 1}));
  });
  expect_refused("1f1b", "rank 0 keeps 4 activations, but should keep at most 3", [](PipelineSchedule& schedule) {
    schedule.actions = make_pipeline_schedule({.name = "gpipe", .num_ranks = 3, .num_micro_batches = 4}).actions;
  });
}

TEST_CASE("ranks that wait for each other are refused") {
  PipelineSchedule schedule = make_pipeline_schedule({.name = "gpipe", .num_ranks = 2, .num_micro_batches = 2});
  auto& first = schedule.actions[0];  // does micro-batch 0 to its end before it starts 1, the last rank all forwards first
  std::erase(first, PipelineAction{Kind::receive_backward, 0, 0});
  std::erase(first, PipelineAction{Kind::backward, 0, 0});
  first.insert(first.begin() + 2, {{Kind::receive_backward, 0, 0}, {Kind::backward, 0, 0}});
  CHECK_THROWS_WITH(require_valid(schedule), ContainsSubstring("no rank can go on, rank 0 waits in B 0.0"));
  try {
    require_valid(schedule);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
  }
}
