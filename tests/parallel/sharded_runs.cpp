#include "sharded_runs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "backward_function.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/files/digest.hpp"
#include "trireme/ops/loss/loss.hpp"
#include "trireme/trireme.hpp"

namespace trireme::tests {
namespace {

using parallel::Sharding;

constexpr std::int64_t samples = 24;  // divides by 1 to 4 ranks with 1 or 2 micro-batches
constexpr std::int64_t classes = 5;
constexpr int steps = 12;

template <typename P>
struct Net : nn::Module<P> {
  using T = typename P::Compute;
  nn::Linear<P> hidden{*this, "hidden", {.in = 6, .out = 37}};
  nn::Linear<P> frozen{*this, "frozen", {.in = 37, .out = 37}};
  nn::Linear<P> tied{*this, "tied", {.in = 37, .out = 37}};  // used twice
  nn::Linear<P> rare{*this, "rare", {.in = 37, .out = 37}};  // used by some ranks in some steps
  nn::Linear<P> never{*this, "never", {.in = 3, .out = 3}};
  nn::Linear<P> output{*this, "output", {.in = 37, .out = classes}};

  Net() {
    frozen.weight.freeze();
    frozen.bias.freeze();
  }

  Variable<T> forward(const Variable<T>& x, bool use_rare) const {
    auto y = tied.forward(tanh(tied.forward(frozen.forward(tanh(hidden.forward(x))))));
    if (use_rare) y = add(y, rare.forward(y));
    return output.forward(y);
  }
};

// An optimizer as a user writes it: signs of a momentum, which is a plane.
template <typename P>
class Signs final : public optim::Optimizer<P> {
 public:
  using T = typename P::Master;
  explicit Signs(Model& model) : optim::Optimizer<P>(model, {.learning_rate = 0.01}), store_(model.store()) {}
  optim::Settings settings() const override { return {}; }

 private:
  void update(const typename optim::Optimizer<P>::Piece& piece) override {
    const std::vector<Range> own =
        store_.shard() == nullptr ? std::vector<Range>{{0, store_.trainable_numel()}} : store_.shard()->ranges();
    require(std::ranges::any_of(
                own, [&](const Range& range) { return range.begin <= piece.range.begin && piece.range.end <= range.end; }),
            "elements [{}, {}) are not this rank's to update", piece.range.begin, piece.range.end);
    for (std::size_t index = 0; index < piece.count; ++index) {
      T& momentum = piece.plane(momentum_)[index];
      momentum = static_cast<T>(0.9) * momentum + static_cast<T>(piece.gradient_scale) * piece.gradients[index];
      piece.values[index] -= static_cast<T>(piece.learning_rate) * std::tanh(10 * momentum) / static_cast<T>(piece.step);
    }
  }

  FlatStore& store_;
  int momentum_ = this->add_plane("momentum");
};

// Elements of the optimizer's state that a checkpoint takes from this rank.
std::int64_t elements_held(optim::Optimizer<Float32>& optimizer) {
  State state;
  optimizer.add_to(state, "");
  std::int64_t held = 0;
  for (const StateTensor& tensor : state.tensors()) {
    if (!tensor.name.starts_with("momentum.")) continue;
    for (const StatePiece& piece : tensor.pieces) held += piece.elements.count();
  }
  return held;
}

template <typename P>
std::unique_ptr<optim::Optimizer<P>> make_optimizer(const std::string& name, Model& model) {
  if (name == "own") return std::make_unique<Signs<P>>(model);
  // Epsilons and sums that keep differences of rounding small.
  if (name == "adam") {
    return std::make_unique<optim::Adam<P>>(
        model, optim::AdamOptions{.learning_rate = 0.01, .epsilon = 1e-4, .weight_decay = 0.1, .amsgrad = true});
  }
  if (name == "adamw") {
    return std::make_unique<optim::AdamW<P>>(
        model, optim::AdamWOptions{.learning_rate = 0.01, .epsilon = 1e-4, .decay = optim::Decay::matrices});
  }
  if (name == "sgd") {
    return std::make_unique<optim::Sgd<P>>(
        model, optim::SgdOptions{.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.1, .weight_decay = 0.01});
  }
  if (name == "lamb") {
    return std::make_unique<optim::Lamb<P>>(
        model,
        optim::LambOptions{
            .learning_rate = 0.01, .epsilon = 1e-3, .groups = {{.pattern = "*.bias", .weight_decay = 0, .adapts = false}}});
  }
  if (name == "lars") {
    return std::make_unique<optim::Lars<P>>(model, optim::LarsOptions{.weight_decay = 0.01, .trust = 0.02});
  }
  if (name == "rmsprop") {
    return std::make_unique<optim::Rmsprop<P>>(
        model, optim::RmspropOptions{.learning_rate = 0.001, .epsilon = 1e-2, .momentum = 0.9, .centered = true});
  }
  if (name == "schedule_free_adamw") {
    return std::make_unique<optim::ScheduleFreeAdamW<P>>(
        model, optim::ScheduleFreeAdamWOptions{.learning_rate = 0.01, .epsilon = 1e-4, .weight_decay = 0.1, .warmup = 5});
  }
  if (name == "adagrad") return std::make_unique<optim::Adagrad<P>>(model, optim::AdagradOptions{.initial_sum = 0.1});
  return optim::make_optimizer<P>(name, model,
                                  {.learning_rate = 0.001, .groups = {{.pattern = "output.*", .learning_rate_factor = 0.5}}});
}

struct Run {
  std::string optimizer;
  double clip = 0;
  int micro_batches = 1;
  std::int64_t bucket_bytes = 0;
  bool last_rank_keeps_targets = true;

