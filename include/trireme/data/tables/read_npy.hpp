#pragma once

#include <string>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Reads an array that numpy.save wrote. The tensor is row-major; C and Fortran order and both byte orders can be read:
//
//   const auto series = data::read_npy<float>("series.npy");      // float64 is rounded to float
//   const auto labels = data::read_npy<std::int32_t>("labels.npy");  // int64 whose values all fit into int32
//   const auto images = data::read_npy<float>("mnist.npz", "images");  // an array of numpy.savez, by its name
//
// T is float or double for arrays of numbers or bools, std::int32_t or std::int64_t for whole numbers or bools, bool for bools.
//
// Throws Error{corrupt_file} with the path for these:
// - a file that is not such an array or is truncated
// - an array of numpy.savez_compressed
// - element types that T can't represent, such as text, dates, complex numbers or Python objects
// - a number out of the range of T
// - an array with more dims than Shape::max_dims
template <typename T>
TRIREME_EXPORT Tensor<T> read_npy(const Location& path, const std::string& array = {});

}  // namespace data
}  // namespace trireme
