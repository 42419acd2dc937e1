#include <functional>
#include <optional>
#include <string>

#include "catch.hpp"
#include "hooked_sharding_runs.hpp"
#include "problems_on_threads.hpp"
#include "sharded_runs.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

struct FixedBitsSetup {
  int ranks = 1;
  parallel::Sharding sharding = parallel::Sharding::none;
  std::int64_t bucket_bytes = 1 << 20;
  std::int64_t slice_bytes = 1 << 20;
  bool tuned = false;
  bool mixed = false;
  std::string optimizer = "adamw";
};

// Losses and norms of the steps and the values after them.
template <typename P>
std::vector<double> train_with_fixed_bits(const FixedBitsSetup& setup) {
  constexpr int all_micro_batches = 4;
  constexpr std::int64_t rows = 3;
  std::vector<double> result;
  testing::run_ranks(setup.ranks, [&](const Group& world) {
    struct Net : nn::Module<P> {
      nn::Linear<P> hidden{*this, "hidden", {.in = 6, .out = 37}};
      nn::Linear<P> middle{*this, "middle", {.in = 37, .out = 37}};
      nn::Linear<P> output{*this, "output", {.in = 37, .out = 5}};
    } model;
    model.initialize({.seed = 1});
    parallel::DataParallel replicas(
        model, ProcessMesh(world),
        {.sum = parallel::FixedBits{.micro_batches = all_micro_batches, .tuning = {.on = setup.tuned}},
         .sharding = setup.sharding,
         .buckets = {.bytes = setup.bucket_bytes, .first_bytes = 64, .slice_bytes = setup.slice_bytes}});
    require(replicas.sharded() == (setup.ranks > 1 && setup.sharding == parallel::Sharding::optimizer), "the wrong step");
    const auto optimizer = optim::make_optimizer<P>(setup.optimizer, model, {.learning_rate = 0.01, .weight_decay = 0.01});
    const int micro_batches = all_micro_batches / world.size();
    std::vector<double> here;
    for (int number = 0; number < (setup.tuned ? 32 : 4); ++number) {
      parallel::Step step = replicas.begin(number, micro_batches);
      for (int micro = 0; micro < micro_batches; ++micro) {
        const std::int64_t first = ((number % 4) * all_micro_batches + world.rank() * micro_batches + micro) * rows;
        Tensor<typename P::Compute> x({rows, 6});
        Tensor<std::int32_t> targets({rows});
        for (std::int64_t i = 0; i < x.numel(); ++i) {
          x.data()[i] = static_cast<typename P::Compute>(static_cast<float>((first * 6 + i) * 31 % 17 - 8) / 8);
        }
        for (std::int64_t row = 0; row < rows; ++row) targets.data()[row] = static_cast<std::int32_t>((first + row) % 5);
        step.backward(first, [&] {
          return cross_entropy(model.output.forward(tanh(model.middle.forward(tanh(model.hidden.forward(x))))), targets);
        });
      }
      step.update(*optimizer, {.clip_norm = 0.1});
      if (number % 4 == 3) here.insert(here.end(), {step.finish().loss(), step.finish().gradient_norm});
    }
    const auto values = model.store().template values<typename P::Master>().span();
    here.insert(here.end(), values.begin(), values.end());
    if (world.rank() == 0) result = here;
  });
  return result;
}

}  // namespace

TEST_CASE("on two ranks sharded steps train the model that replicated steps train", "[many]") {
  CHECK(tests::problems_on_threads(2, tests::sharded_step_problems) == std::vector<std::string>());
}

TEST_CASE("an optimizer may be made before DataParallel, but not used") {
  testing::run_ranks(2, [](const Group& world) {
    struct Net : nn::Module<Float32> {
      nn::Linear<Float32> linear{*this, "linear", {.in = 2, .out = 40}};
    };
    const auto train = [&](bool optimizer_first) {
      Net model;
      model.initialize({.seed = 1});
      std::optional<optim::AdamW<Float32>> optimizer;
      if (optimizer_first) optimizer.emplace(model);
      parallel::DataParallel replicas(model, ProcessMesh(world), {.sharding = parallel::Sharding::optimizer});
      if (!optimizer_first) optimizer.emplace(model);
      for (int number = 0; number < 3; ++number) {
        parallel::Step step = replicas.begin(number);
        step.backward(0, [&] {
          const auto x = Tensor<float>::full({2, 2}, static_cast<float>(1 + number + 3 * world.rank()));
          return mse_loss(model.linear.forward(x), Tensor<float>::full({2, 40}, 1));
        });
        step.update(*optimizer);
      }
      State state;
      optimizer->add_to(state, "");
      std::vector<float> all;
      for (const float value : model.store().values<float>().span()) all.push_back(value);
      for (const StateTensor& tensor : state.tensors()) {
        for (const StatePiece& piece : tensor.pieces) {
          if (tensor.dtype != DType::float32) continue;
          const auto* values = static_cast<const float*>(piece.data);
          all.insert(all.end(), values, values + piece.elements.count());
        }
      }
      return all;
    };
    require(train(true) == train(false), "the order made a difference");

    const auto refused = [&](const std::function<void(optim::AdamW<Float32>&)>& use) {
      Net model;
      model.initialize({.seed = 1});
      optim::AdamW<Float32> optimizer(model);
      use(optimizer);
      parallel::DataParallel data_parallel(model, ProcessMesh(world), {.sharding = parallel::Sharding::optimizer});
      try {
        optimizer.step({.target_weight = 1, .used = {true, true}});
      } catch (const Error& error) {
        return std::string(error.what()).find("make DataParallel before") != std::string::npos;
      }
      return false;
    };
    require(refused([](auto& optimizer) { optimizer.step({.target_weight = 1, .used = {true, true}}); }), "a used one");
    require(refused([](auto& optimizer) {
              State state;
              optimizer.add_to(state);
            }),
            "one that a checkpoint has listed");
  });
}

