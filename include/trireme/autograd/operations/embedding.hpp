#pragma once

#include <cstdint>
#include <optional>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"

// Rows of a table by their numbers. T: float, double.
namespace trireme TRIREME_EXPORT {

// Looks up index[...] in weight[rows, width] -> [..., width]. The row `padding` gets no gradient; negative numbers count from
// the end.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> embedding(const Tensor<std::int32_t, D>& index, const Variable<T, D>& weight,
                                        std::optional<std::int32_t> padding = {});

// Looks up tokens[batch, time] in token_weight and 0 .. time-1 in position_weight, and adds both -> [batch, time, width].
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> token_embedding(const Tensor<std::int32_t, D>& tokens, const Variable<T, D>& token_weight,
                                              const Variable<T, D>& position_weight);

}  // namespace trireme
