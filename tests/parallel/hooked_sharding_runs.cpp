#include "hooked_sharding_runs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "trireme/core/philox.hpp"
#include "trireme/files/digest.hpp"
#include "trireme/trireme.hpp"

namespace trireme::tests {
namespace {

using parallel::CommunicationHook;
using parallel::CompressionBetween;
using parallel::Sharding;

constexpr std::int64_t classes = 5;
constexpr std::int64_t rows = 3;  // of a micro-batch
constexpr int steps = 5;

// Parameters that are large enough for an owner of their own, and small ones.
template <typename P>
struct Net : nn::Module<P> {
  nn::Linear<P> hidden{*this, "hidden", {.in = 6, .out = 130}};
  nn::Linear<P> wide{*this, "wide", {.in = 130, .out = 140}};
  nn::Linear<P> frozen{*this, "frozen", {.in = 140, .out = 140}};
  nn::Linear<P> back{*this, "back", {.in = 140, .out = 130}};
  nn::Linear<P> rare{*this, "rare", {.in = 130, .out = 130}};  // used by the last rank in some steps
  nn::Linear<P> output{*this, "output", {.in = 130, .out = classes}};

  Net() {
    frozen.weight.freeze();
    frozen.bias.freeze();
  }

  auto forward(const Variable<typename P::Compute>& x, bool use_rare) const {
    auto y = back.forward(tanh(frozen.forward(tanh(wide.forward(tanh(hidden.forward(x)))))));
    if (use_rare) y = add(y, rare.forward(y));
    return output.forward(y);
  }
};

struct Setup {
  std::string hook;
  CompressionBetween between = CompressionBetween::nodes;
  std::string optimizer = "adamw";
  std::int64_t bucket_bytes = 40'000;
  std::int64_t start = 0;
  int micro_batches = 1;
  double clip = 0;

  std::string str() const {
    return fmt::format("{} between {}, {}, buckets of {} bytes, from step {}, {} micro-batches, clip {}", hook,
                       between == CompressionBetween::nodes ? "nodes" : "ranks", optimizer, bucket_bytes, start, micro_batches,
                       clip);
  }
  // A hook that relies on it also runs on a single node, where it exchanges nothing.
  parallel::HookFactory hook_factory() const {
    if (hook == "momentum") return parallel::top_k_hook({.ratio = 0.05, .momentum = 0.9});
    return parallel::parse_compression(hook);
  }
};

struct Outcome {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<float> values;
  std::int64_t owned = 0;  // elements that this rank updates
};

template <typename P>
Outcome train(const Group& world, const Setup& setup, Sharding sharding) {
  Net<P> model;
  model.initialize({.seed = 3});
  parallel::DataParallel replicas(
      model, ProcessMesh(world),
      {.sum =
           parallel::Hooked{
               {.hook = setup.hook_factory(), .start = setup.start, .only_if_faster = false, .between = setup.between}},
       .sharding = sharding,
       .buckets = {.bytes = setup.bucket_bytes, .first_bytes = 256},
       .check_replicas = 2,
       .loss_scale = {.enabled = false}});  // the largest gradients of float16 would leave the range of hook fp16
  const auto optimizer = optim::make_optimizer<P>(setup.optimizer, model, {.learning_rate = 0.01});
  Outcome outcome;
  for (int number = 0; number < steps; ++number) {
    const bool use_rare = world.rank() == world.size() - 1 && number % 3 == 1;
    parallel::Step step = replicas.begin(number, setup.micro_batches);
    for (int micro = 0; micro < setup.micro_batches; ++micro) {
      const std::int64_t first = ((number * world.size() + world.rank()) * setup.micro_batches + micro) * rows;
      Tensor<typename P::Compute> x({rows, 6});
      Tensor<std::int32_t> targets({rows});
      for (std::int64_t index = 0; index < x.numel(); ++index) {
        x.data()[index] = static_cast<typename P::Compute>(
            static_cast<float>(philox_normal(1, 2, static_cast<std::uint64_t>(first * 6 + index))));
      }
      for (std::int64_t row = 0; row < rows; ++row) targets.data()[row] = static_cast<std::int32_t>((first + row) % classes);
      step.backward(first, [&] { return cross_entropy(model.forward(x, use_rare), targets); });
    }
    step.update(*optimizer, {.clip_norm = setup.clip});
    outcome.losses.push_back(step.finish().loss());
    outcome.norms.push_back(step.finish().gradient_norm);
  }
  FlatStore& store = model.store();
  const auto values = store.values<float>().span();
  outcome.values.assign(values.begin(), values.end());
  outcome.owned = store.shard() == nullptr ? store.trainable_numel() : store.shard()->numel();
  require_same(world, "result", {{"values", fmt::format("{:016x}", digest<float>("values", values))}});
  return outcome;
}

class Comparison {
 public:
  explicit Comparison(const Group& world) : world_(world) {}

