#include "catch.hpp"
#include "problems_on_threads.hpp"
#include "sharded_runs.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

TEST_CASE("on two ranks sharded steps train the model that replicated steps train") {
  CHECK(tests::problems_on_threads(2, tests::sharded_step_problems) == std::vector<std::string>());
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
      optimizer.step({.target_weight = 1, .used = {true, true}});
      throw std::runtime_error("no error");
    } catch (const Error& error) {
      if (std::string(error.what()).find("construct DataParallel first") == std::string::npos) throw;
    }
    optim::AdamW<Float32> made_after(model.store());
    made_after.step({.target_weight = 1, .used = {true, true}});
  });
}
