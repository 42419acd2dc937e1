#include "parallel/step/summary_fields.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

TEST_CASE("each field of a summary gets the sums of its own numbers") {
  testing::run_ranks(3, [](const Group& world) {
    const double rank = world.rank();
    std::vector<double> seconds, counts;
    StepRequests asked;
    parallel::SummaryFields fields;
    fields.add({.write = [&](auto own) { own[0] = rank + 0.5; }, .read = [&](auto sums) { seconds = {sums[0]}; }});
    fields.add({.size = 4,
                .write = [&](auto own) { own[static_cast<std::size_t>(world.rank())] = 10 + rank; },
                .read = [&](auto sums) { counts.assign(sums.begin(), sums.end()); }});
    fields.add({.size = 0, .write = [](auto own) { require(own.empty(), "numbers of nothing"); }});
    parallel::add_requests(fields, {.checkpoint = world.rank() == 1}, asked);
    parallel::add_step_number(fields, 5000, world);
    fields.reduce(world, ReduceOp::sum, "numbers").wait_on_host();
    fields.read();
    require(seconds == std::vector<double>{4.5}, "the sum of the first field");
    require(counts == std::vector<double>{10, 11, 12, 0}, "the sums of the second");
    require(asked.checkpoint && !asked.stop, "what one rank asks for");
  });
}

TEST_CASE("no field is read where the ranks are in different steps, and all of them learn it") {
  testing::run_ranks(2, [](const Group& world) {
    bool is_read = false;
    parallel::SummaryFields fields;
    fields.add({.write = [](auto own) { own[0] = 1; }, .read = [&](auto) { is_read = true; }});
    parallel::add_step_number(fields, world.rank() == 0 ? 7 : 8, world);
    fields.reduce(world, ReduceOp::sum, "numbers").wait_on_host();
    std::string message;
    try {
      fields.read();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::rank_mismatch) message = error.what();
    }
    require(message.find("step") != std::string::npos && !is_read, "read of different steps: {}", message);
  });
}
