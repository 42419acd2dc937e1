#include "ops/cuda_compare.hpp"
#include "trireme/ops/loss/vocab_parallel.hpp"

// The operations on a part of a vocabulary on the GPU against those on the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

constexpr VocabRange held{.first = 100, .total = 1000};

}  // namespace

TEMPLATE_TEST_CASE("embeddings of a part of the rows", "", float, double) {
  using T = TestType;
  const auto index = random_index(777, held.total, 5);
  for (const std::int64_t width : {3, 64}) {
    CAPTURE(width);
    const auto weight = random_tensor<T>({500, width}, 1);
    const auto dy = random_tensor<T>({777, width}, 2);
    Tensor<T> y({777, width});
    Tensor<T, Cuda> y_there(y.shape());
    embedding_part(index, weight, held, y);
    embedding_part(index.to<Cuda>(), weight.template to<Cuda>(), held, y_there);
    require_same(y_there, y);
    for (const bool accumulate : {false, true}) {
      Tensor<T> dweight = weight.clone();
      Tensor<T, Cuda> dweight_there = weight.template to<Cuda>();
      embedding_part_backward(index, dy, held, dweight, accumulate);
      embedding_part_backward(index.to<Cuda>(), dy.template to<Cuda>(), held, dweight_there, accumulate);
      require_same(dweight_there, dweight);
    }
  }
}

TEMPLATE_TEST_CASE("cross-entropy of a part of the classes", "", float, double, bfloat16, float16) {
  using T = TestType;
  using A = Accumulate<T>;
  auto targets = random_index(333, held.total, 5);
  targets.data()[5] = ignored_target;
  for (const std::int64_t classes : {0, 37, 800}) {
    CAPTURE(classes);
    const auto logits = random_tensor<T>({333, classes}, 1, 5);
    Tensor<A> exponentials({2, 333});
    Tensor<A> of_targets({333});
    Tensor<A, Cuda> exponentials_there({2, 333});
    Tensor<A, Cuda> of_targets_there({333});
    partial_cross_entropy(logits, targets, held, exponentials, of_targets);
    partial_cross_entropy(logits.template to<Cuda>(), targets.to<Cuda>(), held, exponentials_there, of_targets_there);
    require_same(of_targets_there, of_targets);
    if (classes == 0) continue;
    require_close(exponentials_there.template to<Cpu>(), as_doubles(exponentials), tolerance<A>(1e-6));
    Tensor<T> dlogits(logits.shape());
    Tensor<T, Cuda> dlogits_there(logits.shape());
    partial_cross_entropy_backward(logits, targets, held, exponentials, A(0.5), dlogits);
    partial_cross_entropy_backward(logits.template to<Cuda>(), targets.to<Cuda>(), held, exponentials_there, A(0.5),
                                   dlogits_there);
    require_same(dlogits_there, dlogits);
  }
}

TEMPLATE_TEST_CASE("the ranks' parts of a cross-entropy", "", float, double) {
  using T = TestType;
  auto targets = random_index(333, held.total, 5);
  targets.data()[5] = ignored_target;
  const auto parts = random_tensor<T>({7, 333}, 1, 3);
  for (T& element : parts.span()) element = std::abs(element) + 1;  // sums are not below 1
  Tensor<T> exponentials({2, 333});
  Tensor<T, Cuda> exponentials_there({2, 333});
  const auto here = join_cross_entropy(parts, targets, exponentials);
  const auto there = join_cross_entropy(parts.template to<Cuda>(), targets.to<Cuda>(), exponentials_there);
  require_same(exponentials_there, exponentials);
  CHECK(there.sum.item() == Approx(here.sum));
  CHECK(there.target_weight.item() == here.target_weight);
}
