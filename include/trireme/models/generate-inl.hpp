#pragma once

#include <algorithm>
#include <utility>

#include "trireme/core/export.hpp"
#include "trireme/models/generate.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {
namespace detail {

template <typename D>
Tensor<std::int32_t, D> one_row(std::span<const std::int32_t> tokens) {
  return Tensor<std::int32_t, D>::from({1, static_cast<std::int64_t>(tokens.size())}, tokens);
}

// By a model that reads whole texts, of which it sees the last `block` tokens.
template <typename Model>
std::vector<std::int32_t> continue_by(const Model& model, std::vector<std::int32_t> prompt, const GenerateOptions& options) {
  const auto next_logits = [&](std::span<const std::int32_t> text) {
    return model.next_token_logits(
        one_row<typename Model::Device>(text.last(std::min(text.size(), static_cast<std::size_t>(model.options().block)))));
  };
  return generate(next_logits, std::move(prompt), options);
}

}  // namespace detail

template <typename P, typename D>
std::vector<std::int32_t> generate(const Gpt<P, D>& model, std::vector<std::int32_t> prompt, const GenerateOptions& options) {
  return detail::continue_by(model, std::move(prompt), options);
}

template <typename P, typename D>
std::vector<std::int32_t> generate(const Llama<P, D>& model, std::vector<std::int32_t> prompt, const GenerateOptions& options) {
  return detail::continue_by(model, std::move(prompt), options);
}

template <typename P, typename D>
std::vector<std::int32_t> generate(const LstmLm<P, D>& model, std::vector<std::int32_t> prompt,
                                   const GenerateOptions& options) {
  typename LstmLm<P, D>::State state;
  std::size_t read = 0;
  const auto next_logits = [&](std::span<const std::int32_t> text) {
    const auto unread = text.subspan(std::exchange(read, text.size()));
    return model.logits(detail::one_row<D>(unread), state);
  };
  return generate(next_logits, std::move(prompt), options);
}

}  // namespace models
}  // namespace trireme
