#pragma once

#include <string>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The array of a file of numpy.save, in the order of its dims, whatever the order of its bytes:
//
//   const auto series = data::read_npy<float>("series.npy");      // float64 too, rounded to float
//   const auto labels = data::read_npy<std::int32_t>("labels.npy");  // int64 too, where int32 holds all of them
//   const auto images = data::read_npy<float>("mnist.npz", "images");  // of numpy.savez, by its name
//
// T: float or double, of numbers or bools of any kind; std::int32_t or std::int64_t, of whole numbers or bools; bool, of bools.
//
// Throws Error{corrupt_file} with the path for a file that is no such array or is cut, for an array of numpy.savez_compressed,
// for elements that T does not take, as texts, dates, complex numbers or objects of Python, for a number that T does not hold,
// and for more dims than a Shape has.
template <typename T>
TRIREME_EXPORT Tensor<T> read_npy(const Location& path, const std::string& array = {});

}  // namespace data
}  // namespace trireme
