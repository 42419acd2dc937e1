#include <chrono>
#include <mutex>
#include <stdexcept>

#include "backward_function.hpp"
#include "batch_norm_runs.hpp"
#include "catch.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

struct Net : nn::Module<Float32> {
  nn::Linear<Float32> linear{*this, "linear", {.in = 3, .out = 4}};
  nn::BatchNorm1d<Float32> norm{*this, "norm", {.channels = 4}};
  Variable<float> forward(const Variable<float>& x) const { return norm.forward(linear.forward(x)); }
};

std::string error_of(int ranks, const std::function<void(const Group&, Net&)>& body) {
  try {
    testing::run_ranks(ranks, [&](const Group& world) {
      Net model;
      model.initialize({.seed = 1});
      body(world, model);
    });
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("batch norm over shards of a batch is that over the batch") {
  for (const int ranks : {1, 2, 3, 4}) {
    std::mutex mutex;
    std::vector<std::string> problems;
    testing::run_ranks(ranks, [&](const Group& world) {
      const auto mine = tests::batch_norm_problems(world);
      const std::lock_guard lock(mutex);
      problems.insert(problems.end(), mine.begin(), mine.end());
    });
    CAPTURE(ranks);
    CHECK(problems == std::vector<std::string>());
  }
}

TEST_CASE("replicas with batch norm stay equal under compression and with buckets that are tuned") {
  for (const bool compressed : {true, false}) {
    CAPTURE(compressed);
    std::mutex mutex;
    std::vector<std::vector<float>> trained;
    testing::run_ranks(2, [&](const Group& world) {
      Net model;
      model.initialize({.seed = 1});
      parallel::ParallelOptions options{.sum = parallel::Plain{.tuning = {.on = true}}, .sharding = parallel::Sharding::none};
      if (compressed) {
        options.sum = parallel::Hooked{
            {.hook = parallel::float16_hook(), .only_if_faster = false, .between = parallel::CompressionBetween::ranks}};
      }
      parallel::DataParallel replicas(model, ProcessMesh(world), options);
      optim::Sgd<Float32> optimizer(model, {.learning_rate = 0.1});
      for (std::int64_t number = 0; number < 8; ++number) {
        Tensor<float> x({5, 3});
        for (std::int64_t i = 0; i < 15; ++i) x.data()[i] = static_cast<float>((i * i * 7 + number + 3 * world.rank()) % 11);
        parallel::Step step = replicas.begin(number);
        step.backward(0, [&] { return mse_loss(model.forward(x), Tensor<float>::full({5, 4}, 0.5f)); });
        step.update(optimizer);
      }
      std::vector<float> mine;
      for (const auto& plane : {model.store().values<float>(), model.store().buffers().values<float>()}) {
        mine.insert(mine.end(), plane.data(), plane.data() + plane.numel());
      }
      const std::lock_guard lock(mutex);
      trained.push_back(mine);
    });
    CHECK(trained[0] == trained[1]);
    CHECK(trained[0].back() != 1);
  }
}

TEST_CASE("a rank that fails before its batch norm ends the wait of the others") {
  const auto start = std::chrono::steady_clock::now();
  const auto text = error_of(3, [](const Group& world, Net& model) {
    parallel::DataParallel data_parallel(model, ProcessMesh(world));
    require(world.rank() != 1, "rank 1 has no data");
    model.forward(Tensor<float>::full({4, 3}, 1));
  });
  CHECK(text.find("rank 1 has no data") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("a rank that fails in backward ends the wait of the others' batch norm") {
  const auto start = std::chrono::steady_clock::now();
  const auto text = error_of(3, [](const Group& world, Net& model) {
    parallel::DataParallel data_parallel(model, ProcessMesh(world));
    Tape tape;
    const auto y = model.forward(Tensor<float>::full({4, 3}, static_cast<float>(world.rank())));
    const auto fail = [&world](const auto& dy, const auto& dx) {
      require(world.rank() != 1, "rank 1 fails in backward");
      dx.give(dy);
    };
    const auto last = record(tests::BackwardFunction{"fails", fail}, Result<float>{.existing = y.value().clone()}, y);
    sum(last).backward();
  });
  CHECK(text.find("rank 1 fails in backward") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("a rank in evaluation among ranks that train is named on all ranks") {
  std::mutex mutex;
  std::vector<std::string> errors;
  error_of(3, [&](const Group& world, Net& model) {
    parallel::DataParallel replicas(model, ProcessMesh(world));
    if (world.rank() == 1) model.eval();
    try {
      parallel::Step step = replicas.begin(0);
      step.backward(0, [&] {
        return mse_loss(model.forward(Tensor<float>::full({4, 3}, 1)), Tensor<float>::full({4, 4}, 0.5f));
      });
      step.finish();
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      errors.emplace_back(error.what());
      throw;
    }
  });
  CAPTURE(errors);
  REQUIRE(errors.size() == 3);
  for (const std::string& error : errors) {
    CHECK(error.find("rank 1 called #1 barrier \"a step in evaluation\"") != std::string::npos);
    CHECK(error.find("ranks 0, 2 called #1 all_reduce(sum, 9 x float64) \"batch norm\"") != std::string::npos);
  }
}

TEST_CASE("a rank with a part of the model in evaluation is told apart too") {
  const auto text = error_of(2, [](const Group& world, Net& model) {
    parallel::DataParallel replicas(model, ProcessMesh(world));
    if (world.rank() == 1) model.norm.eval();
    parallel::Step step = replicas.begin(0);
    step.backward(0, [&] { return sum(model.forward(Tensor<float>::full({4, 3}, 1))); });
  });
  CHECK(text.find("barrier \"a step with norm in evaluation\"") != std::string::npos);
}

TEST_CASE("a step that was given up leaves no gradients and no running statistics behind") {
  enum class GivenUp { never, after_forward, after_backward, after_finish };
  struct Thrown : std::runtime_error {
    Thrown() : std::runtime_error("thrown by a test") {}
  };
  const auto train = [](GivenUp given_up) {
    std::vector<float> result;
    testing::run_ranks(2, [&](const Group& world) {
      Net model;
      model.initialize({.seed = 1});
      parallel::DataParallel replicas(model, ProcessMesh(world));
      optim::Sgd<Float32> optimizer(model, {.learning_rate = 0.1});
      const auto take_step = [&](std::int64_t number, float value, GivenUp stop) {
        Tensor<float> x({4, 3});
        for (std::int64_t at = 0; at < 12; ++at) x.data()[at] = value * static_cast<float>((at * 5 + world.rank()) % 7);
        parallel::Step step = replicas.begin(number);
        step.backward(0, [&] {
          const auto loss = mse_loss(model.forward(x), Tensor<float>::full({4, 4}, 0.5f));
          if (stop == GivenUp::after_forward) throw Thrown();
          return loss;
        });
        if (stop == GivenUp::after_finish) step.finish();
        if (stop == GivenUp::never) step.update(optimizer);
      };
      take_step(0, 1, GivenUp::never);
      try {
        if (given_up != GivenUp::never) take_step(1, 5, given_up);
      } catch (const Thrown&) {
      }
      take_step(1, 2, GivenUp::never);
      if (world.rank() != 0) return;
      const auto values = model.store().values<float>().span();
      const auto statistics = model.store().buffers().values<float>().span();
      result.assign(values.begin(), values.end());
      result.insert(result.end(), statistics.begin(), statistics.end());
    });
    return result;
  };
  const auto wanted = train(GivenUp::never);
  for (const auto given_up : {GivenUp::after_forward, GivenUp::after_backward, GivenUp::after_finish}) {
    CAPTURE(static_cast<int>(given_up));
    CHECK(train(given_up) == wanted);
  }
}

TEST_CASE("one row is too few, but one row on each rank is a batch") {
  const auto forward = [](const Group& world, Net& model) {
    parallel::DataParallel data_parallel(model, ProcessMesh(world));
    model.forward(Tensor<float>::full({1, 3}, 1));
  };
  CHECK(error_of(2, forward) == "no error");
  CHECK(error_of(1, forward).find("more than one value per channel") != std::string::npos);
}

TEST_CASE("running statistics that differ at the start, and fixed bits, are refused") {
  const auto differ = error_of(3, [](const Group& world, Net& model) {
    if (world.rank() == 2) model.norm.running_var.value().data()[1] = 2;
    parallel::DataParallel data_parallel(model, ProcessMesh(world));
  });
  CHECK(differ.find("norm.running_var") != std::string::npos);
  const auto shards = error_of(2, [](const Group& world, Net& model) {
    parallel::DataParallel data_parallel(model, ProcessMesh(world), {.sum = parallel::FixedBits{.micro_batches = 4}});
  });
  CHECK(shards.find("norm.running_mean: use group norm") != std::string::npos);
}
