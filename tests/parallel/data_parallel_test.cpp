#include "trireme/parallel/data_parallel.hpp"

#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>

#include "catch.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/norm/normalization.hpp"
#include "trireme/ops/loss/loss.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t samples = 8;
constexpr std::int64_t classes = 4;

struct Net : nn::Module<Float64> {
  nn::Linear<Float64> hidden{*this, "hidden", {.in = 6, .out = 16}};
  nn::Linear<Float64> frozen{*this, "frozen", {.in = 16, .out = 16}};
  nn::Linear<Float64> tied{*this, "tied", {.in = 16, .out = 16}};  // used twice
  nn::Linear<Float64> rare{*this, "rare", {.in = 16, .out = 16}};  // used for some samples only
  nn::Linear<Float64> never{*this, "never", {.in = 3, .out = 3}};
  nn::Linear<Float64> output{*this, "output", {.in = 16, .out = classes}};

  explicit Net(const ModelContext& context = {}) : Module(context) {
    frozen.weight.freeze();
    frozen.bias.freeze();
  }

  Variable<double> forward(const Variable<double>& x, bool use_rare) const {
    auto y = tied.forward(tanh(tied.forward(frozen.forward(tanh(hidden.forward(x))))));
    if (use_rare) y = add(y, rare.forward(y));
    return output.forward(y);
  }
};

struct Trained {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<double> values;
  std::int64_t buckets = 0;
};

struct Setup {
  int ranks = 1;
  int micro_batches = 1;
  std::int64_t bucket_bytes = 1 << 20;
  std::function<bool(std::int64_t)> ignored = [](std::int64_t) { return false; };  // by global sample
  int rare_from_rank = 1 << 20;                                                    // ranks from here on use the `rare` layer
  ops::CrossEntropyOptions<double, Cpu> loss = {};
};

struct Batch {
  std::int64_t first_sample = 0;
  Tensor<double> x = {};
  Tensor<std::int32_t> targets = {};
};

Batch batch_of(const Setup& setup, int step, std::int64_t first, std::int64_t count) {
  Batch batch{
      .first_sample = step * samples + first, .x = Tensor<double>({count, 6}), .targets = Tensor<std::int32_t>({count})};
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t sample = batch.first_sample + row;
    for (std::int64_t dim = 0; dim < 6; ++dim) {
      batch.x.data()[row * 6 + dim] = philox_normal(1, 2, static_cast<std::uint64_t>(sample * 6 + dim));
    }
    batch.targets.data()[row] = setup.ignored(first + row) ? ops::ignored_target : static_cast<std::int32_t>(sample % classes);
  }
  return batch;
}

Trained train(const Setup& setup) {
  Trained result;
  std::mutex mutex;
  testing::run_ranks(setup.ranks, [&](const Group& world) {
    const ProcessMesh mesh(world);
    Net model(parallel::model_context(mesh, {.batch_size = samples}));
    model.initialize({.seed = 3});
    parallel::DataParallel replicas(model, mesh, {.buckets = {.bytes = setup.bucket_bytes, .first_bytes = 256}});
    optim::AdamW<Float64> optimizer(model, {.learning_rate = 0.01});
    const Range own = share_of(samples, world.rank(), world.size());
    const std::int64_t share = own.count() / setup.micro_batches;
    std::vector<double> losses;
    std::vector<double> norms;
    for (int number = 0; number < 5; ++number) {
      parallel::Step step = replicas.begin(number, setup.micro_batches);
      for (int micro = 0; micro < setup.micro_batches; ++micro) {
        const Batch batch = batch_of(setup, number, own.begin + micro * share, share);
        step.backward(batch, [&] {
          return cross_entropy(model.forward(batch.x, world.rank() >= setup.rare_from_rank), batch.targets, setup.loss);
        });
      }
      step.update(optimizer, {.clip_norm = 0.5});
      losses.push_back(step.finish().loss());
      norms.push_back(step.finish().gradient_norm);
    }
    const std::lock_guard lock(mutex);
    const auto values = model.store().values<double>();
    const std::vector<double> mine(values.data(), values.data() + values.numel());
    if (result.values.empty()) {
      result = {losses, norms, mine, replicas.num_buckets()};
    } else if (result.values != mine) {
      throw std::runtime_error("the replicas differ");
    }
  });
  return result;
}

