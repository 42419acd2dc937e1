// wanted: backward\(batch, loss\) needs a function that returns a Loss
#include "trireme/parallel/step/step.hpp"

using namespace trireme;

void train(parallel::Step& step, const Variable<float>& logits, const Tensor<std::int32_t>& labels) {
  step.backward(0, [&] { cross_entropy(logits, labels); });
}
