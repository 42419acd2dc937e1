#include "trireme/ops/loss/ctc.hpp"

#include <string_view>
#include <tuple>
#include <utility>

#include "precision/instantiate.hpp"
#include "trireme/autograd/composed/losses.hpp"
#include "trireme/autograd/record.hpp"

namespace trireme {
namespace {

struct Ctc {
  static constexpr std::string_view name = "ctc_loss";
  ops::CtcOptions options;

  template <typename T, typename D>
  void forward(const Tensor<T, D>& x, const Tensor<std::int32_t, D>& targets, const Tensor<std::int32_t, D>& input_lengths,
               const Tensor<std::int32_t, D>& target_lengths, Tensor<T, D>& losses, Tensor<double, D>& alpha) const {
    ops::ctc_loss({x, targets, input_lengths, target_lengths, options}, losses, alpha);
  }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dlosses, const Tensor<T, D>& x, const Tensor<std::int32_t, D>& targets,
                const Tensor<std::int32_t, D>& input_lengths, const Tensor<std::int32_t, D>& target_lengths,
                const Tensor<double, D>& alpha, const Gradient<T, D>& dx) const {
    Tensor<T, D> gradient(x.shape());
    ops::ctc_loss_backward({x, targets, input_lengths, target_lengths, options}, alpha, dlosses, gradient);
    dx.give(std::move(gradient));
  }
  void describe(Attributes& to) const {
    to["blank"] = std::int64_t{options.blank};
    to["zero_infinity"] = std::int64_t{options.zero_infinity};
    to["per_label"] = std::int64_t{options.per_label};
  }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> ctc_losses(const Variable<T, D>& log_probabilities, const Tensor<std::int32_t, D>& targets,
                          const Tensor<std::int32_t, D>& input_lengths, const Tensor<std::int32_t, D>& target_lengths,
                          const ops::CtcOptions& options) {
  const auto results = [&] {
    const Shape& shape = log_probabilities.shape();
    require(shape.size() == 3 && targets.shape().size() == 2,
            "ctc_loss: log_probabilities {} and targets {} are not [batch, time, classes] and [batch, labels]", shape,
            targets.shape());
    return std::tuple(Result<T, D>{{shape[0]}}, internal(Result<double, D>{{shape[0], shape[1], 2 * targets.dim(1) + 1}}));
  };
  return record(Ctc{options}, results, kept(log_probabilities), kept(targets), kept(input_lengths), kept(target_lengths));
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, ctc_losses, TRIREME_DEVICE)

}  // namespace trireme
