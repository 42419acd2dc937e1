#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "parallel/hooks/kept_tensors.hpp"
#include "parallel/hooks/orthogonalize.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/parallel/hooks/compression.hpp"

namespace trireme::parallel {
namespace {

struct Sizes {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t rank = 0;
};

// A gradient [rows, columns] as left [rows, rank] x right [columns, rank]^T.
struct Factors {
  std::string name;
  Tensor<float> gradient;
  Tensor<float> error;
  Tensor<float> right;  // kept: the next step starts from it
  Tensor<float> left;
};

class PowerSgdHook final : public CommunicationHook {
 public:
  explicit PowerSgdHook(const PowerSgdOptions& options) : options_(options) {}

  std::string str() const override { return fmt::format("powersgd:{}", options_.rank); }
  int max_exchanges() const override { return 2; }

  void prepare(std::span<const ParameterInfo> parameters) override {
    for (const ParameterInfo& parameter : parameters) {
      if (!shrinks(parameter.shape)) continue;
      errors_.add(parameter.name, parameter.shape);
      const Sizes sizes = sizes_of(parameter.shape);
      fill_zero_columns(parameter.name, rights_.add(parameter.name, {sizes.columns, sizes.rank}));
    }
  }

  HookTask reduce(GradientBucket& bucket) override {
    Tensor<float> first({first_numel(bucket)});  // all left factors, then the gradients that are sent whole
    std::vector<Factors> all = factors(bucket, first);
    for (Factors& factors : all) multiply_left(factors);
    copy_whole(bucket, first, true);
    co_await bucket.all_reduce(first.span());

    Tensor<float> second({second_numel(all)});  // all right factors
    std::int64_t begin = 0;
    for (Factors& factors : all) {
      orthogonalize_columns(factors.left);
      Tensor<float> right = second.narrow(begin, factors.right.numel()).reshape(factors.right.shape());
      ops::matmul(factors.error, factors.left, right, {.transpose_a = true});
      begin += right.numel();
    }
    copy_whole(bucket, first, false);
    if (all.empty()) co_return;
    co_await bucket.all_reduce(second.span());

    begin = 0;
    for (Factors& factors : all) {
      std::copy_n(second.data() + begin, factors.right.numel(), factors.right.data());
      begin += factors.right.numel();
      ops::matmul(factors.left, factors.right, factors.gradient, {.transpose_b = true});
      keep_error(factors, bucket.size());
      if (std::ranges::all_of(factors.right.span(), [](float value) { return std::isfinite(value); })) continue;
      errors_.forget(factors.name);
      rights_.forget(factors.name);
    }
  }

  std::vector<NamedTensor> state() override {
    std::vector<NamedTensor> state;
    errors_.list(state);
    rights_.list(state);
    return state;
  }

 private:
  // Leading dims become rows and the others columns, so that rows + columns is smallest. The rows of a convolution's weight are
  // its output channels.
  static Shape matrix_of(const Shape& shape) {
    Shape best{shape.numel(), 1};
    std::int64_t rows = 1;
    for (const std::int64_t dim : shape.dims()) {
      rows *= dim;
      if (rows + shape.numel() / rows < best[0] + best[1]) best = {rows, shape.numel() / rows};
    }
    return best;
  }
  Sizes sizes_of(const Shape& shape) const {
    const std::int64_t rows = matrix_of(shape)[0];
    const std::int64_t columns = matrix_of(shape)[1];
    return {.rows = rows, .columns = columns, .rank = std::min({static_cast<std::int64_t>(options_.rank), rows, columns})};
  }
  bool shrinks(const Shape& shape) const {
    if (shape.size() < 2 || shape.numel() == 0) return false;
    const auto [rows, columns, rank] = sizes_of(shape);
    return 2 * rank * (rows + columns) <= rows * columns;
  }

  std::int64_t first_numel(const GradientBucket& bucket) const {
    std::int64_t count = 0;
    for (const auto& [name, values] : bucket.gradients()) {
      const Tensor<float>* right = rights_.find(name);
      count += right == nullptr ? values.numel() : matrix_of(values.shape())[0] * right->dim(1);
    }
    return count;
  }
  static std::int64_t second_numel(const std::vector<Factors>& all) {
    std::int64_t count = 0;
    for (const Factors& factors : all) count += factors.right.numel();
    return count;
  }

  std::vector<Factors> factors(const GradientBucket& bucket, const Tensor<float>& first) const {
    std::vector<Factors> all;
    std::int64_t begin = 0;
    for (const auto& [name, values] : bucket.gradients()) {
      const Tensor<float>* right = rights_.find(name);
      if (right == nullptr) continue;
      fill_zero_columns(name, *right);
      const Shape matrix = matrix_of(values.shape());
      const Shape left{matrix[0], right->dim(1)};
      all.push_back({.name = name,
                     .gradient = values.reshape(matrix),
                     .error = errors_.find(name)->reshape(matrix),
                     .right = *right,
                     .left = first.narrow(begin, left.numel()).reshape(left)});
      begin += left.numel();
    }
    return all;
  }

  // Adds the gradient to `error`, then multiplies.
  static void multiply_left(Factors& factors) {
    float* errors = factors.error.data();
    const float* gradients = factors.gradient.data();
    const std::int64_t count = factors.error.numel();
#pragma omp parallel for simd
    for (std::int64_t index = 0; index < count; ++index) errors[index] += gradients[index];
    ops::matmul(factors.error, factors.right, factors.left);
  }

  // Subtracts this rank's share of the approximated sum: `error` keeps the part that was not sent.
  static void keep_error(const Factors& factors, int ranks) {
    float* errors = factors.error.data();
    const float* sums = factors.gradient.data();
    const float share = 1.0F / static_cast<float>(ranks);
    const std::int64_t count = factors.error.numel();
#pragma omp parallel for simd
    for (std::int64_t index = 0; index < count; ++index) errors[index] -= share * sums[index];
  }

  // The gradients that are sent whole lie behind the left factors.
  void copy_whole(const GradientBucket& bucket, const Tensor<float>& first, bool into) const {
    std::int64_t end = first.numel();
    for (auto gradient = bucket.gradients().rbegin(); gradient != bucket.gradients().rend(); ++gradient) {
      if (rights_.find(gradient->name) != nullptr) continue;
      end -= gradient->values.numel();
      const std::span<float> place = first.span().subspan(static_cast<std::size_t>(end), gradient->values.span().size());
      const std::span<float> values = gradient->values.span();
      std::ranges::copy(into ? values : place, (into ? place : values).begin());
    }
  }

  // Fills columns of zeros with random numbers, since power iteration would keep them zero. They are zero at first and after
  // gradients of zeros.
  void fill_zero_columns(const std::string& name, const Tensor<float>& right) const {
    const std::int64_t rank = right.dim(1);
    for (std::int64_t column = 0; column < rank; ++column) {
      bool zero = true;
      for (std::int64_t index = column; index < right.numel(); index += rank) zero = zero && right.data()[index] == 0;
      for (std::int64_t index = column; zero && index < right.numel(); index += rank) {
        right.data()[index] =
            static_cast<float>(philox_normal(options_.seed, hash_name(name), static_cast<std::uint64_t>(index)));
      }
    }
  }

  PowerSgdOptions options_;
  KeptTensors errors_{"error"};
  KeptTensors rights_{"right_factor"};
};

}  // namespace

HookFactory power_sgd_hook(const PowerSgdOptions& options) {
  require(options.rank > 0, "PowerSGD's rank is above 0, got {}", options.rank);
  return [options] { return std::make_shared<PowerSgdHook>(options); };
}

}  // namespace trireme::parallel
