#include <string_view>
#include <vector>

#include "precision/instantiate.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/array/copy_strided.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/matmul/matmul.hpp"

namespace trireme {
namespace {

struct AddLowRank {
  static constexpr std::string_view name = "add_low_rank";
  static constexpr bool repeatable = false;
  std::vector<LowRankColumns> columns;
  double factor;
  std::int64_t out;
  std::int64_t rank;

  template <typename T, typename D>
  void forward(const Tensor<T, D>&, const Tensor<T, D>& u, const Tensor<T, D>& b, Tensor<T, D>& y) const {
    ops::matmul(u, blocks(b), y, {.transpose_b = true, .accumulate = true});
  }
  template <typename T, typename D>
  void input_gradients(const Tensor<T, D>& dy, const Tensor<T, D>&, const Tensor<T, D>& b, const Gradient<T, D>& of_y,
                       const Gradient<T, D>& du, const auto&) const {
    du.contribute([&](Tensor<T, D>& sum, bool accumulate) { ops::matmul(dy, blocks(b), sum, {.accumulate = accumulate}); });
    if (of_y.needed()) of_y.give(dy);
  }
  template <typename T, typename D, typename A>
  void weight_gradients(const Tensor<T, D>& dy, const Tensor<T, D>& u, const Tensor<T, D>& b, const Gradient<T, D>&,
                        const Gradient<T, D>&, const Gradient<A, D>& db) const {
    db.contribute([&](Tensor<A, D>& sum, bool accumulate) {
      Tensor<A, D> of_blocks({out, width()});
      ops::matmul(dy, u, of_blocks, {.transpose_a = true});
      Tensor<A, D> of_b(b.shape());
      for (const ops::StridedCopy& block : blocks_of_b()) ops::copy_strided(block.reversed(), of_blocks, of_b);
      ops::scale(of_b, static_cast<Accumulate<A>>(factor), sum, accumulate);
    });
  }

 private:
  std::int64_t width() const { return static_cast<std::int64_t>(columns.size()) * rank; }

  // Copies from b to a matrix [out, width], where each block lies at the rows of its outputs and the columns of its part of u.
  std::vector<ops::StridedCopy> blocks_of_b() const {
    std::vector<ops::StridedCopy> copies;
    std::int64_t row = 0;
    for (const LowRankColumns& part : columns) {
      ops::StridedCopy& copy = copies.emplace_back();
      copy.from = row * rank;
      copy.to = part.first * width() + static_cast<std::int64_t>(copies.size() - 1) * rank;
      copy.add({.extent = rank, .from = 1, .to = 1});
      copy.add({.extent = part.count, .from = rank, .to = width()});
      row += part.count;
    }
    return copies;
  }

  // The matrix of blocks_of_b(), times the factor.
  template <typename T, typename D>
  Tensor<T, D> blocks(const Tensor<T, D>& b) const {
    Tensor<T, D> scaled(b.shape());
    ops::scale(b, static_cast<Accumulate<T>>(factor), scaled);
    auto matrix = Tensor<T, D>::full({out, width()}, T(0));
    for (const ops::StridedCopy& block : blocks_of_b()) ops::copy_strided(block, scaled, matrix);
    return matrix;
  }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> add_low_rank(const Variable<T, D>& y, const Variable<T, D>& u, const Variable<T, D, Accumulate<T>>& b,
                            const std::vector<LowRankColumns>& columns, double scale) {
  const auto result = [&] {
    std::int64_t rows = 0;
    for (const LowRankColumns& part : columns) {
      require(part.first >= 0 && part.count > 0 && part.first + part.count <= y.shape().back(),
              "add_low_rank: columns {} to {} do not lie in y {}", part.first, part.first + part.count, y.shape());
      rows += part.count;
    }
    require(b.shape().size() == 2 && b.shape()[0] == rows && y.shape().rows() == u.shape().rows() &&
                u.shape().back() == static_cast<std::int64_t>(columns.size()) * b.shape()[1],
            "add_low_rank: y {}, u {} and b {} do not fit each other for {} blocks with {} columns", y.shape(), u.shape(),
            b.shape(), columns.size(), rows);
    return Result<T, D>{.existing = y.value()};
  };
  require_operands("add_low_rank", y, u, b);
  return record(AddLowRank{columns, scale, y.shape().back(), b.shape().back()}, result, y, kept(u), kept(weight(b)));
}

TRIREME_INSTANTIATE(FLOATS, add_low_rank, TRIREME_DEVICE)

}  // namespace trireme
