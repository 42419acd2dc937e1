#include "ops/reference_fixture.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/norm.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/ops/array/transpose.hpp"

namespace trireme::ops {
namespace {

// Fixtures hold [batch, channels, ...].
Tensor<float> exchanged(const Tensor<float>& x) {
  Tensor<float> y(transposed_shape(x.shape(), 1, 2));
  transpose(x, 1, 2, y);
  return y;
}
Tensor<float> channels_last(const Tensor<float>& x) {
  return exchanged(x.reshape({x.dim(0), x.dim(1), x.numel() / (x.dim(0) * x.dim(1))}));
}

// function(x, weight, bias) and the gradients of all three.
template <typename Function>
void run_norm(OpFixture& fixture, const Function& function) {
  Tape tape;
  const auto result_of = [&fixture](const std::string& name) {
    return [&fixture, name](const Tensor<float>& gradient) { fixture.result(name, gradient); };
  };
  const auto x = watch(channels_last(fixture.input("x")),
                       [&fixture](const Tensor<float>& dx) { fixture.result("grad_x", exchanged(dx)); });
  const auto weight = watch(fixture.input("weight"), result_of("grad_weight"));
  const auto bias = watch(fixture.input("bias"), result_of("grad_bias"));
  const Variable<float> y = function(x, weight, bias);
  fixture.result("out", exchanged(y.value()));
  sum(multiply(y, Variable<float>(channels_last(fixture.input("gout_out"))))).backward();
}

}  // namespace

void run_batch_norm(OpFixture& fixture) {
  fixture.know_options({"training", "momentum", "eps"});
  const auto& hyper = fixture.hyper();
  const RunningStatistics<float> running{.mean = fixture.input("running_mean"), .var = fixture.input("running_var")};
  run_norm(fixture, [&](const auto& x, const auto& weight, const auto& bias) {
    return batch_norm(x, weight, bias, running,
                      {.training = hyper.at("training"), .momentum = hyper.at("momentum"), .epsilon = hyper.at("eps")});
  });
  fixture.result("new_running_mean", running.mean);
  fixture.result("new_running_var", running.var);
}

void run_group_norm(OpFixture& fixture) {
  fixture.know_options({"groups", "eps"});
  const auto& hyper = fixture.hyper();
  run_norm(fixture, [&](const auto& x, const auto& weight, const auto& bias) {
    return group_norm(x, weight, bias, hyper.at("groups"), hyper.at("eps"));
  });
}

}  // namespace trireme::ops
