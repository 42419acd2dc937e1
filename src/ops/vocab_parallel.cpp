#include "trireme/ops/vocab_parallel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "ops/kernels/elementwise.hpp"
#include "ops/kernels/softmax.hpp"
#include "ops/parallel.hpp"

namespace trireme::ops {
namespace {

void require_in_vocabulary(std::string_view op, const Tensor<std::int32_t, Cpu>& index, const VocabRange& held,
                           bool may_ignore) {
  for (std::int64_t place = 0; place < index.numel(); ++place) {
    const std::int32_t at = index.data()[place];
    require((at >= 0 && at < held.total) || (may_ignore && at == ignored_target), "{}: index {} is {}, but must lie in [0, {})",
            op, place, at, held.total);
  }
}

// Where the index lies among `count` things held here; below 0: elsewhere.
std::int64_t place_of(std::int32_t index, const VocabRange& held, std::int64_t count) {
  const std::int64_t place = index - held.first;
  return place >= 0 && place < count ? place : -1;
}

template <typename T>
void require_rows(std::string_view op, const Tensor<std::int32_t, Cpu>& index, const VocabRange& held,
                  const Tensor<T, Cpu>& weight, const Tensor<T, Cpu>& rows) {
  require(weight.shape().size() == 2 && held.first >= 0 && held.first + weight.dim(0) <= held.total,
          "{}: a weight of shape {} from row {} on does not lie in a table of {} rows", op, weight.shape(), held.first,
          held.total);
  require_count(op, "rows", rows.shape(), index.numel() * weight.dim(1));
  require_in_vocabulary(op, index, held, false);
}

template <typename T>
void require_classes(std::string_view op, const Tensor<T, Cpu>& logits, const Tensor<std::int32_t, Cpu>& targets,
                     const VocabRange& held) {
  require(logits.shape().size() > 0 && held.first >= 0 && held.first + logits.shape().back() <= held.total,
          "{}: logits of shape {} from class {} on do not lie in {} classes", op, logits.shape(), held.first, held.total);
  require_count(op, "targets", targets.shape(), logits.shape().back() == 0 ? targets.numel() : logits.shape().rows());
  require_in_vocabulary(op, targets, held, true);
}

}  // namespace

template <typename T, typename D>
void embedding_part(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight, const VocabRange& held, Tensor<T, D>& y) {
  require_rows("embedding_part", index, held, weight, y);
  const std::int64_t width = weight.dim(1);
  parallel_rows(index.numel(), width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t place = begin; place < end; ++place) {
      const std::int64_t row = place_of(index.data()[place], held, weight.dim(0));
      T* to = y.data() + place * width;
      row < 0 ? std::fill_n(to, width, T(0)) : std::copy_n(weight.data() + row * width, width, to);
    }
  });
}

template <typename T, typename D>
void embedding_part_backward(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& dy, const VocabRange& held,
                             Tensor<T, D>& dweight, bool accumulate) {
  require_rows("embedding_part_backward", index, held, dweight, dy);
  const std::int64_t width = dweight.dim(1);
  const auto& kernels = elementwise_kernels().of<T>();
  // As in embedding_backward each thread owns rows of the table.
  parallel_rows(dweight.dim(0), width, [&](std::int64_t begin, std::int64_t end) {
    if (!accumulate) std::fill(dweight.data() + begin * width, dweight.data() + end * width, T(0));
    for (std::int64_t place = 0; place < index.numel(); ++place) {
      const std::int64_t row = place_of(index.data()[place], held, dweight.dim(0));
      if (row < begin || row >= end) continue;
      T* to = dweight.data() + row * width;
      kernels.add(to, dy.data() + place * width, to, width);
    }
  });
}

