#include "ops/convolution/winograd_kernels.hpp"

#include "ops/base/vector.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

// Aligned, unlike Vector: transforms keep arrays of it, and clang assumes their alignment in templates.
typedef float V __attribute__((vector_size(vector_bytes), may_alias));
constexpr std::int64_t width = lanes<float>;

// The polynomials are taken at 0, p, -p, q, -q and infinity. With these two, errors are less than half of those with 1
// and 2 (Barabasz, Anderson, Soodhalter, Gregg 2020, arXiv 1803.10986, on the choice of points).
constexpr float p = 0.625f;
constexpr float q = 1.5f;
constexpr float p2 = p * p;
constexpr float q2 = q * q;
constexpr float of_0 = 1 / (p2 * q2);
constexpr float of_p = 1 / (2 * p2 * (p2 - q2));
constexpr float of_q = 1 / (2 * q2 * (q2 - p2));

// B^T d.
void image(const V (&d)[6], V (&to)[6]) {
  const V even_p = d[4] - q2 * d[2];
  const V odd_p = p * (d[3] - q2 * d[1]);
  const V even_q = d[4] - p2 * d[2];
  const V odd_q = q * (d[3] - p2 * d[1]);
  to[0] = p2 * q2 * d[0] - (p2 + q2) * d[2] + d[4];
  to[1] = even_p + odd_p;
  to[2] = even_p - odd_p;
  to[3] = even_q + odd_q;
  to[4] = even_q - odd_q;
  to[5] = p2 * q2 * d[1] - (p2 + q2) * d[3] + d[5];
}

// A^T m.
void result(const V (&m)[6], V (&to)[4]) {
  const V even_p = m[1] + m[2];
  const V odd_p = p * (m[1] - m[2]);
  const V even_q = m[3] + m[4];
  const V odd_q = q * (m[3] - m[4]);
  to[0] = m[0] + even_p + even_q;
  to[1] = odd_p + odd_q;
  to[2] = p2 * even_p + q2 * even_q;
  to[3] = p2 * odd_p + q2 * odd_q + m[5];
}

// A dy.
void gradient(const V (&dy)[4], V (&to)[6]) {
  const V even_p = dy[0] + p2 * dy[2];
  const V odd_p = p * (dy[1] + p2 * dy[3]);
  const V even_q = dy[0] + q2 * dy[2];
  const V odd_q = q * (dy[1] + q2 * dy[3]);
  to[0] = dy[0];
  to[1] = even_p + odd_p;
  to[2] = even_p - odd_p;
  to[3] = even_q + odd_q;
  to[4] = even_q - odd_q;
  to[5] = dy[3];
}

// G g.
void weight(const V (&g)[3], V (&to)[6]) {
  const V even_p = of_p * (g[0] + p2 * g[2]);
  const V odd_p = of_p * p * g[1];
  const V even_q = of_q * (g[0] + q2 * g[2]);
  const V odd_q = of_q * q * g[1];
  to[0] = of_0 * g[0];
  to[1] = even_p + odd_p;
  to[2] = even_p - odd_p;
  to[3] = even_q + odd_q;
  to[4] = even_q - odd_q;
  to[5] = g[2];
}

// G^T u.
void weight_back(const V (&u)[6], V (&to)[3]) {
  const V even_p = of_p * (u[1] + u[2]);
  const V even_q = of_q * (u[3] + u[4]);
  to[0] = of_0 * u[0] + even_p + even_q;
  to[1] = of_p * p * (u[1] - u[2]) + of_q * q * (u[3] - u[4]);
  to[2] = p2 * even_p + q2 * even_q + u[5];
}

// Transforms the rows and then the columns of a square of `from` x `from` vectors, into `to` x `to` vectors.
template <int from, int to, typename Load, typename Transform, typename Store>
void transform(const Load& load_at, const Transform& one_way, const Store& store_at) {
  V rows[from][to];
#pragma GCC unroll 6
  for (int i = 0; i < from; ++i) {
    V row[from];
#pragma GCC unroll 6
    for (int j = 0; j < from; ++j) row[j] = load_at(i * from + j);
    one_way(row, rows[i]);
  }
#pragma GCC unroll 6
  for (int j = 0; j < to; ++j) {
    V column[from];
    V made[to];
#pragma GCC unroll 6
    for (int i = 0; i < from; ++i) column[i] = rows[i][j];
    one_way(column, made);
#pragma GCC unroll 6
    for (int i = 0; i < to; ++i) store_at(i * to + j, made[i]);
  }
}

void transform_image(const float* const* pixels, std::int64_t channels, float* to, std::int64_t step) {
  for (std::int64_t c = 0; c < channels; c += width) {
    transform<6, 6>([&](int k) { return load<V>(pixels[k] + c); }, image,
                    [&](int k, V value) { store(to + k * step + c, value); });
  }
}

void transform_result(const float* from, std::int64_t step, std::int64_t channels, const float* bias, float* const* pixels) {
  for (std::int64_t c = 0; c < channels; c += width) {
    const V more = bias == nullptr ? V{} : load<V>(bias + c);
    transform<6, 4>([&](int k) { return load<V>(from + k * step + c); }, result,
                    [&](int k, V value) { store(pixels[k] + c, value + more); });
  }
}

void transform_gradient(const float* const* pixels, std::int64_t channels, float* to, std::int64_t step) {
  for (std::int64_t c = 0; c < channels; c += width) {
    transform<4, 6>([&](int k) { return load<V>(pixels[k] + c); }, gradient,
                    [&](int k, V value) { store(to + k * step + c, value); });
  }
}

constexpr int taps = 9;

void transform_weight(const float* weights, std::int64_t in, bool turned, float* to, std::int64_t step) {
  for (std::int64_t c = 0; c < in; c += width) {
    float of_tap[taps][width];
    for (std::int64_t lane = 0; lane < width; ++lane) {
      for (int tap = 0; tap < taps; ++tap) of_tap[turned ? taps - 1 - tap : tap][lane] = weights[(c + lane) * taps + tap];
    }
    transform<3, 6>([&](int k) { return load<V>(of_tap[k]); }, weight,
                    [&](int k, V value) { store(to + k * step + c, value); });
  }
}

void weight_gradient(const float* from, std::int64_t step, std::int64_t in, float* dweight) {
  for (std::int64_t c = 0; c < in; c += width) {
    float of_tap[taps][width];
    transform<6, 3>([&](int k) { return load<V>(from + k * step + c); }, weight_back,
                    [&](int k, V value) { store(of_tap[k], value); });
    for (std::int64_t lane = 0; lane < width; ++lane) {
      for (int tap = 0; tap < taps; ++tap) dweight[(c + lane) * taps + tap] = of_tap[tap][lane];
    }
  }
}

}  // namespace

const WinogradKernels winograd_kernels{
    .transform_image = transform_image,
    .transform_result = transform_result,
    .transform_gradient = transform_gradient,
    .transform_weight = transform_weight,
    .weight_gradient = weight_gradient,
};

}  // namespace trireme::ops::TRIREME_ISA
