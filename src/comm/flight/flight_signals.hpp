#pragma once

#include <cstdint>

#include "comm/flight/flight_format.hpp"
#include "trireme/core/export.hpp"

namespace trireme::comm {

// While a header is watched, a signal that ends this process is noted in it; then the signal's previous handler runs.
void watch_signals(FlightHeader* header);
void unwatch_signals(FlightHeader* header);

// A number that is the same for processes that see the same process numbers, until the next boot.
TRIREME_EXPORT std::uint64_t this_machine();

}  // namespace trireme::comm