  std::string text() const {
    return fmt::format("{}, clip {}, {} micro-batches, buckets of {} bytes, last rank {} targets", optimizer, clip,
                       micro_batches, bucket_bytes, last_rank_keeps_targets ? "with" : "without");
  }
};

template <typename P>
struct Outcome {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<typename P::Master> values;
};

template <typename P>
class Trial {
 public:
  using T = typename P::Master;

  Trial(const Group& world, std::vector<std::string>& problems) : world_(world), problems_(problems) {}

  void compare(const Run& run) {
    const Outcome<P> wanted = train(run, Sharding::none);
    const Outcome<P> got = train(run, Sharding::optimizer);
    const double tolerance = sizeof(T) == 8 ? 1e-10 : 2e-4;
    for (std::size_t step = 0; step < wanted.losses.size(); ++step) {
      expect(std::abs(got.losses[step] - wanted.losses[step]) <= tolerance, run, "loss", got.losses[step], wanted.losses[step]);
      expect(std::abs(got.norms[step] - wanted.norms[step]) <= tolerance * (1 + wanted.norms[step]), run, "norm",
             got.norms[step], wanted.norms[step]);
    }
    for (std::size_t index = 0; index < wanted.values.size(); ++index) {
      if (std::abs(got.values[index] - wanted.values[index]) <= tolerance) continue;
      expect(false, run, fmt::format("value {}", index), static_cast<double>(got.values[index]),
             static_cast<double>(wanted.values[index]));
      return;
    }
  }

 private:
  void expect(bool ok, const Run& run, const std::string& what, double got, double wanted) {
    if (!ok) problems_.push_back(fmt::format("{}: {} {}, wanted {}", run.text(), what, got, wanted));
  }

  Outcome<P> train(const Run& run, Sharding sharding) {
    Net<P> model;
    model.initialize({.seed = 3});
    parallel::DataParallel replicas(
        model, ProcessMesh(world_),
        {.sharding = sharding,
         .buckets = {
             .bytes = run.bucket_bytes, .first_bytes = 256, .slice_bytes = std::max<std::int64_t>(4096, run.bucket_bytes)}});
    const bool looks_ahead = run.optimizer == "lookahead";
    const auto inside = make_optimizer<P>(looks_ahead ? "adamw" : run.optimizer, model);
    optim::Lookahead<P> ahead(model, *inside, {.interval = 4});
    optim::AnyOptimizer& optimizer = looks_ahead ? static_cast<optim::AnyOptimizer&>(ahead) : *inside;
    Outcome<P> outcome;
    for (int number = 0; number < steps; ++number) {
      parallel::Step step = replicas.begin(number, run.micro_batches);
      for (int micro = 0; micro < run.micro_batches; ++micro) run_micro_batch(run, micro, model, step);
      step.update(optimizer, {.clip_norm = run.clip});
      outcome.losses.push_back(step.finish().loss());
      outcome.norms.push_back(step.finish().gradient_norm);
      require_equal_on_all_ranks(model.store());
    }
    const auto values = model.store().template values<T>().span();
    outcome.values.assign(values.begin(), values.end());
    if (auto* averages = dynamic_cast<optim::ScheduleFreeAdamW<P>*>(inside.get())) {
      averages->swap();
      require_equal_on_all_ranks(model.store());
      outcome.values.insert(outcome.values.end(), values.begin(), values.end());
      averages->swap();
      require_equal_on_all_ranks(model.store());
    }
    return outcome;
  }

