#include "parallel/hooks/orthogonalize.hpp"

#include <cmath>
#include <vector>

namespace trireme::parallel {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t row = 0; row < a.size(); ++row) sum += a[row] * b[row];
  return sum;
}

}  // namespace

void orthogonalize_columns(const Tensor<float>& matrix) {
  constexpr double dependent = 1e-6;  // a column that keeps less than this share of its length depends on the others
  const std::int64_t count = matrix.dim(1);
  const auto rows = static_cast<std::size_t>(matrix.dim(0));
  std::vector<std::vector<double>> columns;
  for (std::int64_t index = 0; index < count; ++index) {
    std::vector<double> column(rows);
    for (std::size_t row = 0; row < rows; ++row) column[row] = matrix.data()[static_cast<std::int64_t>(row) * count + index];
    const double length = std::sqrt(dot(column, column));
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::vector<double>& before : columns) {
        const double part = dot(column, before);
        for (std::size_t row = 0; row < rows; ++row) column[row] -= part * before[row];
      }
    }
    const double rest = std::sqrt(dot(column, column));
    const double factor = rest <= dependent * length ? 0 : 1 / rest;
    for (std::size_t row = 0; row < rows; ++row) {
      column[row] *= factor;
      matrix.data()[static_cast<std::int64_t>(row) * count + index] = static_cast<float>(column[row]);
    }
    columns.push_back(std::move(column));
  }
}

}  // namespace trireme::parallel
