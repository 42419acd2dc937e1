#pragma once

#include <cstdint>
#include <optional>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"

// Rows of a table by their numbers. T: float, double.
namespace trireme TRIREME_EXPORT {

// index[...] into weight[rows, width] -> [..., width]. The row `padding` gets no gradient; negative numbers count from the end.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> embedding(const Tensor<std::int32_t, D>& index, const Variable<T, D>& weight,
                                        std::optional<std::int32_t> padding = {});

// Token plus position: tokens[batch, time] into token_weight, 0 .. time-1 into position_weight -> [batch, time, width].
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> token_embedding(const Tensor<std::int32_t, D>& tokens, const Variable<T, D>& token_weight,
                                              const Variable<T, D>& position_weight);

}  // namespace trireme