// The same steps on whole batches, without groups.
Trained train_alone(const Setup& setup) {
  Net model;
  model.initialize({.seed = 3});
  optim::AdamW<Float64> optimizer(model, {.learning_rate = 0.01});
  Trained result;
  for (int step = 0; step < 5; ++step) {
    const Batch batch = batch_of(setup, step, 0, samples);
    Tape tape;
    const auto loss = cross_entropy(model.forward(batch.x, false), batch.targets, setup.loss);
    loss.sum.backward(1 / loss.target_weight);
    StepSummary summary{.loss_sum = loss.sum.value().item(), .target_weight = loss.target_weight};
    for (int index = 0; index < model.store().num_parameters(); ++index) {
      summary.used.push_back(model.store().has_gradient(index));
      if (!summary.used.back()) continue;
      for (const double element : model.store().gradient<double>(index).span()) summary.gradient_norm += element * element;
    }
    summary.gradient_norm = std::sqrt(summary.gradient_norm);
    result.losses.push_back(loss.mean());
    result.norms.push_back(summary.gradient_norm);
    optimizer.step(summary, {.clip_norm = 0.5});
  }
  const auto values = model.store().values<double>().span();
  result.values.assign(values.begin(), values.end());
  return result;
}

void expect_equal(const Trained& got, const Trained& wanted) {
  REQUIRE(got.losses.size() == wanted.losses.size());
  for (std::size_t step = 0; step < wanted.losses.size(); ++step) {
    CHECK(got.losses[step] == Approx(wanted.losses[step]).epsilon(1e-12));
    CHECK(got.norms[step] == Approx(wanted.norms[step]).epsilon(1e-10));
  }
  REQUIRE(got.values.size() == wanted.values.size());
  double largest = 0;
  for (std::size_t index = 0; index < wanted.values.size(); ++index) {
    largest = std::max(largest, std::abs(got.values[index] - wanted.values[index]));
  }
  CHECK(largest < 1e-9);
}

}  // namespace

TEST_CASE("any number of ranks, micro-batches and buckets trains the same model") {
  const Trained wanted = train({});
  CHECK(wanted.losses.back() < wanted.losses.front());
  for (const int ranks : {1, 2, 4}) {
    for (const int micro_batches : {1, 2}) {
      for (const std::int64_t bucket_bytes : {std::int64_t{64}, std::int64_t{2048}, std::int64_t{1} << 20}) {
        CAPTURE(ranks, micro_batches, bucket_bytes);
        const Trained got = train({.ranks = ranks, .micro_batches = micro_batches, .bucket_bytes = bucket_bytes});
        expect_equal(got, wanted);
      }
    }
  }
}

TEST_CASE("ranks whose shares of a batch differ by a sample train the same model") {
  const auto ignored = [](std::int64_t sample) { return sample % 3 == 1; };
  for (const bool some_ignored : {false, true}) {
    const Setup alone = some_ignored ? Setup{.ignored = ignored} : Setup{};
    const Trained wanted = train(alone);
    for (const int ranks : {3, 5, 7}) {
      CAPTURE(ranks, some_ignored);
      Setup setup = alone;
      setup.ranks = ranks;
      expect_equal(train(setup), wanted);
    }
  }
}

// On how many of three ranks `action` throws an Error with the text.
int refusals(const std::string& text, const std::function<void(const ProcessMesh&, const ModelContext&)>& action) {
  std::atomic<int> refused = 0;
  testing::run_ranks(3, [&](const Group& world) {
    const ProcessMesh mesh(world);
    const ModelContext context = parallel::model_context(mesh, {.batch_size = samples});
    try {
      action(mesh, context);
    } catch (const Error& error) {
      if (std::string(error.what()).find(text) != std::string::npos) ++refused;
    }
  });
  return refused;
}

TEST_CASE("what takes the shares of all ranks for equal refuses those that are not") {
  const std::string unequal = "a batch of 8 samples cannot be shared equally by 3 ranks";
  CHECK(refusals(unequal + ", and fixed bits", [](const ProcessMesh& mesh, const ModelContext& context) {
          Net model(context);
          model.initialize({.seed = 3});
          const parallel::DataParallel replicas(model, mesh, {.sum = parallel::FixedBits{.micro_batches = 3}});
        }) == 3);
  CHECK(refusals(unequal + ", and norm.running_mean is a mean", [](const ProcessMesh& mesh, const ModelContext& context) {
          struct Normalized : nn::Module<Float64> {
            explicit Normalized(const ModelContext& where) : Module(where) {}
            nn::BatchNorm2d<Float64> norm{*this, "norm", {.channels = 3}};
          } model(context);
          model.initialize({.seed = 3});
          const parallel::DataParallel replicas(model, mesh);
        }) == 3);
  // A loss of one number does not say how many samples it counts.
  CHECK(refusals("does not show how much each of this rank's", [](const ProcessMesh& mesh, const ModelContext& context) {
          Net model(context);
          model.initialize({.seed = 3});
          parallel::DataParallel replicas(model, mesh);
          const Batch batch = batch_of({}, 0, context.rows.own.begin, context.rows.own.count());
          parallel::Step step = replicas.begin(0);
          step.backward(batch, [&] { return mean(model.forward(batch.x, false)); });
        }) == 3);
}

