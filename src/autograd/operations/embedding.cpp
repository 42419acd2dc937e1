#include "trireme/autograd/operations/embedding.hpp"

#include "autograd/operations/shapes.hpp"
#include "precision/instantiate.hpp"
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

struct Embedding {
  static constexpr std::string_view name = "embedding";
  std::optional<std::int32_t> padding;
  void forward(const auto& index, const auto& weight, auto& y) const { ops::embedding(index, weight, y); }
  void backward(const auto& dy, const auto& index, const auto& dweight) const { contribute_rows(dweight, index, dy, padding); }
  void describe(Attributes& to) const {
    if (padding) to["padding"] = std::int64_t{*padding};
  }
};

template <typename D>
struct TokenEmbedding {
  static constexpr std::string_view name = "token_embedding";
  Tensor<std::int32_t, D> positions;
  void forward(const auto& tokens, const auto& token_weight, const auto& position_weight, auto& y) const {
    ops::embedding(tokens, token_weight, y);
    ops::embedding(positions, position_weight, y, true);
  }
  void backward(const auto& dy, const auto& tokens, const auto& dtoken, const auto& dposition) const {
    contribute_rows(dposition, positions, dy);
    contribute_rows(dtoken, tokens, dy);
  }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> embedding(const Tensor<std::int32_t, D>& index, const Variable<T, D>& weight,
                         std::optional<std::int32_t> padding) {
  const auto result = [&] {
    ops::padding_row(padding, weight.shape()[0]);  // throws if padding is not a row
    return Result<T, D>{with_one_more_dim(index.shape(), weight.shape().back())};
  };
  return record(Embedding{padding}, result, kept(index), weight);
}

template <typename T, typename D>
Variable<T, D> token_embedding(const Tensor<std::int32_t, D>& tokens, const Variable<T, D>& token_weight,
                               const Variable<T, D>& position_weight) {
  Tensor<std::int32_t, D> positions(tokens.shape());
  const auto result = [&] {
    require(tokens.shape().size() == 2, "token_embedding: tokens {} are not [batch, time]", tokens.shape().str());
    require(tokens.dim(1) <= position_weight.shape()[0],
            "token_embedding: {} tokens are longer than the {} positions of the model", tokens.dim(1),
            position_weight.shape()[0]);
    ops::positions(0, tokens.dim(1), positions);
    return Result<T, D>{with_one_more_dim(tokens.shape(), token_weight.shape().back())};
  };
  return record(TokenEmbedding<D>{positions}, result, kept(tokens), token_weight, position_weight);
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, embedding, TRIREME_DEVICE)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, token_embedding, TRIREME_DEVICE)

}  // namespace trireme
