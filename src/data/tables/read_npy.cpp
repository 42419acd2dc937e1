#include "trireme/data/tables/read_npy.hpp"

#include <cstdint>
#include <memory>

#include "data/sources/ranged_file.hpp"
#include "data/tables/npy_elements.hpp"
#include "data/tables/npy_header.hpp"

namespace trireme::data {

template <typename T>
Tensor<T> read_npy(const Location& path, const std::string& array) {
  const RangedFile file(path);
  const NpyHeader header = read_npy_header(file, path, array);
  const NpyConversion<T> into = conversion_of<T>(header, path);
  const Shape shape = checked_shape(header, header.bytes, path);
  if (shape.numel() == 0) return Tensor<T>(shape);
  const std::shared_ptr<const std::byte> content = file.range(header.begin, static_cast<std::size_t>(header.bytes));
  const Tensor<T> tensor(shape);
  into({.first = content.get(), .swapped = is_swapped(header), .dims = header.dims, .columns_first = header.columns_first},
       tensor.data(), path);
  return tensor;
}

#define TRIREME_INSTANTIATE(T) template Tensor<T> read_npy<T>(const Location&, const std::string&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(std::int32_t);
TRIREME_INSTANTIATE(std::int64_t);
TRIREME_INSTANTIATE(bool);
#undef TRIREME_INSTANTIATE

}  // namespace trireme::data
