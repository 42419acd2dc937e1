#include <limits>
#include <numeric>

#include "ops/base/parallel.hpp"
#include "ops/elementwise/floats.hpp"
#include "ops/loss/loss_on.hpp"
#include "ops/reduce/softmax_kernels.hpp"
#include "precision/instantiate.hpp"
#include "trireme/math/exponential.hpp"

namespace trireme::ops {
namespace {

// The loss and gradient of one row, with the options.
template <typename T>
class Rows {
 public:
  using A = Accumulate<T>;

  explicit Rows(const CrossEntropyRows<T>& of) : of_(of), smooth_(of.label_smoothing / static_cast<double>(of.classes)) {
    const A* weights = of.class_weight;
    smooth_mass_ = smooth_ * (weighted() ? std::accumulate(weights, weights + classes(), 0.0) : static_cast<double>(classes()));
  }

  std::int64_t count() const { return of_.count; }
  std::int64_t classes() const { return of_.classes; }
  const T* logits(std::int64_t row) const { return of_.logits + row * classes(); }
  bool ignored(std::int64_t row) const { return of_.targets[row] == of_.ignore_index; }
  double weight(std::int64_t row) const { return weighted() ? static_cast<double>(of_.class_weight[of_.targets[row]]) : 1.0; }

  // The first row whose target is neither a class nor ignored, or -1.
  std::int64_t wrong_row() const {
    for (std::int64_t row = 0; row < count(); ++row) {
      if (!ignored(row) && (of_.targets[row] < 0 || of_.targets[row] >= classes())) return row;
    }
    return -1;
  }

  // The sums that the loss of a row needs, apart from its target. They are exact for logits of any size.
  struct Sums {
    Exponentials<A> exponentials = {};
    double of_classes = 0;  // with label smoothing: the sum of (x - largest) * class weight
  };
  Sums sums(const A* x) const {
    const auto& kernels = softmax_kernels().of<A>();
    Sums result;
    result.exponentials = smooth_ == 0 ? kernels.exponentials(x, classes())
                                       : kernels.exponentials_and_sum(x, of_.class_weight, classes(), result.of_classes);
    return result;
  }
  Sums sums(const A* x, const Exponentials<A>& exponentials) const {
    const auto of_classes = [&] {
      return softmax_kernels().of<A>().weighted_sum(x, exponentials.largest, of_.class_weight, classes());
    };
    return {.exponentials = exponentials, .of_classes = smooth_ == 0 ? 0 : of_classes()};
  }

  double loss(std::int64_t row, const Sums& sums, const A* x) const {
    if (ignored(row)) return 0;
    const auto log_sum = static_cast<double>(math::log(sums.exponentials.sum));
    const auto below = static_cast<double>(x[of_.targets[row]] - sums.exponentials.largest);
    const double of_target = (1 - of_.label_smoothing) * weight(row) * (log_sum - below);
    return smooth_ == 0 ? of_target : of_target + smooth_mass_ * log_sum - smooth_ * sums.of_classes;
  }

  void gradient(std::int64_t row, const Exponentials<A>& exponentials, A scale, T* place, FloatRow<T>& inputs,
                FloatRow<T>& outputs) const {
    A* gradient = outputs.place(place);
    if (ignored(row)) {
      std::fill_n(gradient, classes(), A(0));
    } else {
      fill_gradient(row, exponentials, scale, inputs.read(logits(row)), gradient);
    }
    outputs.write(place);
  }

 private:
  void fill_gradient(std::int64_t row, const Exponentials<A>& exponentials, A scale, const A* x, A* gradient) const {
    const double of_target = (1 - of_.label_smoothing) * weight(row);
    const A of_all = scale * static_cast<A>(of_target + smooth_mass_) / exponentials.sum;
    const A largest = exponentials.largest;
    const auto& kernels = softmax_kernels().of<A>();
    if (smooth_ == 0) {
      kernels.softmax(x, largest, of_all, gradient, classes());
    } else {
      kernels.smoothed_softmax(x, largest, of_all, scale * static_cast<A>(smooth_), of_.class_weight, gradient, classes());
    }
    gradient[of_.targets[row]] -= scale * static_cast<A>(of_target);
  }

