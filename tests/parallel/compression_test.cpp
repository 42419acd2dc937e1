#include "trireme/parallel/hooks/compression.hpp"

#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "catch.hpp"
#include "compression_runs.hpp"
#include "parallel/hooks/codec_kernels.hpp"
#include "parallel/hooks/orthogonalize.hpp"
#include "parallel/hooks/top_k_selection.hpp"
#include "parallel/reduction/hook_groups.hpp"
#include "problems_on_threads.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;
using namespace trireme::parallel;

namespace {

std::vector<float> normals(std::size_t count, std::uint64_t seed) {
  std::vector<float> values;
  for (std::size_t index = 0; index < count; ++index) values.push_back(static_cast<float>(philox_normal(seed, 0, index)));
  return values;
}

struct Linear : nn::Module<Float32> {
  nn::Linear<Float32> linear{*this, "linear", {.in = 40, .out = 40}};
  Linear() { initialize({.seed = 1}); }

  Loss<float, Cpu> loss(float x) const {
    return cross_entropy(linear.forward(Variable<float>(Tensor<float>::full({2, 40}, x))), Tensor<std::int32_t>::full({2}, 3));
  }
};

// A step is given up after this place.
StepSummary summary_of(const Linear& model, DataParallel& replicas, std::int64_t number, float x = 1) {
  Step step = replicas.begin(number);
  step.backward(0, [&] { return model.loss(x); });
  return step.finish();
}

ParallelOptions with(HookFactory hook) {
  return {.sum = parallel::Hooked{{.hook = std::move(hook), .only_if_faster = false, .between = CompressionBetween::ranks}}};
}

}  // namespace

TEST_CASE("every compression, on two threads") {
  CHECK(tests::problems_on_threads(2, tests::compression_problems) == std::vector<std::string>());
}

TEST_CASE("int8 codes lie within half a step of their block's scale, and what is not finite stays so") {
  const std::size_t count = 3 * int8_block + 17;
  std::vector<float> values = normals(count, 1);
  for (std::size_t index = int8_block; index < 2 * int8_block; ++index) values[index] = 0;
  values[count - 1] = 1e30F;
  std::vector<std::int8_t> codes(count);
  std::vector<float> scales(int8_blocks(count));
  codec_kernels().to_int8(values.data(), codes.data(), scales.data(), count);
  std::vector<float> decoded(count);
  codec_kernels().add_int8(codes.data(), scales.data(), decoded.data(), count);
  for (std::size_t index = 0; index < count; ++index) {
    CHECK(std::abs(decoded[index] - values[index]) <= 0.5001F * scales[index / int8_block]);
  }
  CHECK(decoded[int8_block] == 0);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    values[3] = bad;
    codec_kernels().to_int8(values.data(), codes.data(), scales.data(), count);
    decoded.assign(count, 0);
    codec_kernels().add_int8(codes.data(), scales.data(), decoded.data(), count);
    CHECK(std::isnan(decoded[3]));
  }
}

