#include "trireme/autograd/tensor_parallel/operations.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "autograd/operations/linear_use.hpp"
#include "autograd/operations/shapes.hpp"
#include "precision/instantiate.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/array/fill.hpp"
#include "trireme/ops/elementwise/full.hpp"
#include "trireme/ops/loss/vocab_parallel.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/reduce/reduce.hpp"

namespace trireme {
namespace {

// Requires rows that the axis can divide into equal parts of a multiple of 16 elements, as the collectives do.
void require_shared_rows(std::int64_t rows, std::int64_t width, const Collectives& axis) {
  require(divides_rows(rows, width, axis),
          "sequence parallelism of {} ranks can't share out {} rows of {} elements: every rank needs equally many rows, of a "
          "multiple of 16 elements together",
          axis.size(), rows, width);
}

template <typename T, typename D>
Tensor<T, D> own_rows(const Tensor<T, D>& all, const Collectives& axis) {
  const std::int64_t rows = all.shape().rows();
  const Range own = even_part(rows, axis);
  return all.reshape({rows, all.shape().back()}).narrow(own.begin, own.count());
}

Shape all_rows_of(const Shape& own, const Collectives& axis) {
  const Shape all{own.rows() * axis.size(), own.back()};
  require_shared_rows(all[0], all[1], axis);
  return all;
}

// Gathers all rows from the ranks' own rows.
template <typename T, typename D>
void gather(const Tensor<T, D>& own, const Collectives& axis, std::string_view name, Tensor<T, D>& all) {
  device::copy_bytes(D{}, own_rows(all, axis).data(), D{}, own.data(), own.span().size_bytes());
  axis.all_gather(all.span(), name).wait_on_stream();
}
template <typename T, typename D>
Tensor<T, D> gathered(const Tensor<T, D>& own, const Collectives& axis, std::string_view name) {
  Tensor<T, D> all(all_rows_of(own.shape(), axis));
  gather(own, axis, name, all);
  return all;
}

// The shape of a sum over the ranks: in a sequence-parallel model this rank's rows of it.
Shape summed_shape(const Shape& all, const Collectives& axis, bool sequence_parallel) {
  if (!sequence_parallel) return all;
  require_shared_rows(all.rows(), all.back(), axis);
  return {all.rows() / axis.size(), all.back()};
}

// A running reduce-scatter of a sum to the owners of its rows, or all-reduce to all ranks.
template <typename T, typename D>
class Summation {
 public:
  Summation(Tensor<T, D> part, const Collectives& axis, bool sequence_parallel, std::string_view name)
      : sum_(std::move(part)), axis_(axis), sequence_parallel_(sequence_parallel) {
    if (sequence_parallel) require_shared_rows(sum_.shape().rows(), sum_.shape().back(), axis);
    pending_ = sequence_parallel ? axis.reduce_scatter(sum_.span(), ReduceOp::sum, name)
                                 : axis.all_reduce(sum_.span(), ReduceOp::sum, name);
  }
  Tensor<T, D> wait() {  // own rows
    pending_.wait_on_stream();
    return sequence_parallel_ ? own_rows(sum_, axis_).clone() : sum_;
  }
  void wait_for(Tensor<T, D>& y) {  // the same, into y, which may be the part itself
    pending_.wait_on_stream();
    if (sequence_parallel_) {
      device::copy_bytes(D{}, y.data(), D{}, own_rows(sum_, axis_).data(), y.span().size_bytes());
    }
  }

 private:
  Tensor<T, D> sum_;
  const Collectives& axis_;
  bool sequence_parallel_;
  Pending pending_;
};

void contribute_to_weight(const auto& dy, const auto& x, const auto& dweight) {
  dweight.contribute(
      [&](auto& out, bool accumulate) { ops::matmul(dy, x, out, {.transpose_a = true, .accumulate = accumulate}); });
}
void contribute_to_bias(const auto& dy, const auto& dbias) {
  dbias.contribute([&](auto& out, bool accumulate) { ops::sum_rows(dy, out, accumulate); });
}

struct ColumnParallelLinear {
  static constexpr std::string_view name = "column_parallel_linear";
  static constexpr bool repeatable = false;
  const Collectives& axis;
  bool sequence_parallel;

  void forward(const auto& x, const auto& weight, const auto& bias, auto& y) const {
    ops::linear(all_rows(x), weight, bias, y, linear_use());
  }
  template <typename T, typename D>
  auto input_gradients(const Tensor<T, D>& dy, const Tensor<T, D>&, const Tensor<T, D>& weight, const Gradient<T, D>& dx,
                       const auto&...) const {
    std::shared_ptr<Summation<T, D>> sum;
    if (dx.needed()) {
      Tensor<T, D> part(with_last_dim(dy.shape(), weight.shape()[1]));
      ops::matmul(dy, weight, part);
      sum = std::make_shared<Summation<T, D>>(std::move(part), axis, sequence_parallel,
                                              "input gradient of a column-parallel layer");
    }
    return [sum, &dx] {
      if (sum) dx.give(sum->wait());
    };
  }
  template <typename T, typename D>
  void weight_gradients(const Tensor<T, D>& dy, const Tensor<T, D>& x, const Tensor<T, D>&, const Gradient<T, D>&,
                        const auto& dweight, const auto& dbias) const {
    if (dweight.needed()) contribute_to_weight(dy, all_rows(x), dweight);
    contribute_to_bias(dy, dbias);
  }