  void run_micro_batch(const Run& run, int micro, const Net<P>& model, parallel::Step& step) {
    const std::int64_t share = samples / world_.size() / run.micro_batches;
    const std::int64_t first = step.number() * samples + (world_.rank() * run.micro_batches + micro) * share;
    Tensor<T> x({share, 6});
    Tensor<std::int32_t> targets({share});
    for (std::int64_t row = 0; row < share; ++row) {
      for (std::int64_t dim = 0; dim < 6; ++dim) {
        x.data()[row * 6 + dim] = static_cast<T>(philox_normal(1, 2, static_cast<std::uint64_t>((first + row) * 6 + dim)));
      }
      targets.data()[row] =
          keeps(run, step.number()) ? static_cast<std::int32_t>((first + row) % classes) : ops::ignored_target;
    }
    const bool use_rare = world_.rank() == world_.size() - 1 && step.number() % 3 == 1;
    step.backward(first, [&] { return cross_entropy(model.forward(x, use_rare), targets); });
  }

  // Step 4 has no targets at all.
  bool keeps(const Run& run, std::int64_t step) const {
    return step != 4 && (run.last_rank_keeps_targets || world_.size() == 1 || world_.rank() < world_.size() - 1);
  }

  void require_equal_on_all_ranks(FlatStore& store) const {
    const std::span<const T> values = store.values<T>().span();
    require_same(world_, "result", {{"values", fmt::format("{:016x}", digest<T>("values", values))}});
  }

  const Group& world_;
  std::vector<std::string>& problems_;
};

// Two parameters of many slices, whose gradients are written rather than computed.
struct Large : nn::Module<Float32> {
  Parameter<float> first = add_parameter("first", {1501, 1001}, Initializer::uniform(-1, 1));
  Parameter<float> second = add_parameter("second", {1300, 1100}, Initializer::uniform(-1, 1));

