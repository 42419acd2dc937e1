#include "simulated_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "measurement/measurement.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

using Order = std::vector<std::size_t>;

struct Simulated {
  static constexpr std::string_view name = "simulated";
  const Backward& step;
  std::size_t gradient;

  void forward(const auto&...) const {}
  void backward(const Tensor<float>& dy, const Gradient<float>& dsum, const Gradient<float>& dparameter) const {
    step.compute(gradient);
    dparameter.contribute([](Tensor<float>& values, bool) { std::ranges::fill(values.span(), 1.0F); });
    dsum.give(dy);
  }
};

// A parameter for each gradient. Parameters that are registered first come last in the store.
struct Gradients : nn::Module<Float32> {
  Gradients(std::span<const GradientSize> gradients, const Order& store_order) : parameters(gradients.size()) {
    for (auto index = store_order.rbegin(); index != store_order.rend(); ++index) {
      parameters[*index] = add_parameter(fmt::format("gradient{}", *index), gradients[*index].shape, Initializer::constant(0));
    }
  }

  // A sum whose backward pass is the simulated one, in this order.
  Loss<float> loss(const Backward& backward, const Order& order) const {
    Variable<float> sum(Tensor<float>::zeros({}));
    for (auto index = order.rbegin(); index != order.rend(); ++index) {
      sum = record(Simulated{backward, *index}, Result<float>{.existing = sum.value()}, sum, parameters[*index].variable());
    }
    return {.sum = sum, .target_weight = 1, .nominal_targets = 1};
  }

  std::vector<Parameter<float>> parameters;  // by gradient
};

Order order_of(std::size_t count, bool swap_halves) {
  Order order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (swap_halves) std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(count / 2));
  return order;
}

}  // namespace

struct SimulatedStep::State {
  State(const Group& group, std::span<const GradientSize> gradients, const Backward& simulated, const Options& options)
      : world(group),
        backward(simulated),
        order(order_of(gradients.size(), false)),
        first_order(order_of(gradients.size(), options.swap_halves && options.first_in_store_order)),
        model(gradients, order_of(gradients.size(), options.swap_halves)),
        data_parallel(model, ProcessMesh(group), options.data_parallel) {}

  Group world;
  const Backward& backward;
  Order order;
  Order first_order;
  Gradients model;
  parallel::DataParallel data_parallel;
  std::int64_t next_step = 0;
  std::uint64_t bytes_sent = 0;  // in the last step
};

SimulatedStep::SimulatedStep(const Group& world, std::span<const GradientSize> gradients, const Backward& backward,
                             const Options& options)
    : state_(std::make_unique<State>(world, gradients, backward, options)) {}
SimulatedStep::~SimulatedStep() = default;
SimulatedStep::SimulatedStep(SimulatedStep&&) noexcept = default;

const parallel::DataParallel& SimulatedStep::data_parallel() const { return state_->data_parallel; }

double SimulatedStep::megabytes_sent() const { return 1e-6 * static_cast<double>(state_->bytes_sent); }

double SimulatedStep::run() {
  const Order& order = state_->next_step == 0 ? state_->first_order : state_->order;
  return slowest_seconds(state_->world, [&] {
    const std::uint64_t sent = state_->data_parallel.bytes_sent();
    parallel::Step step = state_->data_parallel.begin(state_->next_step++);
    step.backward(0, [&] { return state_->model.loss(state_->backward, order); });
    step.finish();
    state_->bytes_sent = state_->data_parallel.bytes_sent() - sent;
  });
}

parallel::ParallelOptions buckets_of(double bytes) {
  const auto cap = std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes));
  return {.sharding = parallel::Sharding::none, .buckets = {.bytes = cap, .first_bytes = cap}};
}

std::vector<double> time_steps(std::span<SimulatedStep> steps, int rounds) {
  for (SimulatedStep& step : steps) {
    for (int warm = 0; warm < 2; ++warm) step.run();
  }
  std::vector<std::vector<double>> seconds(steps.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < steps.size(); ++turn) {
      const std::size_t index = (turn + static_cast<std::size_t>(round)) % steps.size();
      seconds[index].push_back(steps[index].run());
    }
  }
  std::vector<double> result;
  for (auto& of_step : seconds) result.push_back(median(std::move(of_step)));
  return result;
}
