#include "autograd/shapes.hpp"
#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/ops/embedding/embedding.hpp"
#include "trireme/ops/embedding/positions.hpp"

namespace trireme {
namespace {

template <typename T, typename D>
void contribute_rows(const Gradient<T, D>& dweight, const Tensor<std::int32_t, D>& index, const Tensor<T, D>& dy,
                     std::optional<std::int32_t> padding = {}) {
  dweight.contribute([&](Tensor<T, D>& dw, bool accumulate) { ops::embedding_backward(index, dy, dw, accumulate, padding); });
}

}  // namespace

template <typename T, typename D>
Variable<T, D> embedding(const Tensor<std::int32_t, D>& index, const Variable<T, D>& weight,
                         std::optional<std::int32_t> padding) {
  require_operands("embedding", index, weight);
  const auto row = ops::padding_row(padding, weight.shape()[0]);
  Tensor<T, D> y(with_one_more_dim(index.shape(), weight.shape().back()));
  ops::embedding(index, weight.value(), y);
  return record("embedding", std::move(y), {weight.slot()}, [index, row, dweight = weight.gradient()](const Tensor<T, D>& dy) {
    contribute_rows(dweight, index, dy, row);
  });
}

template <typename T, typename D>
Variable<T, D> token_embedding(const Tensor<std::int32_t, D>& tokens, const Variable<T, D>& token_weight,
                               const Variable<T, D>& position_weight) {
  require_operands("token_embedding", tokens, token_weight, position_weight);
  require(tokens.shape().size() == 2, "token_embedding: tokens {} are not [batch, time]", tokens.shape().str());
  require(tokens.dim(1) <= position_weight.shape()[0],
          "token_embedding: {} tokens are longer than the {} positions of the model", tokens.dim(1),
          position_weight.shape()[0]);
  Tensor<std::int32_t, D> positions(tokens.shape());
  ops::positions(0, tokens.dim(1), positions);
  Tensor<T, D> y(with_one_more_dim(tokens.shape(), token_weight.shape().back()));
  ops::embedding(tokens, token_weight.value(), y);
  ops::embedding(positions, position_weight.value(), y, true);
  return record(
      "token_embedding", std::move(y), {token_weight.slot(), position_weight.slot()},
      [tokens, positions, dtoken = token_weight.gradient(), dposition = position_weight.gradient()](const Tensor<T, D>& dy) {
        contribute_rows(dposition, positions, dy);
        contribute_rows(dtoken, tokens, dy);
      });
}

#define TRIREME_INSTANTIATE(T)                                                                                     \
  template Variable<T, TRIREME_DEVICE> embedding(const Tensor<std::int32_t, TRIREME_DEVICE>&,                      \
                                                 const Variable<T, TRIREME_DEVICE>&, std::optional<std::int32_t>); \
  template Variable<T, TRIREME_DEVICE> token_embedding(const Tensor<std::int32_t, TRIREME_DEVICE>&,                \
                                                       const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