TEST_CASE("with fixed bits a sharded step makes the bits of every other step") {
  using parallel::Sharding;
  const std::vector<double> wanted = train_with_fixed_bits<Float32>({});
  const std::vector<double> mixed = train_with_fixed_bits<MixedBfloat16>({});
  for (const int ranks : {2, 4}) {
    for (const Sharding sharding : {Sharding::none, Sharding::optimizer}) {
      for (const std::int64_t bucket_bytes : {1, 3000}) {
        for (const std::int64_t slice_bytes : {64, 1000, 1 << 20}) {
          const FixedBitsSetup setup{
              .ranks = ranks, .sharding = sharding, .bucket_bytes = bucket_bytes, .slice_bytes = slice_bytes};
          CAPTURE(ranks, sharding, bucket_bytes, slice_bytes);
          CHECK(train_with_fixed_bits<Float32>(setup) == wanted);
          if (bucket_bytes > 1) CHECK(train_with_fixed_bits<MixedBfloat16>(setup) == mixed);
        }
      }
    }
  }
}

TEST_CASE("with fixed bits other optimizers' sharded steps make the bits of every other step, too") {
  using parallel::Sharding;
  for (const std::string optimizer : {"muon", "adafactor", "radam"}) {
    CAPTURE(optimizer);
    const std::vector<double> wanted = train_with_fixed_bits<Float32>({.optimizer = optimizer});
    for (const int ranks : {2, 4}) {
      for (const std::int64_t slice_bytes : {64, 1000}) {
        CAPTURE(ranks, slice_bytes);
        CHECK(train_with_fixed_bits<Float32>({.ranks = ranks,
                                              .sharding = Sharding::optimizer,
                                              .bucket_bytes = 1000,
                                              .slice_bytes = slice_bytes,
                                              .optimizer = optimizer}) == wanted);
      }
    }
  }
}

TEST_CASE("tuning the buckets of a sharded step moves nothing: fixed bits stay") {
  using parallel::Sharding;
  const std::vector<double> wanted = train_with_fixed_bits<Float32>({.tuned = true});
  for (const std::int64_t slice_bytes : {64, 1000}) {
    const FixedBitsSetup setup{.ranks = 2, .sharding = Sharding::optimizer, .bucket_bytes = 1000, .slice_bytes = slice_bytes};
    FixedBitsSetup tuned = setup;
    tuned.tuned = true;
    CHECK(train_with_fixed_bits<Float32>(tuned) == wanted);
  }
}

TEST_CASE("norms of parameters would differ with the number of ranks: with fixed bits a sharded step has no LAMB") {
  testing::run_ranks(2, [](const Group& world) {
    struct Net : nn::Module<Float32> {
      nn::Linear<Float32> linear{*this, "linear", {.in = 2, .out = 40}};
    } model;
    model.initialize({.seed = 1});
    const parallel::DataParallel data_parallel(
        model, ProcessMesh(world), {.sum = parallel::FixedBits{.micro_batches = 2}, .sharding = parallel::Sharding::optimizer});
    try {
      optim::Lamb<Float32> optimizer(model);
      optimizer.step({.target_weight = 1, .used = {true, true}});
    } catch (const Error& error) {
      require(
          error.code() == ErrorCode::invalid_argument && std::string(error.what()).find("Sharding::none") != std::string::npos,
          "another error: {}", error.what());
      return;
    }
    require(false, "no error");
  });
}

TEST_CASE("where a hook makes the sums, owners compute the bits that every rank would have") {
  CHECK(tests::problems_on_threads(2, tests::hooked_sharding_problems) == std::vector<std::string>());
}
