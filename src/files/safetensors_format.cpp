#include "files/safetensors_format.hpp"

#include <fmt/format.h>

#include <array>

namespace trireme::safetensors {
namespace {

struct DTypeName {
  DType dtype;
  std::string_view name;
};

constexpr std::array dtype_names{
    DTypeName{DType::boolean, "BOOL"},
    DTypeName{DType::uint8, "U8"},
    DTypeName{DType::int8, "I8"},
    DTypeName{DType::uint16, "U16"},
    DTypeName{DType::int16, "I16"},
    DTypeName{DType::uint32, "U32"},
    DTypeName{DType::int32, "I32"},
    DTypeName{DType::uint64, "U64"},
    DTypeName{DType::int64, "I64"},
    DTypeName{DType::float8_e4m3, "F8_E4M3"},
    DTypeName{DType::float8_e5m2, "F8_E5M2"},
    DTypeName{DType::float16, "F16"},
    DTypeName{DType::bfloat16, "BF16"},
    DTypeName{DType::float32, "F32"},
    DTypeName{DType::float64, "F64"},
};

}  // namespace

std::string_view format_name(DType dtype) {
  for (const DTypeName& entry : dtype_names) {
    if (entry.dtype == dtype) return entry.name;
  }
  throw Error({.message = fmt::format("the dtype {} has no name in safetensors files", name_of(dtype))});
}

std::optional<DType> dtype_from_format_name(std::string_view name) {
  for (const DTypeName& entry : dtype_names) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

}  // namespace trireme::safetensors
