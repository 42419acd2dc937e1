#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/files/location.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Rows of an array, one behind the other.
template <typename T>
struct ArrayBatch {
  Tensor<T> x;  // [batch, ...]
  std::int64_t first_sample = 0;

  std::int64_t size() const { return x.dim(0); }
};

// The rows x[0], x[1], ... of an array of numpy.save or numpy.savez, as a dataset that need not fit into memory:
//
//   const data::NpyRows<float> spectra("spectra.npy");           // [1'000'000, 3, 512]
//   const data::NpyRows<std::int32_t> labels("set.npz", "labels");  // [1'000'000]
//   spectra.at(7)  // [3, 512]
//   const data::Loader loader(spectra, run.batch());  // batches of x [batch, 3, 512]
//
// Elements become T as by read_npy(). A file of this machine is mapped, of others a row is read by one request. Throws what
// read_npy() throws, the error of an element where its row is read; and Error{corrupt_file} for an array whose first dim
// changes from element to element (fortran_order), since its rows do not lie together. T: as of read_npy().
template <typename T>
class TRIREME_EXPORT NpyRows {
 public:
  explicit NpyRows(const Location& path, const std::string& array = {});

  std::int64_t size() const;
  const Shape& row_shape() const;
  Tensor<T> at(std::int64_t index) const;
  ArrayBatch<T> collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const;

  // Of a file of this machine a digest of all bytes, which is kept for large files; of others their place and size.
  std::string content() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

template <typename T>
std::string content_of(const NpyRows<T>& rows) {
  return rows.content();
}

}  // namespace data
}  // namespace trireme
