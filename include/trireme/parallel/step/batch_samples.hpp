#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// The samples of a micro-batch, which identify its random numbers: TapeOptions::first_sample and ::samples.
struct BatchSamples {
  std::int64_t first = 0;
  std::optional<std::int64_t> count = {};
};

namespace detail {

struct AnyValue {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};
struct AnyReference {
  template <typename T>
  operator T&() const;  // NOLINT(google-explicit-constructor)
};
template <typename B>
struct BaseOf {
  template <typename T>
  requires(std::is_base_of_v<T, B> && !std::is_same_v<T, B>) operator T() const;  // NOLINT(google-explicit-constructor)
};

// Whether B can be initialised from `count` members and an X.
template <typename B, typename X, int count>
constexpr bool goes_on_with(X x) {
  // clang-format off
  if constexpr (count == 0) return requires { B{x}; };
  if constexpr (count == 2) return requires { B{{}, {}, x}; };
  if constexpr (count == 3) return requires { B{{}, {}, {}, x}; };
  if constexpr (count == 4) return requires { B{{}, {}, {}, {}, x}; };
  if constexpr (count == 5) return requires { B{{}, {}, {}, {}, {}, x}; };
  if constexpr (count == 6) return requires { B{{}, {}, {}, {}, {}, {}, x}; };
  // clang-format on
}

// The number of members of a plain struct; 0 if it has bases, more than six members, or a member that {} does not initialise.
template <typename B>
constexpr int num_members() {
  // clang-format off
  constexpr int count = goes_on_with<B, BaseOf<B>, 0>({}) || requires { B{{}, {}, {}, {}, {}, {}, {}}; } ? 0
                        : requires { B{{}, {}, {}, {}, {}, {}}; } ? 6
                        : requires { B{{}, {}, {}, {}, {}}; } ? 5
                        : requires { B{{}, {}, {}, {}}; } ? 4
                        : requires { B{{}, {}, {}}; } ? 3
                        : requires { B{{}, {}}; } ? 2 : 0;
  // clang-format on
  if constexpr (count == 0) {
    return 0;
  } else {
    return goes_on_with<B, AnyValue, count>({}) || goes_on_with<B, AnyReference, count>({}) ? 0 : count;
  }
}

template <typename B>
void each_member(const B& batch, const auto& visit) {
  constexpr int members = num_members<B>();
  const auto all = [&](const auto&... member) { (visit(member), ...); };
  if constexpr (members == 2) {
    const auto& [a, b] = batch;
    all(a, b);
  } else if constexpr (members == 3) {
    const auto& [a, b, c] = batch;
    all(a, b, c);
  } else if constexpr (members == 4) {
    const auto& [a, b, c, d] = batch;
    all(a, b, c, d);
  } else if constexpr (members == 5) {
    const auto& [a, b, c, d, e] = batch;
    all(a, b, c, d, e);
  } else if constexpr (members == 6) {
    const auto& [a, b, c, d, e, f] = batch;
    all(a, b, c, d, e, f);
  }
}

template <typename B>
concept SaysSamples = requires(const B& batch) {
  { batch.samples } -> std::convertible_to<std::int64_t>;
};
template <typename B>
concept HasSize = requires(const B& batch) {
  { batch.size() } -> std::convertible_to<std::int64_t>;
};
template <typename B>
concept HasRows = requires(const B& batch) {
  { batch.rows() } -> std::convertible_to<std::int64_t>;
};

// Dim 0 of all tensors in a plain struct; nothing if dim 0 is not the same for all tensors.
template <typename B>
std::optional<std::int64_t> common_rows(const B& batch) {
  std::optional<std::int64_t> rows;
  bool differ = false;
  if constexpr (std::is_aggregate_v<B>) {
    const auto look = [&]<typename M>(const M& member) {
      const auto count = [&](const auto& tensor) {
        if (!tensor.defined() || tensor.shape().size() == 0) return;
        differ = differ || (rows && *rows != tensor.dim(0));
        rows = tensor.dim(0);
      };
      if constexpr (requires { member.value().dim(0); }) {
        count(member.value());
      } else if constexpr (requires { member.defined(), member.dim(0); }) {
        count(member);
      }
    };
    each_member(batch, look);
  }
  return differ ? std::nullopt : rows;
}

}  // namespace detail

// The samples of a batch. A batch is given as the number of its first sample, a Range, or a struct with first_sample. A
// struct's count is its member `samples`, size() or rows(). Without these members the count is `counted`, the number that the
// loader gives, or dim 0 of the struct's tensors if dim 0 is the same in all.
template <typename Batch>
BatchSamples samples_of(const Batch& batch, std::optional<std::int64_t> counted) {
  if constexpr (std::integral<Batch>) {
    return {.first = static_cast<std::int64_t>(batch), .count = counted};
  } else if constexpr (std::same_as<Batch, Range>) {
    return {.first = batch.begin, .count = batch.count()};
  } else {
    static_assert(
        requires { batch.first_sample; },
        "a batch's random numbers depend on its first sample: give the batch a member first_sample, or give the number of its "
        "first sample to backward()");
    const auto said = [&]() -> std::optional<std::int64_t> {
      if constexpr (detail::SaysSamples<Batch>)
        return static_cast<std::int64_t>(batch.samples);
      else if constexpr (detail::HasSize<Batch>)
        return static_cast<std::int64_t>(batch.size());
      else if constexpr (detail::HasRows<Batch>)
        return static_cast<std::int64_t>(batch.rows());
      else
        return counted ? counted : detail::common_rows(batch);
    };
    return {.first = static_cast<std::int64_t>(batch.first_sample), .count = said()};
  }
}

}  // namespace parallel
}  // namespace trireme