 private:
  template <typename T, typename D>
  Tensor<T, D> all_rows(const Tensor<T, D>& own) const {
    return sequence_parallel ? gathered(own, axis, "input of a column-parallel layer") : own;
  }
};

template <typename T, typename D>
struct RowParallelLinear {
  using A = Accumulate<T>;
  static constexpr std::string_view name = "row_parallel_linear";
  static constexpr bool repeatable = false;
  const Collectives& axis;
  bool sequence_parallel;
  // All rows of the output's gradient, gathered for the input's gradient and used again for the weight's.
  Tensor<T, D> all = {};

  void forward(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<A, D>& bias, Tensor<T, D>& y) const {
    Tensor<T, D> part = sequence_parallel ? Tensor<T, D>(with_last_dim(x.shape(), weight.shape()[0])) : y;
    ops::linear(x, weight, axis.rank() == 0 ? bias : Tensor<A, D>(), part, linear_use());
    Summation<T, D>(std::move(part), axis, sequence_parallel, "output of a row-parallel layer").wait_for(y);
  }
  auto input_gradients(const Tensor<T, D>& own, const Tensor<T, D>&, const Tensor<T, D>& weight, const Gradient<T, D>& dx,
                       const auto&...) {
    all = sequence_parallel ? gathered(own, axis, "output gradient of a row-parallel layer") : own;
    return [dy = all, &weight, &dx] {
      dx.contribute([&](Tensor<T, D>& out, bool accumulate) { ops::matmul(dy, weight, out, {.accumulate = accumulate}); });
    };
  }
  void weight_gradients(const Tensor<T, D>&, const Tensor<T, D>& x, const Tensor<T, D>&, const Gradient<T, D>&,
                        const Gradient<A, D>& dweight, const Gradient<A, D>& dbias) {
    const Tensor<T, D> dy = std::exchange(all, {});
    contribute_to_weight(dy, x, dweight);
    contribute_to_bias(dy, dbias);
  }
};

struct VocabParallelEmbedding {
  static constexpr std::string_view name = "vocab_parallel_embedding";
  static constexpr bool repeatable = false;
  ops::VocabRange rows;
  const Collectives& axis;
  bool sequence_parallel;

  template <typename T, typename D>
  void forward(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight, Tensor<T, D>& y) const {
    Tensor<T, D> part = sequence_parallel ? Tensor<T, D>(with_one_more_dim(index.shape(), weight.shape().back())) : y;
    ops::embedding_part(index, weight, rows, part);
    Summation<T, D>(std::move(part), axis, sequence_parallel, "vocabulary-parallel embedding").wait_for(y);
  }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& own, const Tensor<std::int32_t, D>& index, const Gradient<T, D>& dweight) const {
    const Tensor<T, D> dy = sequence_parallel ? gathered(own, axis, "gradient of a vocabulary-parallel embedding") : own;
    dweight.contribute(
        [&](Tensor<T, D>& out, bool accumulate) { ops::embedding_part_backward(index, dy, rows, out, accumulate); });
  }
};

struct VocabParallelCrossEntropy {
  static constexpr std::string_view name = "vocab_parallel_cross_entropy";
  static constexpr bool repeatable = false;
  ops::VocabRange held;
  const Collectives& axis;

  template <typename T, typename D, typename A = Accumulate<T>>
  void forward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets, Scalar<double, D>& target_weight,
               Tensor<A, D>& sum, Tensor<A, D>& exponentials) const {
    const std::int64_t rows = targets.numel();
    // Each rank's exponentials and, in the last row, the logits of the targets: one all-reduce gives all of them to all ranks.
    Tensor<A, D> parts = Tensor<A, D>::full({2 * axis.size() + 1, rows}, A(0));
    Tensor<A, D> own = parts.narrow(2 * axis.rank(), 2);
    Tensor<A, D> of_targets = parts.narrow(2 * axis.size(), 1).reshape({rows});
    ops::partial_cross_entropy(logits, targets, held, own, of_targets);
    axis.all_reduce(parts.span(), ReduceOp::sum, "vocabulary-parallel cross-entropy").wait_on_stream();
    const ops::CrossEntropyResult<D> result = ops::join_cross_entropy(parts, targets, exponentials);
    sum = ops::full<A>({}, result.sum);
    target_weight = result.target_weight;
  }
  template <typename T, typename D, typename A = Accumulate<T>>
  void backward(const Tensor<A, D>& dsum, const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                const Tensor<A, D>& exponentials, const Gradient<T, D>& dlogits) const {
    // As in cross_entropy, the gradient overwrites the logits.
    Tensor<T, D> gradient = logits.shares_storage() ? Tensor<T, D>(logits.shape()) : logits;
    ops::partial_cross_entropy_backward(logits, targets, held, exponentials, Scalar<A, D>(dsum), gradient);
    dlogits.give(std::move(gradient));
  }
};

