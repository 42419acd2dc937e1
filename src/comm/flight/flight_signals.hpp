#pragma once

#include <cstdint>

#include "comm/flight/flight_format.hpp"
#include "trireme/core/export.hpp"

namespace trireme::comm {

// While a header is watched, a signal that ends this process is noted in it; then whatever handled the signal before does.
void watch_signals(FlightHeader* header);
void unwatch_signals(FlightHeader* header);

// The same where the same process numbers mean the same processes, until the next boot.
TRIREME_EXPORT std::uint64_t this_machine();

}  // namespace trireme::comm
