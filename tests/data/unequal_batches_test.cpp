#include <algorithm>
#include <vector>

#include "catch.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

struct Net : nn::Module<Float32> {
  Linear hidden{*this, "hidden", {.in = 2, .out = 8}};
  Linear output{*this, "output", {.in = 8, .out = 1}};
  Value forward(const Tensor<float>& x) const { return output.forward(tanh(hidden.forward(Value(x)))); }
};

// Rows [begin, begin + count) of some data.
Tensor<float> rows_of(std::int64_t begin, std::int64_t count, std::int64_t width) {
  Tensor<float> rows({count, width});
  for (std::int64_t i = 0; i < rows.numel(); ++i) rows.data()[i] = static_cast<float>((begin * width + i) * 37 % 19) / 19;
  return rows;
}

// The loss and the values after a step whose micro-batches have these rows, by rank and micro-batch.
std::vector<float> after_step(const std::vector<std::vector<std::int64_t>>& rows) {
  std::vector<float> found;
  testing::run_ranks(static_cast<int>(rows.size()), [&](const Group& world) {
    Net net;
    net.initialize({.seed = 5});
    parallel::DataParallel replicas(net, ProcessMesh(world));
    optim::Sgd<Float32> optimizer(net, {.learning_rate = 0.5});
    const auto rank = static_cast<std::size_t>(world.rank());
    std::int64_t first = 0;
    for (std::size_t before = 0; before < rank; ++before) {
      for (const std::int64_t count : rows[before]) first += count;
    }
    parallel::Step step = replicas.begin(0, static_cast<int>(rows[rank].size()));
    for (const std::int64_t count : rows[rank]) {
      const Tensor<float> x = rows_of(first, count, 2), target = rows_of(first, count, 1);
      step.backward(first, [&] {
        return Loss<float>{
            .sum = sum(square(net.forward(x) - target)), .target_weight = static_cast<double>(count), .nominal_targets = 64};
      });
      first += count;
    }
    const double loss = step.finish().loss();
    step.update(optimizer);
    if (world.rank() != 0) return;
    found = {static_cast<float>(loss)};
    for (int index = 0; index < net.store().num_parameters(); ++index) {
      const Tensor<float> values = net.store().read_values<float>(index);
      found.insert(found.end(), values.span().begin(), values.span().end());
    }
  });
  return found;
}

}  // namespace

TEST_CASE("in micro-batches of different sizes each row counts alike") {
  const std::vector<float> whole = after_step({{10}});
  for (const auto& parts : std::vector<std::vector<std::vector<std::int64_t>>>{{{3, 7}}, {{1, 3}, {4, 2}}, {{1}, {8}, {1}}}) {
    const std::vector<float> found = after_step(parts);
    REQUIRE(found.size() == whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(found[i] == Approx(whole[i]).margin(1e-6));
  }
}
