#pragma once

#include <string_view>

#include "ops/base/argument_of.hpp"
#include "ops/base/check.hpp"
#include "ops/loss/vocab_parallel_rows.hpp"
#include "trireme/ops/loss/vocab_parallel.hpp"

// The operations of ops/loss/vocab_parallel.hpp for any device. The checks of shapes are shared; VocabParallel<D> does the
// work. An invalid index is an error on a CPU and gives NaN on a GPU, where the host reads no data.
namespace trireme::ops {

template <typename D>
struct VocabParallel {
  template <typename T>
  static void embedding(const HeldRows& rows, const T* weight, T* y);
  template <typename T>
  static void embedding_backward(const HeldRows& rows, const T* dy, T* dweight, bool accumulate);
  template <typename T>
  static void partial_cross_entropy(const HeldClasses<T>& rows, Accumulate<T>* exponentials, Accumulate<T>* target_logits);
  template <typename A>
  static CrossEntropyResult<D> join(const CrossEntropyParts<A>& parts, A* exponentials);
  template <typename T>
  static void partial_cross_entropy_backward(const HeldClasses<T>& rows, const Accumulate<T>* exponentials,
                                             const ScalarArgument<Accumulate<T>>& scale, T* dlogits);
};

template <typename T, typename D>
HeldRows held_rows(std::string_view op, const Tensor<std::int32_t, D>& index, const VocabRange& held,
                   const Tensor<T, D>& weight, const Tensor<T, D>& rows) {
  require(weight.shape().size() == 2 && held.first >= 0 && held.first + weight.dim(0) <= held.total,
          "{}: a weight of shape {} from row {} on does not lie in a table of {} rows", op, weight.shape(), held.first,
          held.total);
  require_count(op, "rows", rows, index.numel() * weight.dim(1));
  return {.index = index.data(), .places = index.numel(), .held = held, .count = weight.dim(0), .width = weight.dim(1)};
}

template <typename T, typename D>
HeldClasses<T> held_classes(std::string_view op, const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                            const VocabRange& held, const Tensor<Accumulate<T>, D>& exponentials) {
  require(logits.shape().size() > 0 && held.first >= 0 && held.first + logits.shape().back() <= held.total,
          "{}: logits of shape {} from class {} on do not lie in {} classes", op, logits.shape(), held.first, held.total);
  require_count(op, "targets", targets, logits.shape().back() == 0 ? targets.numel() : logits.shape().rows());
  require_count(op, "exponentials", exponentials, 2 * targets.numel());
  return {.logits = logits.data(),
          .targets = targets.data(),
          .rows = targets.numel(),
          .held = held,
          .classes = logits.shape().back()};
}

template <typename T, typename D>
void embedding_part(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight, const VocabRange& held, Tensor<T, D>& y) {
  VocabParallel<D>::embedding(held_rows("embedding_part", index, held, weight, y), weight.data(), y.data());
}

template <typename T, typename D>
void embedding_part_backward(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& dy, const VocabRange& held,
                             Tensor<T, D>& dweight, bool accumulate) {
  VocabParallel<D>::embedding_backward(held_rows("embedding_part_backward", index, held, dweight, dy), dy.data(),
                                       dweight.data(), accumulate);
}

template <typename T, typename D>
void partial_cross_entropy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets, const VocabRange& held,
                           Tensor<Accumulate<T>, D>& exponentials, Tensor<Accumulate<T>, D>& target_logits) {
  constexpr std::string_view op = "partial_cross_entropy";
  const HeldClasses<T> rows = held_classes(op, logits, targets, held, exponentials);
  require_count(op, "target_logits", target_logits, targets.numel());
  VocabParallel<D>::partial_cross_entropy(rows, exponentials.data(), target_logits.data());
}

template <typename A, typename D>
CrossEntropyResult<D> join_cross_entropy(const Tensor<A, D>& parts, const Tensor<std::int32_t, D>& targets,
                                         Tensor<A, D>& exponentials) {
  const CrossEntropyParts<A> of{
      .parts = parts.data(), .targets = targets.data(), .ranks = parts.dim(0) / 2, .rows = targets.numel()};
  require_count("join_cross_entropy", "parts", parts, (2 * of.ranks + 1) * of.rows);
  require_count("join_cross_entropy", "exponentials", exponentials, 2 * of.rows);
  return VocabParallel<D>::join(of, exponentials.data());
}

template <typename T, typename D>
void partial_cross_entropy_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets, const VocabRange& held,
                                    const Tensor<Accumulate<T>, D>& exponentials, const ScalarFor<T, D>& scale,
                                    Tensor<T, D>& dlogits) {
  constexpr std::string_view op = "partial_cross_entropy_backward";
  const HeldClasses<T> rows = held_classes(op, logits, targets, held, exponentials);
  require_shape(op, "dlogits", dlogits, logits.shape());
  VocabParallel<D>::partial_cross_entropy_backward(rows, exponentials.data(), argument_of(scale), dlogits.data());
}

}  // namespace trireme::ops
