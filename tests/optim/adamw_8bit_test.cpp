// The state of 8-bit AdamW, and how close it stays to AdamW.

#include "trireme/optim/adamw_8bit.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "ops/threads.hpp"
#include "optim/copy_state.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/summary.hpp"

using namespace trireme;

namespace {

std::size_t in_use() { return device::host_memory_statistics().in_use_bytes; }

struct Weights {
  Model model{DType::float32};
  FlatStore& store = model.store();
  int large = store.add("large", {300, 350}, Initializer::normal(0, 1));
  int small = store.add("small", {4095}, Initializer::normal(0, 1));
  int least = store.add("least", {4096}, Initializer::normal(0, 1));
  int frozen = store.add("frozen", {5000}, Initializer::normal(0, 1));
  int scalar = store.add("scalar", Shape{}, Initializer::normal(0, 1));
  int empty = store.add("empty", {0, 3}, Initializer::normal(0, 1));

  Weights() {
    store.freeze(frozen);
    store.initialize<float>(1);
    store.gradients<float>();
  }
  void step(optim::AnyOptimizer& optimizer, int number, double learning_rate = 1e-3) {
    const auto gradients = store.gradients<float>().span();
    for (std::size_t at = 0; at < gradients.size(); ++at) {
      gradients[at] = std::sin(static_cast<float>(at) + 3 * static_cast<float>(number));
    }
    optimizer.step({.target_weight = 1, .gradient_norm = 1, .used = {true, true, true, false, true, true}},
                   {.learning_rate = learning_rate});
  }
  std::vector<float> values(int parameter) {
    const auto values = store.values<float>(parameter).span();
    return {values.begin(), values.end()};
  }
};

std::vector<std::string> listed(optim::AnyOptimizer& optimizer) {
  State state;
  optimizer.add_to(state);
  std::vector<std::string> names;
  for (const StateTensor& tensor : state.tensors()) {
    std::string name = tensor.name + " " + std::string(name_of(tensor.dtype));
    for (const std::int64_t dim : tensor.shape.dims()) name += " " + std::to_string(dim);
    names.push_back(name);
  }
  return names;
}

// A student of a random teacher: the mean loss of the last of `steps`.
template <typename Kind>
double loss_of_student(const auto& options, int steps) {
  struct Net : nn::Module<Float32> {
    nn::Linear<Float32> up{*this, "up", {.in = 16, .out = 320}};
    nn::Linear<Float32> down{*this, "down", {.in = 320, .out = 16}};
    Variable<float> forward(const Variable<float>& x) const { return down.forward(tanh(up.forward(x))); }
  };
  Net teacher;
  Net student;
  teacher.initialize({.seed = 1});
  student.initialize({.seed = 2});
  Kind optimizer(student, options);
  double last = 0;
  for (int number = 0; number < steps; ++number) {
    Tensor<float> x({32, 16});
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      x.data()[i] = static_cast<float>(philox_normal(5, static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(i)));
    }
    const Tensor<float> wanted = teacher.forward(x).value();
    Tape tape;
    const auto difference = subtract(student.forward(x), Variable<float>(wanted));
    const auto sum_of_squares = sum(multiply(difference, difference));
    const Loss<float> loss{.sum = sum_of_squares, .target_weight = 32, .nominal_targets = 32};
    loss.backward();
    optimizer.step(optim::summarize(student.store(), loss));
    if (number >= steps - 50) last += static_cast<double>(sum_of_squares.value().data()[0]) / (32 * 50);
  }
  return last;
}

}  // namespace

TEST_CASE("8-bit AdamW keeps codes and magnitudes of large parameters, and moments of small ones") {
  Weights weights;
  optim::AdamW8bit<Float32> optimizer(weights.model);
  CHECK(listed(optimizer) ==
        std::vector<std::string>{"optimizer.exp_avg_codes.large uint8 300 350", "optimizer.exp_avg_absmax.large float32 411",
                                 "optimizer.exp_avg_sq_codes.large uint8 300 350",
                                 "optimizer.exp_avg_sq_absmax.large float32 411", "optimizer.exp_avg.small float32 4095",
                                 "optimizer.exp_avg_sq.small float32 4095", "optimizer.exp_avg_codes.least uint8 4096",
                                 "optimizer.exp_avg_absmax.least float32 16", "optimizer.exp_avg_sq_codes.least uint8 4096",
                                 "optimizer.exp_avg_sq_absmax.least float32 16", "optimizer.exp_avg.scalar float32",
                                 "optimizer.exp_avg_sq.scalar float32", "optimizer.exp_avg.empty float32 0 3",
                                 "optimizer.exp_avg_sq.empty float32 0 3"});
}

TEST_CASE("8-bit AdamW's state has 2 bytes for an element and 8 for a block") {
  Weights weights;
  const std::size_t before = in_use();
  optim::AdamW8bit<Float32> optimizer(weights.model);
  CHECK(in_use() == before);
  weights.step(optimizer, 0);
  const std::size_t wanted = 2 * (105000 + 4096) + 8 * (411 + 16) + 8 * (4095 + 1);
  CHECK(in_use() - before >= wanted);
  CHECK(in_use() - before <= wanted + 6 * 4096);  // of 6 tensors
  optim::AdamW<Float32> of_32_bits(weights.model);
  const std::size_t with_8_bits = in_use();
  weights.step(of_32_bits, 1);
  CHECK(in_use() - with_8_bits >= 8 * 113192);
}

