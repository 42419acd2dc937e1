#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/base/parallel.hpp"
#include "ops/elementwise/elementwise_kernels.hpp"
#include "ops/elementwise/floats.hpp"
#include "ops/loss/vocab_parallel_on.hpp"
#include "ops/reduce/softmax_kernels.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

void require_in_vocabulary(std::string_view op, const std::int32_t* index, std::int64_t count, const VocabRange& held,
                           bool may_ignore) {
  for (std::int64_t place = 0; place < count; ++place) {
    const std::int32_t at = index[place];
    require((at >= 0 && at < held.total) || (may_ignore && at == ignored_target), "{}: index {} is {}, but must lie in [0, {})",
            op, place, at, held.total);
  }
}

// The position of a row or class among the `count` held here; negative if another rank holds it.
std::int64_t place_of(std::int32_t index, const VocabRange& held, std::int64_t count) {
  const std::int64_t place = index - held.first;
  return place >= 0 && place < count ? place : -1;
}

}  // namespace

template <>
template <typename T>
void VocabParallel<Cpu>::embedding(const HeldRows& rows, const T* weight, T* y) {
  require_in_vocabulary("embedding_part", rows.index, rows.places, rows.held, false);
  const std::int64_t width = rows.width;
  parallel_rows(rows.places, width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t place = begin; place < end; ++place) {
      const std::int64_t row = place_of(rows.index[place], rows.held, rows.count);
      T* to = y + place * width;
      row < 0 ? std::fill_n(to, width, T(0)) : std::copy_n(weight + row * width, width, to);
    }
  });
}

template <>
template <typename T>
void VocabParallel<Cpu>::embedding_backward(const HeldRows& rows, const T* dy, T* dweight, bool accumulate) {
  require_in_vocabulary("embedding_part_backward", rows.index, rows.places, rows.held, false);
  const std::int64_t width = rows.width;
  const auto& kernels = elementwise_kernels().of<T>();
  // As in embedding_backward, each thread owns some rows of the table.
  parallel_rows(rows.count, width, [&](std::int64_t begin, std::int64_t end) {
    if (!accumulate) std::fill(dweight + begin * width, dweight + end * width, T(0));
    for (std::int64_t place = 0; place < rows.places; ++place) {
      const std::int64_t row = place_of(rows.index[place], rows.held, rows.count);
      if (row < begin || row >= end) continue;
      T* to = dweight + row * width;
      kernels.add(to, dy + place * width, to, width);
    }
  });
}

template <>
template <typename T>
void VocabParallel<Cpu>::partial_cross_entropy(const HeldClasses<T>& rows, Accumulate<T>* exponentials,
                                               Accumulate<T>* target_logits) {
  using A = Accumulate<T>;
  require_in_vocabulary("partial_cross_entropy", rows.targets, rows.rows, rows.held, true);
  const std::int64_t classes = rows.classes;
  if (classes == 0) {  // more ranks than classes
    std::fill_n(exponentials, rows.rows, -std::numeric_limits<A>::infinity());
    std::fill_n(exponentials + rows.rows, rows.rows, A(0));
    std::fill_n(target_logits, rows.rows, A(0));
    return;
  }
  const auto& kernels = softmax_kernels().of<A>();
  parallel_rows(rows.rows, classes, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> floats(classes);
    for (std::int64_t row = begin; row < end; ++row) {
      const T* x = rows.logits + row * classes;
      keep_exponentials(kernels.exponentials(floats.read(x), classes), exponentials, rows.rows, row);
      const std::int64_t target = place_of(rows.targets[row], rows.held, classes);
      target_logits[row] = target < 0 ? A(0) : A(x[target]);
    }
  });
}

template <>
template <typename A>
CrossEntropyResult<> VocabParallel<Cpu>::join(const CrossEntropyParts<A>& of, A* exponentials) {
  double total = 0;
  double target_weight = 0;
  for (std::int64_t row = 0; row < of.rows; ++row) {
    const auto of_rank = [&](std::int64_t rank) { return exponentials_at(of.parts + 2 * rank * of.rows, of.rows, row); };
    A largest = of_rank(0).largest;
    for (std::int64_t rank = 1; rank < of.ranks; ++rank) largest = std::max(largest, of_rank(rank).largest);
    double sum = 0;
    for (std::int64_t rank = 0; rank < of.ranks; ++rank) {
      const Exponentials<A> part = of_rank(rank);
      sum += static_cast<double>(part.sum) * std::exp(static_cast<double>(part.largest - largest));
    }
    keep_exponentials({largest, static_cast<A>(sum)}, exponentials, of.rows, row);
    if (of.targets[row] == ignored_target) continue;
    total += std::log(sum) - static_cast<double>(of.parts[2 * of.ranks * of.rows + row] - largest);
    target_weight += 1;
  }
  return {.sum = total, .target_weight = target_weight};
}

template <>
template <typename T>
void VocabParallel<Cpu>::partial_cross_entropy_backward(const HeldClasses<T>& rows, const Accumulate<T>* exponentials,
                                                        const ScalarArgument<Accumulate<T>>& scale, T* dlogits) {
  using A = Accumulate<T>;
  require_in_vocabulary("partial_cross_entropy_backward", rows.targets, rows.rows, rows.held, true);
  const std::int64_t classes = rows.classes;
  const auto& kernels = softmax_kernels().of<A>();
  parallel_rows(rows.rows, classes, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> inputs(classes);
    FloatRow<T> outputs(classes);
    for (std::int64_t row = begin; row < end; ++row) {
      T* place = dlogits + row * classes;
      A* gradient = outputs.place(place);
      if (rows.targets[row] == ignored_target) {
        std::fill_n(gradient, classes, A(0));
      } else {
        const auto [largest, sum] = exponentials_at(exponentials, rows.rows, row);
        kernels.softmax(inputs.read(rows.logits + row * classes), largest, scale.get() / sum, gradient, classes);
        const std::int64_t target = place_of(rows.targets[row], rows.held, classes);
        if (target >= 0) gradient[target] -= scale.get();
      }
      outputs.write(place);
    }
  });
}

TRIREME_INSTANTIATE(FLOATS, partial_cross_entropy, Cpu)
TRIREME_INSTANTIATE(FLOATS, partial_cross_entropy_backward, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, embedding_part, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, embedding_part_backward, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, join_cross_entropy, Cpu)

}  // namespace trireme::ops