  Loss<float, Cpu> loss(int step, int rank) const {
    Variable<float> sum = Tensor<float>::zeros({1});
    for (const auto& parameter : {first, second}) {
      const auto write = [step, rank](const auto& dy, const auto& dsum, const auto& dweight) {
        dweight.contribute([&](Tensor<float>& out, bool) {
          for (std::int64_t index = 0; index < out.numel(); ++index) {
            out.data()[index] = static_cast<float>((index * 31 + step * 7 + rank) % 101 - 50);
          }
        });
        dsum.contribute([&](Tensor<float>& out, bool) { out.data()[0] = dy.data()[0]; });
      };
      sum = record(tests::BackwardFunction{"written gradients", write}, Result<float>{.existing = Tensor<float>::zeros({1})},
                   sum, parameter.variable());
    }
    return {.sum = sum, .target_weight = 1, .nominal_targets = 1};
  }
};

std::vector<float> train_large(const Group& world, Sharding sharding) {
  Large model;
  model.initialize({.seed = 5});
  parallel::DataParallel replicas(model, ProcessMesh(world), {.sharding = sharding});
  optim::AdamW<Float32> optimizer(model, {.learning_rate = 0.01});
  for (int number = 0; number < 3; ++number) {
    parallel::Step step = replicas.begin(number);
    step.backward(0, [&] { return model.loss(number, world.rank()); });
    step.update(optimizer, {.clip_norm = 1});
  }
  const auto values = model.store().values<float>().span();
  return {values.begin(), values.end()};
}

void compare_large(const Group& world, std::vector<std::string>& problems) {
  const auto wanted = train_large(world, Sharding::none);
  const auto got = train_large(world, Sharding::optimizer);
  float largest = 0;
  for (std::size_t index = 0; index < wanted.size(); ++index) largest = std::max(largest, std::abs(got[index] - wanted[index]));
  if (largest > 1e-5F) problems.push_back(fmt::format("large parameters are off by {}", largest));
  require_same(world, "result", {{"values", fmt::format("{:016x}", digest<float>("values", got))}});
}

// Optimizer state is split over the ranks: together they hold every element once.
void compare_planes(const Group& world, std::vector<std::string>& problems) {
  Net<Float32> model;
  model.initialize({.seed = 3});
  parallel::DataParallel replicas(
      model, ProcessMesh(world),
      {.sharding = Sharding::optimizer, .buckets = {.bytes = 2048, .first_bytes = 256, .slice_bytes = 2048}});
  const std::int64_t num_slices = model.store().shard() == nullptr ? 1 : std::ssize(model.store().shard()->ranges());
  Signs<Float32> optimizer(model);
  std::int64_t held = elements_held(optimizer);
  std::int64_t all = 0;
  for (int index = 0; index < model.store().num_parameters(); ++index) {
    const ParameterInfo& info = model.store().parameter(index);
    if (info.trainable) all += info.numel;
  }
  if (world.size() > 1 && held > all / world.size() + 16 * num_slices) {
    problems.push_back(fmt::format("a plane of {} elements for a share of {}", held, all));
  }
  world.all_reduce(std::span(&held, 1)).wait_on_host();
  if (held != all) problems.push_back(fmt::format("planes of {} elements together for {}", held, all));
}

// Checks the gradients of all ranks, on all ranks.
void compare_gathered_gradients(const Group& world, std::vector<std::string>& problems) {
  Large model;
  model.initialize({.seed = 5});
  parallel::DataParallel replicas(model, ProcessMesh(world), {.sharding = Sharding::optimizer});
  parallel::Step step = replicas.begin(0);
  step.backward(0, [&] { return model.loss(0, world.rank()); });
  const StepSummary& summary = step.finish();
  replicas.gather_gradients();
  double squares = 0;
  for (const float gradient : model.store().gradients<float>().span()) squares += static_cast<double>(gradient) * gradient;
  const double norm = std::sqrt(squares) * summary.gradient_scale;
  if (std::abs(norm - summary.gradient_norm) > 1e-6 * norm) {
    problems.push_back(fmt::format("gradients of norm {} were gathered, the step's is {}", norm, summary.gradient_norm));
  }
}

// Sharding is chosen where the ranks share memory.
void compare_choice(const Group& world, std::vector<std::string>& problems) {
  const char* per_node = std::getenv("TRIREME_RANKS_PER_NODE");
  const bool on_one_node = per_node == nullptr || world.size() <= std::atoi(per_node);
  if (world.on_one_node() != on_one_node) problems.emplace_back("on_one_node() is wrong");
  for (const auto sharding : {Sharding::automatic, Sharding::optimizer, Sharding::none}) {
    Large model;
    model.initialize({.seed = 5});
    const bool sharded = parallel::DataParallel(model, ProcessMesh(world), {.sharding = sharding}).sharded();
    const bool wanted =
        world.size() > 1 && (sharding == Sharding::optimizer || (sharding == Sharding::automatic && on_one_node));
    if (sharded != wanted) problems.push_back(fmt::format("choice {} of sharding is wrong", static_cast<int>(sharding)));
  }
}

// All combinations of buckets, clipping, micro-batches and precisions, or all pairs of values of two of these.
enum class Settings : std::uint8_t { combined, in_pairs };

std::vector<std::string> find_problems(const Group& world, Settings settings) {
  std::vector<std::string> problems;
  std::vector<std::string> optimizers = optim::optimizer_names();
  optimizers.emplace_back("own");
  optimizers.emplace_back("lookahead");
  optimizers.emplace_back("schedule_free_adamw");
  const bool all = settings == Settings::combined;
  for (const std::string& optimizer : optimizers) {
    for (const bool clips : {false, true}) {
      for (const std::int64_t bucket_bytes : {1, 3000, 1 << 20}) {  // 1: every parameter alone, so some parts are empty
        for (const int micro_batches : {1, 2}) {
          if (!all && (micro_batches == 2) != (clips != (bucket_bytes == 1 << 20))) continue;
          const Run run{.optimizer = optimizer,
                        .clip = clips ? 0.3 : 0.0,
                        .micro_batches = micro_batches,
                        .bucket_bytes = bucket_bytes,
                        .last_rank_keeps_targets = micro_batches == 1};
          const bool single = clips != (bucket_bytes == 3000);
          if (all || !single) Trial<Float64>(world, problems).compare(run);
          if (all || single) Trial<Float32>(world, problems).compare(run);
        }
      }
    }
  }
  compare_large(world, problems);
  compare_planes(world, problems);
  compare_gathered_gradients(world, problems);
  compare_choice(world, problems);
  return problems;
}

}  // namespace

std::vector<std::string> sharded_step_problems(const Group& world) { return find_problems(world, Settings::combined); }

std::vector<std::string> sharded_step_problems_in_pairs(const Group& world) { return find_problems(world, Settings::in_pairs); }

}  // namespace trireme::tests
