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

// Rows of an array.
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
// Elements are converted to T as by read_npy(), with the same T. Local files are mapped; from other files a row is read with
// one request. Throws the errors of read_npy(); an error about an element is thrown when its row is read. Throws
// Error{corrupt_file} for an array in column-major order (fortran_order), because its rows are not contiguous.
template <typename T>
class TRIREME_EXPORT NpyRows {
 public:
  explicit NpyRows(const Location& path, const std::string& array = {});

  std::int64_t size() const;
  const Shape& row_shape() const;
  Tensor<T> at(std::int64_t index) const;
  ArrayBatch<T> collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const;

  // A text that identifies the content: a digest of all bytes of a local file, cached for large files; for other files, the
  // size and the version that their server states (content_or_version_at()).
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