TEST_CASE("bucket sizes count bytes, and a bucket ends with the parameter that fills it") {
  CHECK(train({.bucket_bytes = 1}).buckets == 10);  // every trainable parameter alone
  CHECK(train({.bucket_bytes = 1 << 20}).buckets == 2);
}

TEST_CASE("ranks with different numbers of counted targets, none at all too") {
  for (const auto& ignored : {std::function<bool(std::int64_t)>([](std::int64_t sample) { return sample % 3 == 0; }),
                              std::function<bool(std::int64_t)>([](std::int64_t sample) { return sample >= 4; })}) {
    const Trained wanted = train({.ignored = ignored});
    expect_equal(train({.ranks = 2, .ignored = ignored}), wanted);
    expect_equal(train({.ranks = 4, .ignored = ignored}), wanted);
    expect_equal(train({.ranks = 2, .micro_batches = 2, .ignored = ignored}), wanted);
  }
}

TEST_CASE("a loss with class weights is the mean by weight over all ranks") {
  Setup setup;
  setup.ignored = [](std::int64_t sample) { return sample % 3 == 0; };  // the ranks' sums of weights differ
  setup.loss.class_weight = Tensor<double>::from({classes}, std::vector<double>{0.25, 3, 1, 0.5});
  setup.loss.label_smoothing = 0.1;
  const Trained wanted = train_alone(setup);
  for (const int ranks : {1, 2, 4}) {
    for (const int micro_batches : {1, 2}) {
      CAPTURE(ranks, micro_batches);
      setup.ranks = ranks;
      setup.micro_batches = micro_batches;
      expect_equal(train(setup), wanted);
    }
  }
}

TEST_CASE("no counted target anywhere changes nothing") {
  const Trained result = train({.ranks = 2, .ignored = [](std::int64_t) { return true; }});
  Net fresh;
  fresh.initialize({.seed = 3});
  const auto values = fresh.store().values<double>();
  CHECK(result.values == std::vector<double>(values.data(), values.data() + values.numel()));
  CHECK(result.losses.back() == 0);
}

TEST_CASE("a parameter that only some ranks use gets their gradient; one that none uses keeps its value") {
  Net fresh;
  fresh.initialize({.seed = 3});
  const auto& never = fresh.never.weight.info();
  const auto& rare = fresh.rare.weight.info();
  const auto moved = [&](const Trained& result, const ParameterInfo& parameter) {
    const auto values = fresh.store().values<double>();
    return result.values[static_cast<std::size_t>(parameter.offset)] != values.data()[parameter.offset];
  };
  const Trained by_one = train({.ranks = 2, .rare_from_rank = 1});
  CHECK(moved(by_one, rare));
  CHECK_FALSE(moved(by_one, never));
  const Trained by_none = train({.ranks = 2});
  CHECK_FALSE(moved(by_none, rare));
  CHECK_FALSE(moved(by_none, fresh.frozen.weight.info()));
}

TEST_CASE("ranks that start with different parameters are told which one differs") {
  const auto start = [](const std::function<void(Net&, int)>& change) {
    testing::run_ranks(3, [&](const Group& world) {
      Net model;
      model.initialize({.seed = 3});
      change(model, world.rank());
      parallel::DataParallel replicas(model, ProcessMesh(world));
    });
  };
  start([](Net&, int) {});
  try {
    start([](Net& model, int rank) {
      if (rank == 2) model.tied.weight.value().data()[5] += 1e-12;
    });
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::rank_mismatch);
    CHECK(error.fields().name == "tied.weight");
    CHECK(error.fields().rank == 2);
  }
}

