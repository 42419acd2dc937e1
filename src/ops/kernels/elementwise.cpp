#include "ops/kernels/tables.hpp"
#include "trireme/math/functors.hpp"

namespace trireme::ops::kernels {
namespace TRIREME_ISA {
namespace {

// c[index] (+)= value(index)
template <typename T, typename Value>
TRIREME_HOST_DEVICE void fill(T* c, std::int64_t count, bool accumulate, Value value) {
  if (accumulate) {
#pragma omp simd
    for (std::int64_t index = 0; index < count; ++index) c[index] += value(index);
  } else {
#pragma omp simd
    for (std::int64_t index = 0; index < count; ++index) c[index] = value(index);
  }
}

template <typename Visit>
TRIREME_HOST_DEVICE void with_functor(Activation kind, Visit visit) {
  switch (kind) {
    case Activation::gelu_tanh: return visit(math::GeluTanh{});
    case Activation::gelu_erf: return visit(math::GeluErf{});
    case Activation::relu: return visit(math::Relu{});
    case Activation::silu: return visit(math::Silu{});
    case Activation::sigmoid: return visit(math::Sigmoid{});
    case Activation::tanh: return visit(math::Tanh{});
  }
}

template <typename T>
void activation(Activation kind, const T* x, T* y, std::int64_t count) {
  with_functor(kind, [=](auto functor) { fill(y, count, false, [=](std::int64_t i) { return functor.value(x[i]); }); });
}

template <typename T>
void activation_backward(Activation kind, const T* x, const T* dy, T* dx, std::int64_t count, bool accumulate) {
  with_functor(kind, [=](auto functor) {
    fill(dx, count, accumulate, [=](std::int64_t i) { return dy[i] * functor.derivative(x[i]); });
  });
}

template <typename T>
void add(const T* a, const T* b, T* c, std::int64_t count) {
  fill(c, count, false, [=](std::int64_t i) { return a[i] + b[i]; });
}

template <typename T>
void multiply(const T* a, const T* b, T* c, std::int64_t count, bool accumulate) {
  fill(c, count, accumulate, [=](std::int64_t i) { return a[i] * b[i]; });
}

template <typename T>
void scale(const T* a, T factor, T* c, std::int64_t count, bool accumulate) {
  fill(c, count, accumulate, [=](std::int64_t i) { return factor * a[i]; });
}

constexpr int blocks_at_once = 32;  // Philox blocks of four words

// words[4 * i + j]: word j of Philox block `first + i` of (seed, stream, step); see core/philox.hpp.
void random_words(const RandomKey& key, std::uint64_t first, std::uint32_t* words) {
  std::uint32_t c0[blocks_at_once];
  std::uint32_t c1[blocks_at_once];
  std::uint32_t c2[blocks_at_once];
  std::uint32_t c3[blocks_at_once];
  const std::uint64_t stream = key.stream ^ (key.step * 0x9E3779B97F4A7C15ULL);
  for (int i = 0; i < blocks_at_once; ++i) {
    const std::uint64_t index = first + static_cast<std::uint64_t>(i);
    c0[i] = static_cast<std::uint32_t>(index);
    c1[i] = static_cast<std::uint32_t>(index >> 32);
    c2[i] = static_cast<std::uint32_t>(stream);
    c3[i] = static_cast<std::uint32_t>(stream >> 32);
  }
  std::uint32_t key0 = static_cast<std::uint32_t>(key.seed);
  std::uint32_t key1 = static_cast<std::uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int i = 0; i < blocks_at_once; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * c0[i];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c2[i];
      const std::uint32_t old1 = c1[i];
      const std::uint32_t old3 = c3[i];
      c0[i] = static_cast<std::uint32_t>(b >> 32) ^ old1 ^ key0;
      c1[i] = static_cast<std::uint32_t>(b);
      c2[i] = static_cast<std::uint32_t>(a >> 32) ^ old3 ^ key1;
      c3[i] = static_cast<std::uint32_t>(a);
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  for (int i = 0; i < blocks_at_once; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

template <typename T>
void dropout(const T* x, double probability, const RandomKey& key, T* y, std::int64_t begin, std::int64_t count,
             bool accumulate) {
  const auto threshold = static_cast<std::uint32_t>(probability * 4294967296.0);
  const T factor = static_cast<T>(1 / (1 - probability));
  constexpr std::int64_t words_at_once = 4 * blocks_at_once;
  std::uint32_t words[words_at_once];
  std::int64_t done = 0;
  while (done < count) {
    const std::uint64_t global = key.first_index + static_cast<std::uint64_t>(begin + done);
    const auto offset = static_cast<std::int64_t>(global % 4);
    random_words(key, global / 4, words);
    const std::int64_t part = count - done < words_at_once - offset ? count - done : words_at_once - offset;
    const T* from = x + begin + done;
    fill(y + begin + done, part, accumulate,
         [=, &words](std::int64_t i) { return words[offset + i] >= threshold ? factor * from[i] : T(0); });
    done += part;
  }
}

}  // namespace

extern const Elementwise<float> elementwise_f32{
    activation<float>, activation_backward<float>, add<float>, multiply<float>, scale<float>, dropout<float>};
extern const Elementwise<double> elementwise_f64{
    activation<double>, activation_backward<double>, add<double>, multiply<double>, scale<double>, dropout<double>};

}  // namespace TRIREME_ISA
}  // namespace trireme::ops::kernels