  bool weighted() const { return of_.class_weight != nullptr; }

  const CrossEntropyRows<T>& of_;
  double smooth_;           // share of each class, to be multiplied by its weight
  double smooth_mass_ = 0;  // share of all classes
};

}  // namespace

template <>
template <typename T>
void CrossEntropy<Cpu>::sums(const CrossEntropyRows<T>& of, Accumulate<T>* exponentials, double* sums) {
  const Rows<T> rows(of);
  const std::int64_t wrong_row = rows.wrong_row();
  double total = 0;
  double target_weight = 0;
  if (wrong_row >= 0) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    total = target_weight = none;
  } else {
    const Tensor<double, Cpu> losses({rows.count()});
    parallel_rows(rows.count(), rows.classes(), [&](std::int64_t begin, std::int64_t end) {
      FloatRow<T> floats(rows.classes());
      for (std::int64_t row = begin; row < end; ++row) {
        const auto* x = floats.read(rows.logits(row));
        const auto of_row = rows.sums(x);
        keep_exponentials(of_row.exponentials, exponentials, rows.count(), row);
        losses.data()[row] = rows.loss(row, of_row, x);
      }
    });
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      if (rows.ignored(row)) continue;
      total += losses.data()[row];
      target_weight += rows.weight(row);
    }
  }
  sums[0] = total;
  sums[1] = target_weight;
  sums[2] = static_cast<double>(wrong_row);
}

template <>
template <typename T>
void CrossEntropy<Cpu>::backward(const CrossEntropyRows<T>& of, const Accumulate<T>* exponentials,
                                 const CrossEntropyScale<Accumulate<T>>& scale, T* dlogits) {
  const Rows<T> rows(of);
  parallel_rows(rows.count(), rows.classes(), [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> inputs(rows.classes());
    FloatRow<T> outputs(rows.classes());
    for (std::int64_t row = begin; row < end; ++row) {
      rows.gradient(row, exponentials_at(exponentials, rows.count(), row), scale.of(row), dlogits + row * rows.classes(),
                    inputs, outputs);
    }
  });
}

template <>
template <typename T>
void CrossEntropy<Cpu>::in_place(const CrossEntropyRows<T>& of, Accumulate<T> scale, T* logits, double* sums) {
  const Tensor<Accumulate<T>, Cpu> exponentials({2, of.count});
  CrossEntropy<Cpu>::sums(of, exponentials.data(), sums);
  if (sums[2] < 0) backward(of, exponentials.data(), {.of_all = {scale}, .of_rows = nullptr}, logits);
}

template <>
template <typename T>
void CrossEntropy<Cpu>::losses(const CrossEntropyRows<T>& of, const Accumulate<T>* exponentials, Accumulate<T>* losses) {
  const Rows<T> rows(of);
  const std::int64_t wrong_row = rows.wrong_row();
  if (wrong_row >= 0) throw_wrong_target(wrong_row, of.targets[wrong_row], of.classes, of.ignore_index);
  parallel_rows(rows.count(), rows.classes(), [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> floats(rows.classes());
    for (std::int64_t row = begin; row < end; ++row) {
      const auto* x = floats.read(rows.logits(row));
      losses[row] =
          static_cast<Accumulate<T>>(rows.loss(row, rows.sums(x, exponentials_at(exponentials, rows.count(), row)), x));
    }
  });
}

TRIREME_INSTANTIATE(FLOATS, cross_entropy_sums, Cpu)
TRIREME_INSTANTIATE(FLOATS, cross_entropy_in_place, Cpu)
TRIREME_INSTANTIATE(FLOATS, cross_entropy, Cpu)
TRIREME_INSTANTIATE(FLOATS, cross_entropy_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, cross_entropy_rows, Cpu)
TRIREME_INSTANTIATE(FLOATS, cross_entropy_rows_backward, Cpu)
TRIREME_INSTANCE(Cpu, cross_entropy_result)

}  // namespace trireme::ops
