#include <mutex>

#include "catch.hpp"
#include "sharded_runs.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

TEST_CASE("sharded steps train the model that replicated steps train", "[.][exhaustive]") {
  for (const int ranks : {1, 2, 3, 4}) {
    std::mutex mutex;
    std::vector<std::string> problems;
    testing::run_ranks(ranks, [&](const Group& world) {
      const auto mine = tests::sharded_step_problems(world);
      const std::lock_guard lock(mutex);
      problems.insert(problems.end(), mine.begin(), mine.end());
    });
    CAPTURE(ranks);
    CHECK(problems == std::vector<std::string>());
  }
}

TEST_CASE("an optimizer that is older than the sharding of its store says what to construct first") {
  testing::run_ranks(2, [](const Group& world) {
    struct Net : nn::Module<Float32> {
      nn::Linear<Float32> linear{*this, "linear", {.in = 2, .out = 40}};
    } model;
    model.initialize({.seed = 1});
    optim::AdamW<Float32> optimizer(model.store());
    parallel::DataParallel data_parallel(model, ProcessMesh(world), {.sharding = parallel::Sharding::on});
    try {
      optimizer.step({.kept = 1, .used = {true, true}});
      throw std::runtime_error("no error");
    } catch (const Error& error) {
      if (std::string(error.what()).find("construct DataParallel first") == std::string::npos) throw;
    }
    optim::AdamW<Float32> made_after(model.store());
    made_after.step({.kept = 1, .used = {true, true}});
  });
}
