#include "ops/cuda_compare.hpp"
#include "trireme/ops/loss/elementwise_loss.hpp"
#include "trireme/ops/reduce/reduce.hpp"

// The sums of a GPU against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

TEMPLATE_TEST_CASE("sums of rows on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  using A = Accumulate<T>;
  for (const auto& [rows, width] :
       {std::pair<std::int64_t, std::int64_t>{0, 5}, {1, 1}, {7, 768}, {33, 10}, {1000, 17}, {4099, 768}, {40'000, 64}}) {
    CAPTURE(rows, width);
    const auto x = random_tensor<T>({rows, width}, 1);
    for (const bool accumulate : {false, true}) {
      Tensor<A> columns = random_tensor<A>({width}, 2);
      Tensor<A, Cuda> columns_there = columns.template to<Cuda>();
      sum_rows(x, columns, accumulate);
      sum_rows(x.template to<Cuda>(), columns_there, accumulate);
      require_same(columns_there, columns, 300);
    }
  }
}

TEMPLATE_TEST_CASE("sums of squares on the GPU", "", float, double) {
  for (const std::size_t count : {0, 1, 1000, 4097, 5'000'003}) {
    CAPTURE(count);
    const auto x = random_tensor<TestType>({static_cast<std::int64_t>(count)}, 1);
    const auto x_there = x.template to<Cuda>();
    CHECK(sum_of_squares(x_there.data(), count, Cuda{}).item() == Approx(sum_of_squares(x.data(), count)).epsilon(1e-10));
  }
}

TEMPLATE_TEST_CASE("losses of elements", "", float, double, bfloat16, float16) {
  using T = TestType;
  using A = Accumulate<T>;
  for (const std::int64_t count : {1, 1001, 1'000'003}) {
    const auto x = random_tensor<T>({count}, 1);
    auto target = random_tensor<A>({count}, 2);
    for (A& element : target.span()) element = element * element / (1 + element * element);
    const auto x_there = x.template to<Cuda>();
    const auto target_there = target.template to<Cuda>();
    const Scalar<A, Cuda> half_there(Tensor<A, Cuda>::full({}, A(0.5)));
    const ElementwiseLossOptions options{.positive_weight = 2, .delta = 0.5, .alpha = 0.3, .gamma = 1.5};
    for (const auto kind :
         {ElementwiseLoss::squared_error, ElementwiseLoss::binary_cross_entropy, ElementwiseLoss::kl_divergence,
          ElementwiseLoss::kl_divergence_log_target, ElementwiseLoss::absolute_error, ElementwiseLoss::huber,
          ElementwiseLoss::smooth_l1, ElementwiseLoss::focal}) {
      CAPTURE(count, static_cast<int>(kind));
      CHECK(elementwise_loss(kind, x_there, target_there, options).item() ==
            Approx(elementwise_loss(kind, x, target, options)).epsilon(tolerance<A>(1e-5)));
      for (const bool accumulate : {false, true}) {
        Tensor<T> dx = x.clone();
        Tensor<T, Cuda> dx_there = x_there.clone();
        elementwise_loss_backward(kind, x, target, A(0.5), dx, accumulate, options);
        elementwise_loss_backward(kind, x_there, target_there, half_there, dx_there, accumulate, options);
        require_same(dx_there, dx);
      }
    }
  }
}
