#include "hooked_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "backward.hpp"
#include "measurement/measurement.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

// A parameter for each gradient, registered last first: backward finishes them in the order of the gradients.
struct Gradients : nn::Module<Float32> {
  explicit Gradients(std::span<const GradientSize> gradients) {
    for (std::size_t index = gradients.size(); index-- > 0;) {
      parameters.push_back(add_parameter(fmt::format("gradient{}", index), gradients[index].shape, Initializer::constant(0)));
    }
  }

  // A sum whose backward pass does what is simulated.
  Loss<float> loss(const Backward& backward) const {
    Variable<float> sum(Tensor<float>::zeros({}));
    for (std::size_t index = 0; index < parameters.size(); ++index) {
      const Variable<float> parameter = parameters[index].variable();
      sum = record("simulated", Tensor<float>::zeros({}), {sum.slot(), parameter.slot()},
                   [&backward, gradient = parameters.size() - 1 - index, dparameter = parameter.gradient(),
                    dsum = sum.gradient()](const Tensor<float>& dy) {
                     backward.compute(gradient);
                     dparameter.contribute([](Tensor<float>& values, bool) { std::ranges::fill(values.span(), 1.0F); });
                     dsum.give(dy);
                   });
    }
    return {.sum = sum, .kept = 1, .count = 1};
  }

  std::vector<Parameter<float>> parameters;
};

}  // namespace

HookedStep time_hooked_step(const Group& world, std::span<const GradientSize> gradients, const HookedStepOptions& options) {
  const auto cap = std::max<std::int64_t>(1, static_cast<std::int64_t>(options.cap));
  const auto between = world.nodes().size() > 1 ? parallel::CompressionBetween::nodes : parallel::CompressionBetween::ranks;
  Gradients model(gradients);
  parallel::DataParallel data_parallel(
      model, ProcessMesh(world),
      {.bucket_bytes = cap,
       .first_bucket_bytes = cap,
       .sharding = parallel::Sharding::off,
       .compression = {.hook = parallel::parse_compression(options.hook), .only_if_faster = false, .between = between}});
  const Backward backward(gradients, {}, options.backward_seconds);
  const auto step = [&] {
    world.barrier("step");
    const double seconds = seconds_of([&] {
      auto reduction = data_parallel.begin_step();
      Tape tape;
      reduction.listen(tape);
      const Loss<float> loss = model.loss(backward);
      loss.backward();
      reduction.add(loss);
      reduction.finish();
    });
    model.store().clear_gradients();
    double slowest = seconds;
    world.all_reduce(std::span(&slowest, 1), ReduceOp::max, "slowest step").wait_on_host();
    return slowest;
  };
  for (int warm = 0; warm < 2; ++warm) step();
  const std::uint64_t sent = data_parallel.bytes_sent();
  std::vector<double> seconds;
  for (int round = 0; round < options.rounds; ++round) seconds.push_back(step());
  return {.seconds = median(std::move(seconds)),
          .megabytes_sent = 1e-6 * static_cast<double>(data_parallel.bytes_sent() - sent) / options.rounds};
}
