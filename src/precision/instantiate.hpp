#pragma once

#include <cstdint>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

// The lists of element types that functions are compiled for. TRIREME_INSTANTIATE compiles a function for each type of a list,
// TRIREME_EACH calls a macro for each type: for overloaded functions, or if the type is not the first template argument.
// TRIREME_INSTANCE compiles a single instance.
//
//   TRIREME_INSTANTIATE(FLOATS, rotary, Cpu)          rotary<T, Cpu>
//   TRIREME_EACH(FLOATS, TRIREME_EINSUMS, Cpu)        TRIREME_EINSUMS(T, Cpu)
//   TRIREME_INSTANCE(std::int32_t, cast, float, Cpu)  cast<std::int32_t, float, Cpu>
#define TRIREME_INSTANTIATE(LIST, ...) TRIREME_EACH(LIST, TRIREME_INSTANCE, __VA_ARGS__)
#define TRIREME_EACH(LIST, ...) TRIREME_EACH_OF_##LIST(__VA_ARGS__)
#define TRIREME_INSTANCE(T, function, ...) \
  template decltype(function<T __VA_OPT__(, ) __VA_ARGS__>) function<T __VA_OPT__(, ) __VA_ARGS__>;

#define TRIREME_EACH_OF_SINGLE_AND_DOUBLE(X, ...) \
  X(float __VA_OPT__(, ) __VA_ARGS__)             \
  X(double __VA_OPT__(, ) __VA_ARGS__)
#define TRIREME_EACH_OF_HALVES(X, ...)   \
  X(bfloat16 __VA_OPT__(, ) __VA_ARGS__) \
  X(float16 __VA_OPT__(, ) __VA_ARGS__)
#define TRIREME_EACH_OF_FLOAT8S(X, ...)     \
  X(float8_e4m3 __VA_OPT__(, ) __VA_ARGS__) \
  X(float8_e5m2 __VA_OPT__(, ) __VA_ARGS__)
#define TRIREME_EACH_OF_WHOLE_NUMBERS(X, ...) \
  X(std::int32_t __VA_OPT__(, ) __VA_ARGS__)  \
  X(std::int64_t __VA_OPT__(, ) __VA_ARGS__)
#define TRIREME_EACH_OF_FLOATS(...)              \
  TRIREME_EACH_OF_SINGLE_AND_DOUBLE(__VA_ARGS__) \
  TRIREME_EACH_OF_HALVES(__VA_ARGS__)
#define TRIREME_EACH_OF_NUMBERS(...)  \
  TRIREME_EACH_OF_FLOATS(__VA_ARGS__) \
  TRIREME_EACH_OF_WHOLE_NUMBERS(__VA_ARGS__)
#define TRIREME_EACH_OF_ELEMENTS(X, ...)                \
  TRIREME_EACH_OF_NUMBERS(X __VA_OPT__(, ) __VA_ARGS__) \
  X(bool __VA_OPT__(, ) __VA_ARGS__)
