#pragma once

#include <concepts>
#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// What a loader has done so far on this rank. A field that a loader does not know stays 0.
struct LoaderReport {
  // Of Prefetching.
  std::int64_t batches = 0;        // number of batches handed out
  std::int64_t not_ahead = 0;      // of these, batches that no thread had begun: the first, and those after a jump
  double loading_seconds = 0;      // of all threads
  double waiting_seconds = 0;      // of the caller of load()
  std::int64_t most_bytes = 0;     // of batches that were ready at the same time
  std::int64_t ready_batches = 0;  // when the last batch was asked for, with this one
  std::int64_t ready_bytes = 0;

  // Of ImageLoader, summed over its threads.
  double reading_seconds = 0;     // fetching the bytes of images that are decoded; pages of local archives count as decoding
  double decoding_seconds = 0;    // decoding and resizing
  double augmenting_seconds = 0;  // random changes, conversion to float, normalizing

  std::int64_t num_bad_samples = 0;  // different ones whose places others have taken, see BadSampleOptions
};

// A loader with a function report(). A run writes what it tells to the metrics.
template <typename L>
concept ReportingLoader = requires(const L& loader) {
  { loader.report() } -> std::same_as<LoaderReport>;
};

}  // namespace data
}  // namespace trireme