  // Owners compute the same as every rank would; only the norm is added in another order.
  template <typename P>
  void compare(const Setup& setup) {
    const Outcome wanted = train<P>(world_, setup, Sharding::none);
    const Outcome got = train<P>(world_, setup, Sharding::optimizer);
    for (std::size_t step = 0; step < wanted.losses.size(); ++step) {
      const double tolerance = setup.clip > 0 ? 1e-4 : 0;
      expect(std::abs(got.losses[step] - wanted.losses[step]) <= tolerance, setup, "loss", got.losses[step],
             wanted.losses[step]);
      expect(std::abs(got.norms[step] - wanted.norms[step]) <= (1e-6 + tolerance) * wanted.norms[step], setup, "norm",
             got.norms[step], wanted.norms[step]);
    }
    float largest = 0;
    for (std::size_t index = 0; index < wanted.values.size(); ++index) {
      largest = std::max(largest, std::abs(got.values[index] - wanted.values[index]));
    }
    expect(largest <= (setup.clip > 0 ? 1e-4F : 0.0F), setup, "difference of values", largest, 0);
    check_owned<P>(setup, got.owned);
  }

  std::vector<std::string> problems;

 private:
  void expect(bool ok, const Setup& setup, const std::string& what, double got, double wanted) {
    if (!ok) problems.push_back(fmt::format("{}: {} {}, wanted {}", setup.str(), what, got, wanted));
  }

  // Each node, or each rank where all of them compress, holds the optimizer state of everything once.
  template <typename P>
  void check_owned(const Setup& setup, std::int64_t owned) {
    Net<P> model;
    const std::int64_t all = model.store().trainable_numel();
    std::int64_t held = owned;
    world_.all_reduce(std::span(&held, 1)).wait_on_host();
    const std::int64_t copies = setup.between == CompressionBetween::ranks ? world_.size() : std::ssize(world_.nodes());
    const std::int64_t gaps = 16 * model.store().num_parameters();  // behind the last parameter of an owner
    expect(held <= copies * all && held >= copies * (all - gaps), setup, "elements that are updated", static_cast<double>(held),
           static_cast<double>(copies * all));
    const bool alone = setup.between == CompressionBetween::ranks || std::ssize(world_.nodes()) == world_.size();
    const auto smallest = std::ranges::min(world_.nodes(), {}, &std::vector<int>::size).size();
    expect(alone || smallest == 1 || owned < all * 2 / 3, setup, "elements of one rank", static_cast<double>(owned),
           static_cast<double>(all));
  }

  const Group& world_;
};

}  // namespace

std::vector<std::string> hooked_sharding_problems(const Group& world) {
  Comparison comparison(world);
  constexpr auto ranks = CompressionBetween::ranks;
  for (const std::string hook : {"fp16", "int8", "topk:0.05", "powersgd:2", "momentum"}) {
    const std::int64_t late = hook == "momentum" ? 0 : 2;
    const std::string optimizer = hook == "momentum" ? "sgd" : "adamw";
    comparison.compare<Float32>({.hook = hook, .optimizer = optimizer});
    comparison.compare<MixedBfloat16>(
        {.hook = hook, .optimizer = optimizer, .bucket_bytes = 1, .start = late, .micro_batches = 2});
    comparison.compare<Float32>({.hook = hook, .between = ranks, .optimizer = optimizer, .start = late, .clip = 0.3});
    comparison.compare<MixedFloat16>({.hook = hook, .optimizer = optimizer, .bucket_bytes = 1 << 20, .clip = 0.3});
  }
  for (const std::string optimizer : {"lamb", "lars", "muon", "adafactor"})
    comparison.compare<Float32>({.hook = "int8", .optimizer = optimizer});
  comparison.compare<Float32>({.hook = "momentum", .optimizer = "lamb", .micro_batches = 2, .clip = 0.3});
  return comparison.problems;
}

}  // namespace trireme::tests
