#pragma once

#include "trireme/core/error.hpp"
#include "trireme/ops/update/each_optimizer.hpp"
#include "trireme/ops/update/optimizer.hpp"

// The passes of ops/update/optimizer.hpp for any device: OptimizerPasses<D> does the work.
namespace trireme::ops {

template <typename Update>
constexpr const char* name_of = nullptr;
#define TRIREME_NAME(name, Name, T) \
  template <typename T>             \
  constexpr const char* name_of<Name##Update<T>> = #name;
TRIREME_EACH_FORMULA(TRIREME_NAME, T)
#undef TRIREME_NAME

template <typename D>
struct OptimizerPasses {
  template <typename Update>
  static void update_elements(const typename Update::Step& step, std::size_t count, const typename Update::Planes& planes);
  template <typename T>
  static void lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                           const LambStep& step, UpdateSquares* squares);
  template <typename T>
  static void lars_squares(const T* weight, const T* gradient, std::size_t count, UpdateSquares* squares);
};

template <typename Update, typename D>
void update_elements(const typename Update::Step& step, std::size_t count, const typename Update::Planes& planes, D) {
  if constexpr (requires { Update::lacking(step, planes); }) {
    const char* lacking = Update::lacking(step, planes);
    require(lacking == nullptr, "{}: the step needs {}", name_of<Update>, lacking == nullptr ? "" : lacking);
  }
  OptimizerPasses<D>::template update_elements<Update>(step, count, planes);
}

template <typename T, typename D>
void lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                  const LambStep& step, UpdateSquares* squares, D) {
  OptimizerPasses<D>::lamb_moments(weight, gradient, first_moment, second_moment, count, step, squares);
}

template <typename T, typename D>
void lars_squares(const T* weight, const T* gradient, std::size_t count, UpdateSquares* squares, D) {
  OptimizerPasses<D>::lars_squares(weight, gradient, count, squares);
}

#define TRIREME_UPDATE(name, Name, T, D) TRIREME_INSTANCE(Name##Update<T>, update_elements, D)
#define TRIREME_EACH_UPDATE(T, D) TRIREME_EACH_FORMULA(TRIREME_UPDATE, T, D)

}  // namespace trireme::ops
