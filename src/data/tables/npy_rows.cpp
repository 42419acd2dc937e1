#include "trireme/data/tables/npy_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "data/sources/ranged_file.hpp"
#include "data/tables/npy_elements.hpp"
#include "data/tables/npy_header.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_content.hpp"

namespace trireme::data {

template <typename T>
struct NpyRows<T>::State {
  State(const Location& location, const std::string& name)
      : path(location),
        array(name),
        file(location),
        header(read_npy_header(file, path, array)),
        conversion(conversion_of<T>(header, path)) {
    const Shape shape = checked_shape(header, header.bytes, path);
    if (header.dims.empty()) refuse_npy(path, "the array is a single number", "save an array of rows");
    if (header.columns_first && header.dims.size() > 1) {
      refuse_npy(path, "the array's first dim changes from element to element (fortran_order): its rows do not lie together",
                 "save numpy.ascontiguousarray(x)");
    }
    size = shape[0];
    row_shape = Shape(shape.dims().subspan(1));
    row_bytes = static_cast<std::size_t>(row_shape.numel()) * static_cast<std::size_t>(element_bytes_of(header));
    is_other_order = is_swapped(header);
    elements = {row_shape.numel()};
  }

  std::shared_ptr<const std::byte> bytes_of(std::int64_t index) const {
    require(index >= 0 && index < size, "row {} does not exist among {}", index, size);
    return file.range(header.begin + static_cast<std::uint64_t>(index) * row_bytes, row_bytes);
  }
  void convert(const std::byte* row, T* into) const {
    if (row_bytes == 0) return;
    conversion({.first = row, .swapped = is_other_order, .dims = elements, .columns_first = false}, into, path);
  }

  Location path;
  std::string array;
  RangedFile file;
  NpyHeader header;
  NpyConversion<T> conversion;
  std::int64_t size = 0;
  Shape row_shape = {};
  std::size_t row_bytes = 0;
  bool is_other_order = false;
  std::vector<std::int64_t> elements = {};  // of a row
};

template <typename T>
NpyRows<T>::NpyRows(const Location& path, const std::string& array) : state_(std::make_shared<const State>(path, array)) {}

template <typename T>
std::int64_t NpyRows<T>::size() const {
  return state_->size;
}

template <typename T>
const Shape& NpyRows<T>::row_shape() const {
  return state_->row_shape;
}

template <typename T>
Tensor<T> NpyRows<T>::at(std::int64_t index) const {
  const auto bytes = state_->bytes_of(index);
  Tensor<T> row(state_->row_shape);
  state_->convert(bytes.get(), row.data());
  return row;
}

template <typename T>
ArrayBatch<T> NpyRows<T>::collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const {
  std::vector<std::shared_ptr<const std::byte>> rows;
  for (const std::int64_t index : indices) rows.push_back(state_->bytes_of(index));
  std::vector<std::int64_t> dims{std::ssize(indices)};
  const auto of_row = state_->row_shape.dims();
  dims.insert(dims.end(), of_row.begin(), of_row.end());
  ArrayBatch<T> batch{.x = Tensor<T>(Shape(std::span<const std::int64_t>(dims))), .first_sample = first_sample};
  T* into = batch.x.data();
  for (const auto& row : rows) {
    state_->convert(row.get(), into);
    into += state_->row_shape.numel();
  }
  return batch;
}

template <typename T>
std::string NpyRows<T>::content() const {
  const State& state = *state_;
  return fmt::format("{} rows of {}{}", state.size, state.array.empty() ? "" : state.array + " in ",
                     content_or_version_at(state.path));
}

#define TRIREME_INSTANTIATE(T) template class NpyRows<T>
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(std::int32_t);
TRIREME_INSTANTIATE(std::int64_t);
TRIREME_INSTANTIATE(bool);
#undef TRIREME_INSTANTIATE

}  // namespace trireme::data