TEST_CASE("the largest elements are those of a sort, whatever the sample says") {
  std::vector<float> spikes(100'000);  // all where no sample looks
  for (std::size_t index = 1; index < 2000; index += 2) spikes[index] = static_cast<float>(index);
  for (const std::vector<float>& values : {normals(100'000, 2), normals(50, 3), std::vector<float>(5000, -1.0F), spikes}) {
    for (const std::size_t count : {std::size_t{1}, values.size() / 100 + 1, values.size() / 2, values.size()}) {
      std::vector<std::uint32_t> order(values.size());
      std::iota(order.begin(), order.end(), 0U);
      std::ranges::stable_sort(order, std::greater(), [&](std::uint32_t index) { return std::abs(values[index]); });
      order.resize(count);
      std::ranges::sort(order);
      CHECK(largest_elements(values, count) == order);
    }
  }
}

TEST_CASE("columns become orthonormal; dependent ones become zero") {
  const Tensor<float> matrix = Tensor<float>::from({50, 3}, normals(150, 4));
  for (std::int64_t row = 0; row < 50; ++row) matrix.data()[3 * row + 1] = 2 * matrix.data()[3 * row];
  orthogonalize_columns(matrix);
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      double dot = 0;
      for (std::int64_t row = 0; row < 50; ++row)
        dot += static_cast<double>(matrix.data()[3 * row + a]) * matrix.data()[3 * row + b];
      CHECK(dot == Approx(a == b && a != 1 ? 1 : 0).margin(1e-6));
    }
  }
}

TEST_CASE("a step that overflows on one rank leaves nothing in what a compression keeps") {
  for (const std::string name : {"topk:0.01", "powersgd:2"}) {
    testing::run_ranks(2, [&](const Group& world) {
      const Linear model;
      DataParallel replicas(model, ProcessMesh(world), with(parse_compression(name)));
      const auto finite = [&](std::int64_t number, float x, bool wanted) {
        const double norm = summary_of(model, replicas, number, x).gradient_norm;
        require(std::isfinite(norm) == wanted, "{}: gradient norm {} of {}", name, norm, x);
      };
      finite(0, 1, true);
      finite(1, world.rank() == 1 ? std::numeric_limits<float>::infinity() : 1.0F, false);
      finite(2, 1, true);
      double magnitude = 0;
      for (const auto& [tensor, values] : replicas.compression_state()) {
        for (const float value : values.span()) {
          require(std::isfinite(value), "{} keeps {}", tensor, value);
          magnitude += std::abs(value);
        }
      }
      require(magnitude > 0, "{} keeps nothing", name);
    });
  }
}

TEST_CASE("the owners of a node get equal shares, in long runs") {
  FlatStore store(DType::float32);
  for (int layer = 0; layer < 12; ++layer) {
    for (const std::int64_t numel : {300 * 100, 300, 100 * 100, 100, 400 * 100, 400, 400 * 100, 100}) {
      store.add(std::to_string(store.num_parameters()), {numel}, {});
    }
  }
  const std::span<const int> all = store.layout();
  const std::vector<int> owners = assign_owners(store, all, 3);
  std::vector<std::int64_t> load(3);
  int runs = 1;
  for (std::size_t index = 0; index < all.size(); ++index) {
    const int owner = owners[static_cast<std::size_t>(all[index])];
    load[static_cast<std::size_t>(owner)] += store.parameter(all[index]).numel;
    runs += index > 0 && owner != owners[static_cast<std::size_t>(all[index - 1])] ? 1 : 0;
  }
  CHECK(10 * *std::ranges::max_element(load) < 11 * *std::ranges::min_element(load));
  CHECK(runs <= 36);
}

TEST_CASE("compressions have names") {
  CHECK(parse_compression("none") == nullptr);
  for (const std::string name : {"fp16", "bf16", "int8", "topk:0.01", "powersgd:4"})
    CHECK(parse_compression(name)()->str() == name);
  for (const std::string name :
       {"", "fp8", "fp16:1", "topk", "topk:", "topk:0", "topk:2", "topk:x", "powersgd:0", "powersgd:1.5"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(parse_compression(name), Error);
  }
}

TEST_CASE("PowerSGD takes a convolution's weight as a matrix with a row for each channel that it gives") {
  testing::run_ranks(2, [](const Group& world) {
    struct Convolutions : nn::Module<Float32> {
      nn::Conv2d<Float32> first{*this, "first", {.in = 1, .out = 4, .kernel = 3, .bias = false}};  // too small to gain
      nn::Conv2d<Float32> second{*this, "second", {.in = 4, .out = 32, .kernel = 3, .bias = false}};
    };
    Convolutions model;
    model.initialize({.seed = 1});
    DataParallel replicas(model, ProcessMesh(world), with(power_sgd_hook({.rank = 2})));
    Step step = replicas.begin(0);
    step.backward(0, [&] {
      const auto y = model.second.forward(model.first.forward(Variable<float>(Tensor<float>::full({1, 5, 5, 1}, 1))));
      return cross_entropy(reshape(y, {1, 32}), Tensor<std::int32_t>::full({1}, 3));
    });
    step.finish();
    std::vector<std::string> kept;
    for (const auto& [name, values] : replicas.compression_state()) kept.push_back(name + " " + values.shape().str());
    const std::vector<std::string> wanted{"second.weight.error [32, 4, 3, 3]", "second.weight.right_factor [36, 2]"};
    require(kept == wanted, "kept: {}", fmt::join(kept, ", "));
  });
}

TEST_CASE("what compression excludes is refused with its name") {
  testing::run_ranks(2, [](const Group& world) {
    const auto refused = [&](Model& model, const CompressionOptions& compression, const std::string& text) {
      try {
        DataParallel data_parallel(model, ProcessMesh(world), {.sum = Hooked{compression}});
      } catch (const Error& error) {
        if (std::string(error.what()).find(text) != std::string::npos) return;
        throw;
      }
      throw std::runtime_error("no error: " + text);
    };
    const Linear model;
    refused(model, {}, "Hooked lacks its hook");
    refused(model, {.hook = bfloat16_hook(), .start = -1}, "step 0 or later");
    Model doubles(DType::float64);
    doubles.store().add("weight", {3}, {});
    refused(doubles, {.hook = bfloat16_hook()}, "float32");
  });
}

TEST_CASE("ranks that differ in their compression are told") {
  testing::run_ranks(2, [](const Group& world) {
    const Linear model;
    try {
      DataParallel data_parallel(model, ProcessMesh(world), with(power_sgd_hook({.rank = 1 + world.rank()})));
      throw std::runtime_error("no error");
    } catch (const Error& error) {
      if (error.code() != ErrorCode::rank_mismatch || error.fields().name != "sum") throw;
    }
  });
}

TEST_CASE("one hook does not serve two models") {
  testing::run_ranks(2, [](const Group& world) {
    const Linear model;
    const auto hook = [kept = power_sgd_hook()()] { return kept; };
    DataParallel first(model, ProcessMesh(world), with(hook));
    const Linear other;
    bool refused = false;  // Catch's assertions are for one thread
    try {
      DataParallel second(other, ProcessMesh(world), with(hook));
    } catch (const Error&) {
      refused = true;
    }
    require(refused, "two models share a hook");
  });
}

namespace {

// Sums in `exchanges` parts, which are more than it announced.
class Talkative final : public CommunicationHook {
 public:
  explicit Talkative(int exchanges) : exchanges_(exchanges) {}
  std::string str() const override { return "talkative"; }
  int max_exchanges() const override { return 2; }
  HookTask reduce(GradientBucket& bucket) override {
    for (const auto& [name, values] : bucket.gradients()) {
      const std::size_t part = values.span().size() / static_cast<std::size_t>(exchanges_);
      for (int index = 0; index < exchanges_; ++index) {
        co_await bucket.all_reduce(values.span().subspan(static_cast<std::size_t>(index) * part, part));
      }
      co_return;
    }
  }

 private:
  int exchanges_;
};

class Broken final : public CommunicationHook {
 public:
  std::string str() const override { return "broken"; }
  HookTask reduce(GradientBucket& bucket) override {
    std::vector<float> sum(3);
    co_await bucket.all_reduce(std::span(sum));
    if (bucket.rank() == 1) throw std::runtime_error("the hook broke");
  }
};

}  // namespace

TEST_CASE("a hook that awaits more exchanges than it announced is an error, as is one that throws; nothing hangs") {
  const auto run = [](const HookFactory& hook) {
    testing::run_ranks(2, [&](const Group& world) {
      const Linear model;
      DataParallel replicas(model, ProcessMesh(world), with(hook));
      summary_of(model, replicas, 0);
    });
  };
  run([] { return std::make_shared<Talkative>(2); });
  CHECK_THROWS_AS(run([] { return std::make_shared<Talkative>(4); }), Error);
  CHECK_THROWS_AS(run([] { return std::make_shared<Broken>(); }), std::runtime_error);
}