struct SumGradient {
  static constexpr std::string_view name = "sum_gradient";
  const Collectives& axis;

  void forward(const auto&, auto&) const {}
  void backward(auto& dy, const auto& dx) const {
    if (dy.shares_storage()) dy = dy.clone();
    axis.all_reduce(dy.span(), ReduceOp::sum, "gradient of a parameter that all ranks use").wait_on_stream();
    dx.give(std::move(dy));
  }
};

struct SumParts {
  static constexpr std::string_view name = "sum_parts";
  static constexpr bool repeatable = false;
  Shape shape;  // of the parts
  const Collectives& axis;
  bool sequence_parallel;

  template <typename T, typename D>
  void forward(const Tensor<T, D>& x, Tensor<T, D>& y) const {
    Tensor<T, D> part = sequence_parallel ? Tensor<T, D>(x.shape()) : y;
    ops::copy_elements(x, part);
    Summation<T, D>(std::move(part), axis, sequence_parallel, "parts of a sum").wait_for(y);
  }
  void backward(const auto& own, const auto& dx) const {
    dx.give((sequence_parallel ? gathered(own, axis, "gradient of parts of a sum") : own).reshape(shape));
  }
};

struct GatherRows {
  static constexpr std::string_view name = "gather_rows";
  static constexpr bool repeatable = false;
  Shape shape;  // of the own rows
  const Collectives& axis;

  void forward(const auto& x, auto& y) const { gather(x, axis, "rows", y); }
  void backward(const auto& dy, const auto& dx) const { dx.give(own_rows(dy, axis).clone().reshape(shape)); }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> column_parallel_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                      const Variable<Accumulate<T>, D>& bias, const Collectives& axis, bool sequence_parallel) {
  const auto result = [&] {
    require_product("column_parallel_linear", x.shape(), weight.shape());
    const Shape rows = sequence_parallel ? all_rows_of(x.shape(), axis) : x.shape();
    return Result<T, D>{with_last_dim(rows, weight.shape()[0])};
  };
  return record(ColumnParallelLinear{axis, sequence_parallel}, result, kept(x), kept(trireme::weight(weight)),
                trireme::weight(optional(bias)));
}

template <typename T, typename D>
Variable<T, D> row_parallel_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                   const Variable<Accumulate<T>, D>& bias, const Collectives& axis, bool sequence_parallel) {
  const auto result = [&] {
    require_product("row_parallel_linear", x.shape(), weight.shape());
    return Result<T, D>{summed_shape(with_last_dim(x.shape(), weight.shape()[0]), axis, sequence_parallel)};
  };
  return record(RowParallelLinear<T, D>{axis, sequence_parallel}, result, kept(x), kept(trireme::weight(weight)),
                trireme::weight(optional(bias)));
}

template <typename T, typename D>
Variable<T, D> vocab_parallel_embedding(const Tensor<std::int32_t, D>& index, const Variable<T, D>& weight,
                                        std::int64_t first_row, std::int64_t table_rows, const Collectives& axis,
                                        bool sequence_parallel) {
  const auto result = [&] {
    return Result<T, D>{summed_shape(with_one_more_dim(index.shape(), weight.shape().back()), axis, sequence_parallel)};
  };
  return record(VocabParallelEmbedding{{.first = first_row, .total = table_rows}, axis, sequence_parallel}, result, kept(index),
                weight);
}

template <typename T, typename D>
Loss<Accumulate<T>, D> vocab_parallel_cross_entropy(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                                    std::int64_t first_class, std::int64_t classes, const Collectives& axis) {
  using A = Accumulate<T>;
  Loss<A, D> loss{.sum = {}, .nominal_targets = targets.numel()};
  loss.sum = record(VocabParallelCrossEntropy{{.first = first_class, .total = classes}, axis},
                    std::tuple(Result<A, D>{}, internal(Result<A, D>{{2, targets.numel()}})), kept(logits), kept(targets),
                    written(loss.target_weight));
  return loss;
}

template <typename T, typename D>
Variable<T, D> sum_gradient(const Variable<T, D>& x, const Collectives& axis) {
  return record(SumGradient{axis}, Result<T, D>{.existing = x.value()}, x);
}

template <typename T, typename D>
Variable<T, D> sum_parts(const Variable<T, D>& x, const Collectives& axis, bool sequence_parallel) {
  const auto result = [&] { return Result<T, D>{summed_shape(x.shape(), axis, sequence_parallel)}; };
  return record(SumParts{x.shape(), axis, sequence_parallel}, result, x);
}

template <typename T, typename D>
Variable<T, D> gather_rows(const Variable<T, D>& x, const Collectives& axis) {
  return record(
      GatherRows{x.shape(), axis}, [&] { return Result<T, D>{all_rows_of(x.shape(), axis)}; }, x);
}

TRIREME_INSTANTIATE(FLOATS, column_parallel_linear, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, row_parallel_linear, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, vocab_parallel_cross_entropy, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, sum_parts, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, sum_gradient, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, gather_rows, TRIREME_DEVICE)

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, vocab_parallel_embedding, TRIREME_DEVICE)

}  // namespace trireme