TEST_CASE("parameters in full precision, small or in a group, have the bits of AdamW") {
  Weights wanted;
  Weights weights;
  optim::AdamW<Float32> adamw(wanted.model);
  optim::AdamW8bit<Float32> optimizer(weights.model, {.groups = {{.pattern = "least", .full_precision = true}}});
  for (int number = 0; number < 5; ++number) {
    wanted.step(adamw, number);
    weights.step(optimizer, number);
  }
  for (const int parameter : {weights.small, weights.least, weights.scalar, weights.frozen}) {
    CHECK(weights.values(parameter) == wanted.values(parameter));
  }
  const auto got = weights.values(weights.large);
  const auto exact = wanted.values(wanted.large);
  CHECK(got != exact);
  for (std::size_t at = 0; at < got.size(); ++at) REQUIRE(got[at] == Approx(exact[at]).margin(1e-3));
}

TEST_CASE("8-bit AdamW goes on from its state with the same bits, and climbs where it is told to") {
  Weights whole;
  optim::AdamW8bit<Float32> of_whole(whole.model, {.min_8bit_size = 0});
  for (int number = 0; number < 4; ++number) {
    Weights resumed;
    optim::AdamW8bit<Float32> optimizer(resumed.model, {.min_8bit_size = 0});
    State from;
    whole.store.add_to(from, "model.");
    of_whole.add_to(from);
    State to;
    resumed.store.add_to(to, "model.");
    optimizer.add_to(to);
    tests::copy_state(from, to);
    whole.step(of_whole, number);
    resumed.step(optimizer, number);
    for (const int parameter : {whole.large, whole.small, whole.scalar}) {
      REQUIRE(whole.values(parameter) == resumed.values(parameter));
    }
  }
  Weights up;
  Weights down;
  optim::AdamW8bit<Float32> climbs(up.model, {.weight_decay = 0, .maximize = true});
  optim::AdamW8bit<Float32> descends(down.model, {.weight_decay = 0});
  const float begin = up.values(up.large)[1];
  up.step(climbs, 0);
  down.step(descends, 0);
  CHECK(up.values(up.large)[1] - begin == Approx(begin - down.values(down.large)[1]).epsilon(1e-3));
}

// 4 % apart after 300 steps; rounding is noise, whose share is larger when the loss is smaller.
TEST_CASE("8-bit AdamW learns as AdamW does") {
  double exact = 0;
  double coded = 0;
  with_threads(1, [&] {
    exact = loss_of_student<optim::AdamW<Float32>>(optim::AdamWOptions{.learning_rate = 2e-3}, 300);
    coded = loss_of_student<optim::AdamW8bit<Float32>>(optim::AdamW8bitOptions{.learning_rate = 2e-3}, 300);
  });
  CHECK(exact < 0.1);  // of about 1
  CHECK(coded == Approx(exact).epsilon(0.06));
}

TEST_CASE("8-bit AdamW refuses what it can't do") {
  Weights weights;
  using Options = optim::AdamW8bitOptions;
  const auto refused = [&](const Options& options) { const optim::AdamW8bit<Float32> optimizer(weights.model, options); };
  CHECK_THROWS_WITH(refused({.beta1 = 1}), ContainsSubstring("betas lie in [0, 1), got 1"));
  CHECK_THROWS_WITH(refused({.min_8bit_size = -1}), ContainsSubstring("min_8bit_size are 0 or more, got 1e-08 and -1"));
  CHECK_THROWS_WITH(optim::AdamW<Float32>(weights.model, {.groups = {{.pattern = "large", .full_precision = true}}}),
                    ContainsSubstring("sets full_precision, which is only for AdamW8bit"));
  Model split(DType::float32);
  split.store().add("split.weight", Placement{.shape = {80, 64}, .dim = 0, .ranges = {{0, 40}}}, Initializer::constant(1));
  CHECK_THROWS_WITH(optim::AdamW8bit<Float32>(split), ContainsSubstring("a tensor or expert axis splits split.weight"));
  optim::AdamW8bit<Float32>(split, {.groups = {{.pattern = "split.*", .full_precision = true}}});

  struct Lone final : Shard {
    using Shard::Shard;
    std::unique_ptr<Publication> publish() override { return nullptr; }
    void sum_over_ranks(std::span<double>) override {}
    void sum_over_ranks(std::span<float>) override {}
  };
  // A shard without the other ranks' parts.
  const Range own{weights.store.parameter(weights.large).offset + 16, weights.store.parameter(weights.large).offset + 1024};
  weights.store.set_shard(std::make_shared<Lone>(std::vector<Range>{own}, false));
  optim::AdamW8bit<Float32> optimizer(weights.model);
  State state;
  CHECK_THROWS_WITH(optimizer.add_to(state), ContainsSubstring("elements [16, 1024) of large are not whole blocks"));
}
