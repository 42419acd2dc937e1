#include "trireme/core/dtype.hpp"

namespace trireme {

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::boolean:
    case DType::uint8:
    case DType::int8:
    case DType::float8_e4m3:
    case DType::float8_e5m2: return 1;
    case DType::uint16:
    case DType::int16:
    case DType::float16:
    case DType::bfloat16: return 2;
    case DType::uint32:
    case DType::int32:
    case DType::float32: return 4;
    case DType::uint64:
    case DType::int64:
    case DType::float64: return 8;
  }
  return 0;
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return "bool";
    case DType::uint8: return "uint8";
    case DType::int8: return "int8";
    case DType::uint16: return "uint16";
    case DType::int16: return "int16";
    case DType::uint32: return "uint32";
    case DType::int32: return "int32";
    case DType::uint64: return "uint64";
    case DType::int64: return "int64";
    case DType::float8_e4m3: return "float8_e4m3";
    case DType::float8_e5m2: return "float8_e5m2";
    case DType::float16: return "float16";
    case DType::bfloat16: return "bfloat16";
    case DType::float32: return "float32";
    case DType::float64: return "float64";
  }
  return "unknown";
}

}  // namespace trireme
