#include "trireme/autograd/tensor_parallel.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "autograd/shapes.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/full.hpp"
#include "trireme/ops/loss/vocab_parallel.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/reduce/reduce.hpp"

namespace trireme {
namespace {

// Rows that the axis can share out: equal parts whose bounds are those of the collectives, multiples of 16 elements.
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

// All rows of what each rank has a part of.
template <typename T, typename D>
Tensor<T, D> gathered(const Tensor<T, D>& own, const Collectives& axis, std::string_view name) {
  const std::int64_t rows = own.shape().rows() * axis.size();
  const std::int64_t width = own.shape().back();
  require_shared_rows(rows, width, axis);
  Tensor<T, D> all({rows, width});
  device::copy_bytes(D{}, own_rows(all, axis).data(), D{}, own.data(), own.span().size_bytes());
  axis.all_gather(all.span(), name).wait_on_stream();
  return all;
}

// Parts of a sum on their way to the rows' owners, or to all ranks.
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

 private:
  Tensor<T, D> sum_;
  const Collectives& axis_;
  bool sequence_parallel_;
  Pending pending_;
};

}  // namespace

template <typename T, typename D>
Variable<T, D> column_parallel_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                      const Variable<Accumulate<T>, D>& bias, const Collectives& axis, bool sequence_parallel) {
  require_operands("column_parallel_linear", x, weight, optional(bias));
  using A = Accumulate<T>;
  require_product("column_parallel_linear", x.shape(), weight.shape());
  const auto all_rows = [&axis, sequence_parallel](const Tensor<T, D>& own) {
    return sequence_parallel ? gathered(own, axis, "input of a column-parallel layer") : own;
  };
  const Tensor<T, D> input = all_rows(x.value());
  Tensor<T, D> y(with_last_dim(input.shape(), weight.shape()[0]));
  ops::linear(input, weight.value(), bias.value(), y);
  return record_split(
      "column_parallel_linear", std::move(y), {x.slot()}, {weight.slot(), bias.slot()},
      [weight = weight.value(), gradient = x.gradient(), &axis, sequence_parallel](const Tensor<T, D>& dy) {
        std::shared_ptr<Summation<T, D>> sum;
        if (gradient.needed()) {
          Tensor<T, D> dx(with_last_dim(dy.shape(), weight.shape()[1]));
          ops::matmul(dy, weight, dx);
          sum = std::make_shared<Summation<T, D>>(std::move(dx), axis, sequence_parallel,
                                                  "input gradient of a column-parallel layer");
        }
        return [sum, &gradient] {
          if (sum) gradient.give(sum->wait());
        };
      },
      [x = x.value(), dweight = weight.gradient(), dbias = bias.gradient(), all_rows](const Tensor<T, D>& dy) {
        if (dweight.needed()) {
          const Tensor<T, D> again = all_rows(x);
          dweight.contribute([&](Tensor<A, D>& dw, bool accumulate) {
            ops::matmul(dy, again, dw, {.transpose_a = true, .accumulate = accumulate});
          });
        }
        dbias.contribute([&](Tensor<A, D>& db, bool accumulate) { ops::sum_rows(dy, db, accumulate); });
      });
}

template <typename T, typename D>
Variable<T, D> row_parallel_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                   const Variable<Accumulate<T>, D>& bias, const Collectives& axis, bool sequence_parallel) {
  require_operands("row_parallel_linear", x, weight, optional(bias));
  using A = Accumulate<T>;
  require_product("row_parallel_linear", x.shape(), weight.shape());
  Tensor<T, D> part(with_last_dim(x.shape(), weight.shape()[0]));
  ops::linear(x.value(), weight.value(), axis.rank() == 0 ? bias.value() : Tensor<A, D>(), part);
  Tensor<T, D> y = Summation<T, D>(std::move(part), axis, sequence_parallel, "output of a row-parallel layer").wait();
  // All rows of the gradient, gathered for the input's gradient, read once more for that of the weight.
  const auto all = std::make_shared<Tensor<T, D>>();
  return record_split(
      "row_parallel_linear", std::move(y), {x.slot()}, {weight.slot(), bias.slot()},
      [weight = weight.value(), gradient = x.gradient(), all, &axis, sequence_parallel](const Tensor<T, D>& own) {
        *all = sequence_parallel ? gathered(own, axis, "output gradient of a row-parallel layer") : own;
        return [dy = *all, &weight, &gradient] {
          gradient.contribute(
              [&](Tensor<T, D>& dx, bool accumulate) { ops::matmul(dy, weight, dx, {.accumulate = accumulate}); });
        };
      },
      [x = x.value(), dweight = weight.gradient(), dbias = bias.gradient(), all](const Tensor<T, D>&) {
        const Tensor<T, D> dy = std::exchange(*all, {});
        dweight.contribute([&](Tensor<A, D>& dw, bool accumulate) {
          ops::matmul(dy, x, dw, {.transpose_a = true, .accumulate = accumulate});
        });
        dbias.contribute([&](Tensor<A, D>& db, bool accumulate) { ops::sum_rows(dy, db, accumulate); });
      });
}