TEST_CASE("options that make no sense are refused on all ranks") {
  using parallel::FixedBits;
  using parallel::ParallelOptions;
  const std::vector<std::pair<ParallelOptions, std::string>> all{
      {{.sum = FixedBits{}}, "FixedBits::micro_batches"},
      {{.sum = FixedBits{.micro_batches = -2}}, "FixedBits::micro_batches"},
      {{.sum = FixedBits{.micro_batches = 6}}, "2, 4 or 8 can"},
      {{.sum = parallel::Hooked{}}, "Hooked lacks its hook"},
      {{.buckets = {.bytes = 0}}, "BucketOptions are above 0"},
      {{.buckets = {.slice_bytes = -1}}, "BucketOptions are above 0"},
      {{.check_replicas = -1}, "check_replicas"},
      {{.loss_scale = {.init_scale = 0}}, "init_scale is above 0"},
  };
  for (const auto& [options, text] : all) {
    CAPTURE(text);
    std::atomic<int> refused = 0;
    testing::run_ranks(2, [&, options = options, text = text](const Group& world) {
      struct Net : nn::Module<Float32> {
        nn::Linear<Float32> linear{*this, "linear", {.in = 2, .out = 3}};
      } model;
      model.initialize({.seed = 1});
      try {
        parallel::DataParallel replicas(model, ProcessMesh(world), options);
      } catch (const Error& error) {
        if (std::string(error.what()).find(text) != std::string::npos) ++refused;
      }
    });
    CHECK(refused == 2);
  }
}

TEST_CASE("a step that is not complete is refused") {
  testing::run_ranks(1, [](const Group& world) {
    Net model;
    model.initialize({.seed = 3});
    parallel::DataParallel replicas(model, ProcessMesh(world));
    CHECK_THROWS_WITH(replicas.begin(-1), ContainsSubstring("steps are numbered from 0 on"));
    const Batch batch = batch_of({}, 0, 0, 4);
    const auto loss = [&] { return cross_entropy(model.forward(batch.x, false), batch.targets); };
    {
      parallel::Step step = replicas.begin(0);
      CHECK_THROWS_WITH(step.finish(), ContainsSubstring("finish() after 0 of 1 micro-batches"));
    }
    {
      parallel::Step step = replicas.begin(0);
      step.backward(batch, loss);
      CHECK_THROWS_WITH(step.backward(batch, loss), ContainsSubstring("a step of 1 micro-batches was given one more"));
    }
    parallel::Step step = replicas.begin(0);
    Tape other;
    const auto elsewhere = loss();
    CHECK_THROWS_WITH(step.backward(batch, [&] { return elsewhere; }), ContainsSubstring("not the innermost one"));
    CHECK_THROWS_WITH(step.finish(), ContainsSubstring("after a backward() that has failed"));
  });
}

TEST_CASE("a model that nobody initialized is refused on all ranks at its first step") {
  std::mutex mutex;
  std::vector<std::string> errors;
  CHECK_THROWS_AS(testing::run_ranks(2,
                                     [&](const Group& world) {
                                       Net model;
                                       parallel::DataParallel replicas(model, ProcessMesh(world));
                                       try {
                                         const parallel::Step step = replicas.begin(0);
                                       } catch (const Error& error) {
                                         const std::lock_guard lock(mutex);
                                         errors.emplace_back(error.what());
                                         throw;
                                       }
                                     }),
                  Error);
  REQUIRE(errors.size() == 2);
  for (const std::string& error : errors) {
    CHECK(error.find("no values: call initialize(), load weights or a checkpoint") != std::string::npos);
  }
}

TEST_CASE("a gradient that arrives after its parameter's is final is refused by name") {
  for (const int ranks : {1, 2}) {
    CAPTURE(ranks);
    std::mutex mutex;
    std::vector<std::string> errors;
    testing::run_ranks(ranks, [&](const Group& world) {
      Net model;
      model.initialize({.seed = 3});
      parallel::DataParallel replicas(model, ProcessMesh(world), {.buckets = {.bytes = 1, .first_bytes = 1}});
      optim::AdamW<Float64> optimizer(model, {.learning_rate = 0.01});
      const Batch batch = batch_of({}, 0, 0, 2);
      const auto loss = [&] { return cross_entropy(model.forward(batch.x, false), batch.targets); };
      // Whether the other tape's backward pass comes before the one that the step listens to, or after it.
      const auto take_step = [&](std::int64_t number, bool late) {
        parallel::Step step = replicas.begin(number);
        Tape other;
        const auto more = loss();
        if (!late) more.backward();
        other.suspend();
        step.backward(batch, loss);
        other.resume();
        try {
          if (late) more.backward();
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          errors.emplace_back(error.what());
        }
        step.update(optimizer);
        return step.finish().gradient_norm;
      };
      const double norm = take_step(0, true);
      require(norm > 0 && take_step(1, false) > 1.5 * norm, "the step after it is as if nothing had happened");
    });
    REQUIRE(errors.size() == static_cast<std::size_t>(ranks));
    for (const std::string& error : errors) {
      CHECK(error.find("a gradient arrived too late") != std::string::npos);
      CHECK(error.find("output.") != std::string::npos);  // the first in the backward pass
    }
  }
}
