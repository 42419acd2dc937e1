#include <cmath>

#include "ops/cuda_compare.hpp"
#include "trireme/ops/loss/ctc.hpp"

// The CTC loss of a GPU against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
CtcInput<T, Cuda> there(const CtcInput<T, Cpu>& input) {
  return {input.log_probabilities.template to<Cuda>(), input.targets.template to<Cuda>(),
          input.input_lengths.template to<Cuda>(), input.target_lengths.template to<Cuda>(), input.options};
}

}  // namespace

TEMPLATE_TEST_CASE("CTC on the GPU", "", float, double) {
  using T = TestType;
  constexpr std::int64_t batch = 5, time = 70, classes = 9, labels = 20;
  CtcInput<T, Cpu> input{.log_probabilities = random_tensor<T>({batch, time, classes}, 1),
                         .targets = Tensor<std::int32_t>({batch, labels}),
                         .input_lengths = Tensor<std::int32_t>::from({batch}, {70, 41, 45, 5, 0}),
                         .target_lengths = Tensor<std::int32_t>::from({batch}, {20, 20, 0, 3, 0}),
                         .options = {.zero_infinity = true}};
  for (std::int64_t i = 0; i < batch * labels; ++i) input.targets.data()[i] = static_cast<std::int32_t>(1 + i * i % 8);
  const auto on_gpu = there(input);
  Tensor<T> losses({batch}), gradient(input.log_probabilities.shape());
  Tensor<double> alpha({batch, time, 2 * labels + 1});
  Tensor<T, Cuda> losses_there({batch}), gradient_there(gradient.shape());
  Tensor<double, Cuda> alpha_there(alpha.shape());
  ctc_loss(input, losses, alpha);
  ctc_loss(on_gpu, losses_there, alpha_there);
  require_same(losses_there, losses, 10);
  const auto dlosses = random_tensor<T>({batch}, 2);
  ctc_loss_backward(input, alpha, dlosses, gradient);
  ctc_loss_backward(on_gpu, alpha_there, dlosses.template to<Cuda>(), gradient_there);
  require_same(gradient_there, gradient, 100);

  // The host does not wait: wrong samples are NaN.
  input.target_lengths.at(1) = 21;
  input.targets.at(0, 3) = classes;
  ctc_loss(there(input), losses_there, alpha_there);
  const auto wrong = losses_there.template to<Cpu>();
  CHECK(std::isnan(wrong.at(0)));
  CHECK(std::isnan(wrong.at(1)));
  CHECK(std::isfinite(wrong.at(2)));
}