template <typename T, typename D>
Variable<T, D> vocab_parallel_embedding(const Tensor<std::int32_t, D>& index, const Variable<T, D>& weight,
                                        std::int64_t first_row, std::int64_t table_rows, const Collectives& axis,
                                        bool sequence_parallel) {
  require_operands("vocab_parallel_embedding", index, weight);
  const ops::VocabRange rows{.first = first_row, .total = table_rows};
  Tensor<T, D> part(with_one_more_dim(index.shape(), weight.shape().back()));
  ops::embedding_part(index, weight.value(), rows, part);
  Tensor<T, D> y = Summation<T, D>(std::move(part), axis, sequence_parallel, "vocabulary-parallel embedding").wait();
  return record("vocab_parallel_embedding", std::move(y), {weight.slot()},
                [index, rows, dweight = weight.gradient(), &axis, sequence_parallel](const Tensor<T, D>& own) {
                  const Tensor<T, D> dy =
                      sequence_parallel ? gathered(own, axis, "gradient of a vocabulary-parallel embedding") : own;
                  dweight.contribute([&](Tensor<T, D>& dw, bool accumulate) {
                    ops::embedding_part_backward(index, dy, rows, dw, accumulate);
                  });
                });
}

template <typename T, typename D>
Loss<Accumulate<T>, D> vocab_parallel_cross_entropy(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                                    std::int64_t first_class, std::int64_t classes, const Collectives& axis) {
  require_operands("vocab_parallel_cross_entropy", logits, targets);
  using A = Accumulate<T>;
  const ops::VocabRange held{.first = first_class, .total = classes};
  const std::int64_t rows = targets.numel();
  // Each rank's log-sum-exps and, in the last row, the logits of the targets: one sum tells all of them to all.
  Tensor<A, D> parts = Tensor<A, D>::full({axis.size() + 1, rows}, A(0));
  Tensor<A, D> own = parts.narrow(axis.rank(), 1).reshape({rows});
  Tensor<A, D> of_targets = parts.narrow(axis.size(), 1).reshape({rows});
  ops::partial_cross_entropy(logits.value(), targets, held, own, of_targets);
  axis.all_reduce(parts.span(), ReduceOp::sum, "vocabulary-parallel cross-entropy").wait_on_stream();
  Tensor<A, D> log_sum_exp({rows});
  const ops::CrossEntropyResult<D> result = ops::join_cross_entropy(parts, targets, log_sum_exp);
  Variable<A, D> sum =
      record("vocab_parallel_cross_entropy", ops::full<A>({}, result.sum), {logits.slot()},
             [value = logits.value(), dlogits = logits.gradient(), targets, held, log_sum_exp](const Tensor<A, D>& dy) {
               // As in cross_entropy the gradient takes the place of the logits.
               Tensor<T, D> gradient = value.shares_storage() ? Tensor<T, D>(value.shape()) : value;
               ops::partial_cross_entropy_backward(value, targets, held, log_sum_exp, Scalar<A, D>(dy), gradient);
               dlogits.give(std::move(gradient));
             });
  return {.sum = std::move(sum), .kept = result.kept, .count = rows};
}

template <typename T, typename D>
Variable<T, D> sum_gradient(const Variable<T, D>& x, const Collectives& axis) {
  require_operands("sum_gradient", x);
  return record("sum_gradient", x.value(), {x.slot()}, [dx = x.gradient(), &axis](Tensor<T, D> dy) {
    if (dy.shares_storage()) dy = dy.clone();
    axis.all_reduce(dy.span(), ReduceOp::sum, "gradient of a parameter that all ranks use").wait_on_stream();
    dx.give(std::move(dy));
  });
}

template <typename T, typename D>
Variable<T, D> gather_rows(const Variable<T, D>& x, const Collectives& axis) {
  require_operands("gather_rows", x);
  return record("gather_rows", gathered(x.value(), axis, "rows"), {x.slot()},
                [dx = x.gradient(), shape = x.shape(), &axis](const Tensor<T, D>& dy) {
                  dx.give(own_rows(dy, axis).clone().reshape(shape));
                });
}

#define TRIREME_INSTANTIATE(T, A)                                                                                            \
  template Variable<T, TRIREME_DEVICE> column_parallel_linear(const Variable<T, TRIREME_DEVICE>&,                            \
                                                              const Variable<T, TRIREME_DEVICE, A>&,                         \
                                                              const Variable<A, TRIREME_DEVICE>&, const Collectives&, bool); \
  template Variable<T, TRIREME_DEVICE> row_parallel_linear(const Variable<T, TRIREME_DEVICE>&,                               \
                                                           const Variable<T, TRIREME_DEVICE, A>&,                            \
                                                           const Variable<A, TRIREME_DEVICE>&, const Collectives&, bool);    \
  template Loss<A, TRIREME_DEVICE> vocab_parallel_cross_entropy(const Variable<T, TRIREME_DEVICE>&,                          \
                                                                const Tensor<std::int32_t, TRIREME_DEVICE>&, std::int64_t,   \
                                                                std::int64_t, const Collectives&);                           \
  template Variable<T, TRIREME_DEVICE> gather_rows(const Variable<T, TRIREME_DEVICE>&, const Collectives&)
TRIREME_INSTANTIATE(float, float);
TRIREME_INSTANTIATE(double, double);
TRIREME_INSTANTIATE(bfloat16, float);
TRIREME_INSTANTIATE(float16, float);
#undef TRIREME_INSTANTIATE

#define TRIREME_INSTANTIATE(T)                                                                                    \
  template Variable<T, TRIREME_DEVICE> vocab_parallel_embedding(const Tensor<std::int32_t, TRIREME_DEVICE>&,      \
                                                                const Variable<T, TRIREME_DEVICE>&, std::int64_t, \
                                                                std::int64_t, const Collectives&, bool);          \
  template Variable<T, TRIREME_DEVICE> sum_gradient(const Variable<T, TRIREME_DEVICE>&, const Collectives&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
