#pragma once

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Reads MNIST (LeCun, Bottou, Bengio, Haffner 1998) and datasets in its format: a file of grey images (idx3) and a file of
// labels 0 to 9 (idx1). The files may be compressed by gzip. Throws Error{corrupt_file} for files that break the format or do
// not belong together, and Error{not_available} for a compressed file in a build without zlib.
ImageDataset read_mnist(const Location& images, const Location& labels);

}  // namespace data
}  // namespace trireme