template <typename T, typename D>
void partial_cross_entropy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets, const VocabRange& held,
                           Tensor<Accumulate<T>, D>& log_sum_exp, Tensor<Accumulate<T>, D>& target_logits) {
  constexpr std::string_view op = "partial_cross_entropy";
  using A = Accumulate<T>;
  require_classes(op, logits, targets, held);
  require_count(op, "log_sum_exp", log_sum_exp.shape(), targets.numel());
  require_count(op, "target_logits", target_logits.shape(), targets.numel());
  const std::int64_t classes = logits.shape().back();
  if (classes == 0) {  // more ranks than classes
    std::fill_n(log_sum_exp.data(), log_sum_exp.numel(), -std::numeric_limits<A>::infinity());
    std::fill_n(target_logits.data(), target_logits.numel(), A(0));
    return;
  }
  const auto& kernels = softmax_kernels().of<A>();
  parallel_rows(targets.numel(), classes, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> floats(classes);
    for (std::int64_t row = begin; row < end; ++row) {
      const T* x = logits.data() + row * classes;
      log_sum_exp.data()[row] = kernels.log_sum_exp(floats.read(x), classes);
      const std::int64_t target = place_of(targets.data()[row], held, classes);
      target_logits.data()[row] = target < 0 ? A(0) : A(x[target]);
    }
  });
}

template <typename A, typename D>
CrossEntropyResult join_cross_entropy(const Tensor<A, D>& parts, const Tensor<std::int32_t, D>& targets,
                                      Tensor<A, D>& log_sum_exp) {
  const std::int64_t ranks = parts.dim(0) - 1;
  const std::int64_t rows = targets.numel();
  require_count("join_cross_entropy", "parts", parts.shape(), (ranks + 1) * rows);
  require_count("join_cross_entropy", "log_sum_exp", log_sum_exp.shape(), rows);
  CrossEntropyResult result;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto of_rank = [&](std::int64_t rank) { return static_cast<double>(parts.data()[rank * rows + row]); };
    double largest = of_rank(0);
    for (std::int64_t rank = 1; rank < ranks; ++rank) largest = std::max(largest, of_rank(rank));
    double sum = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) sum += std::exp(of_rank(rank) - largest);
    const double joined = largest + std::log(sum);
    log_sum_exp.data()[row] = static_cast<A>(joined);
    if (targets.data()[row] == ignored_target) continue;
    result.sum += joined - of_rank(ranks);
    result.kept += 1;
  }
  return result;
}

template <typename T, typename D>
void partial_cross_entropy_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets, const VocabRange& held,
                                    const Tensor<Accumulate<T>, D>& log_sum_exp, Accumulate<T> scale, Tensor<T, D>& dlogits) {
  constexpr std::string_view op = "partial_cross_entropy_backward";
  using A = Accumulate<T>;
  require_classes(op, logits, targets, held);
  require_count(op, "log_sum_exp", log_sum_exp.shape(), targets.numel());
  require_shape(op, "dlogits", dlogits.shape(), logits.shape());
  const std::int64_t classes = logits.shape().back();
  const auto& kernels = softmax_kernels().of<A>();
  parallel_rows(targets.numel(), classes, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> inputs(classes);
    FloatRow<T> outputs(classes);
    for (std::int64_t row = begin; row < end; ++row) {
      T* place = dlogits.data() + row * classes;
      A* gradient = outputs.place(place);
      if (targets.data()[row] == ignored_target) {
        std::fill_n(gradient, classes, A(0));
      } else {
        kernels.softmax(inputs.read(logits.data() + row * classes), log_sum_exp.data()[row], scale, gradient, classes);
        const std::int64_t target = place_of(targets.data()[row], held, classes);
        if (target >= 0) gradient[target] -= scale;
      }
      outputs.write(place);
    }
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                             \
  template void partial_cross_entropy(const Tensor<T, Cpu>&, const Tensor<std::int32_t, Cpu>&, const VocabRange&,          \
                                      Tensor<Accumulate<T>, Cpu>&, Tensor<Accumulate<T>, Cpu>&);                           \
  template void partial_cross_entropy_backward(const Tensor<T, Cpu>&, const Tensor<std::int32_t, Cpu>&, const VocabRange&, \
                                               const Tensor<Accumulate<T>, Cpu>&, Accumulate<T>, Tensor<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

#define TRIREME_INSTANTIATE(T)                                                                                               \
  template void embedding_part(const Tensor<std::int32_t, Cpu>&, const Tensor<T, Cpu>&, const VocabRange&, Tensor<T, Cpu>&); \
  template void embedding_part_backward(const Tensor<std::int32_t, Cpu>&, const Tensor<T, Cpu>&, const VocabRange&,          \
                                        Tensor<T, Cpu>&, bool);                                                              \
  template CrossEntropyResult join_cross_entropy(const Tensor<T, Cpu>&, const Tensor<std::int32_t, Cpu>&, Tensor<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
