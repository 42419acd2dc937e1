#pragma once

#include <fmt/format.h>

#include <string_view>

#include "ops/base/argument_of.hpp"
#include "ops/base/check.hpp"
#include "ops/loss/cross_entropy_rows.hpp"
#include "trireme/ops/loss/loss.hpp"

// The operations of ops/loss/loss.hpp for any device: CrossEntropy<D> does the work.
namespace trireme::ops {

// sums[3] are those of cross_entropy_sums.
template <typename D>
struct CrossEntropy {
  template <typename T>
  static void sums(const CrossEntropyRows<T>& rows, Accumulate<T>* exponentials, double* sums);
  template <typename T>
  static void in_place(const CrossEntropyRows<T>& rows, Accumulate<T> scale, T* logits, double* sums);
  template <typename T>
  static void losses(const CrossEntropyRows<T>& rows, const Accumulate<T>* exponentials, Accumulate<T>* losses);
  template <typename T>
  static void backward(const CrossEntropyRows<T>& rows, const Accumulate<T>* exponentials,
                       const CrossEntropyScale<Accumulate<T>>& scale, T* dlogits);
};

template <typename T, typename D>
CrossEntropyRows<T> cross_entropy_rows_of(std::string_view op, const Tensor<T, D>& logits,
                                          const Tensor<std::int32_t, D>& targets,
                                          const CrossEntropyOptions<Accumulate<T>, D>& options) {
  const std::int64_t classes = logits.shape().back();
  require(classes > 0, "{}: logits have shape {}; there must be a class", op, logits.shape());
  require_count(op, "targets", targets, logits.shape().rows());
  require(options.label_smoothing >= 0 && options.label_smoothing <= 1, "{}: label_smoothing is {}, but must lie in [0, 1]", op,
          options.label_smoothing);
  if (options.class_weight.defined()) require_count(op, "class_weight", options.class_weight, classes);
  return {.logits = logits.data(),
          .targets = targets.data(),
          .class_weight = options.class_weight.data(),
          .count = logits.shape().rows(),
          .classes = classes,
          .ignore_index = options.ignore_index,
          .label_smoothing = options.label_smoothing};
}

[[noreturn]] inline void throw_wrong_target(std::int64_t row, std::int32_t target, std::int64_t classes,
                                            std::int32_t ignore_index) {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("cross_entropy: the target of row {} is {}, but must lie in [0, {}) or be {}", row,
                                      target, classes, ignore_index)});
}

template <typename T, typename D>
void cross_entropy_sums(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                        Tensor<Accumulate<T>, D>& exponentials, Tensor<double, D>& sums,
                        const CrossEntropyOptions<Accumulate<T>, D>& options) {
  const auto rows = cross_entropy_rows_of("cross_entropy", logits, targets, options);
  require_count("cross_entropy", "exponentials", exponentials, 2 * rows.count);
  require_count("cross_entropy", "sums", sums, 3);
  CrossEntropy<D>::sums(rows, exponentials.data(), sums.data());
}

template <typename T, typename D>
void cross_entropy_in_place(Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets, Accumulate<T> scale,
                            Tensor<double, D>& sums, const CrossEntropyOptions<Accumulate<T>, D>& options) {
  const auto rows = cross_entropy_rows_of("cross_entropy_in_place", logits, targets, options);
  require_count("cross_entropy_in_place", "sums", sums, 3);
  CrossEntropy<D>::in_place(rows, scale, logits.data(), sums.data());
}

template <typename D>
CrossEntropyResult<> cross_entropy_result(const Tensor<double, D>& sums, const Tensor<std::int32_t, D>& targets,
                                          std::int64_t classes, std::int32_t ignore_index) {
  const Tensor<double, Cpu> here = sums.template to<Cpu>();
  const auto wrong_row = static_cast<std::int64_t>(here.data()[2]);
  if (wrong_row >= 0) {
    const std::int32_t target = targets.reshape({targets.numel()}).narrow(wrong_row, 1).item();
    throw_wrong_target(wrong_row, target, classes, ignore_index);
  }
  return {.sum = here.data()[0], .target_weight = here.data()[1]};
}

template <typename T, typename D>
CrossEntropyResult<D> cross_entropy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                    Tensor<Accumulate<T>, D>& exponentials,
                                    const CrossEntropyOptions<Accumulate<T>, D>& options) {
  Tensor<double, D> sums({3});
  cross_entropy_sums(logits, targets, exponentials, sums, options);
  if constexpr (Tensor<double, D>::on_host) {
    return cross_entropy_result(sums, targets, logits.shape().back(), options.ignore_index);
  } else {
    return {.sum = Scalar<double, D>(sums.narrow(0, 1)), .target_weight = Scalar<double, D>(sums.narrow(1, 1))};
  }
}

template <typename T, typename D>
void cross_entropy_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                            const Tensor<Accumulate<T>, D>& exponentials, const ScalarFor<T, D>& scale, Tensor<T, D>& dlogits,
                            const CrossEntropyOptions<Accumulate<T>, D>& options) {
  constexpr std::string_view op = "cross_entropy_backward";
  const auto rows = cross_entropy_rows_of(op, logits, targets, options);
  require_count(op, "exponentials", exponentials, 2 * rows.count);
  require_shape(op, "dlogits", dlogits, logits.shape());
  CrossEntropy<D>::backward(rows, exponentials.data(), {.of_all = argument_of(scale), .of_rows = nullptr}, dlogits.data());
}

template <typename T, typename D>
void cross_entropy_rows(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                        const Tensor<Accumulate<T>, D>& exponentials, Tensor<Accumulate<T>, D>& losses,
                        const CrossEntropyOptions<Accumulate<T>, D>& options) {
  constexpr std::string_view op = "cross_entropy_rows";
  const auto rows = cross_entropy_rows_of(op, logits, targets, options);
  require_count(op, "exponentials", exponentials, 2 * rows.count);
  require_count(op, "losses", losses, rows.count);
  CrossEntropy<D>::losses(rows, exponentials.data(), losses.data());
}

template <typename T, typename D>
void cross_entropy_rows_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                 const Tensor<Accumulate<T>, D>& exponentials, const Tensor<Accumulate<T>, D>& dlosses,
                                 Tensor<T, D>& dlogits, const CrossEntropyOptions<Accumulate<T>, D>& options) {
  constexpr std::string_view op = "cross_entropy_rows_backward";
  const auto rows = cross_entropy_rows_of(op, logits, targets, options);
  require_count(op, "exponentials", exponentials, 2 * rows.count);
  require_count(op, "dlosses", dlosses, rows.count);
  require_shape(op, "dlogits", dlogits, logits.shape());
  CrossEntropy<D>::backward(rows, exponentials.data(), {.of_all = {}, .of_rows = dlosses.data()}, dlogits.data());
}

}  // namespace trireme::ops
