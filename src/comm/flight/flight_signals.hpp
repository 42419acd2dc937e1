#pragma once

#include <cstdint>
#include <optional>

#include "comm/flight/flight_format.hpp"
#include "trireme/core/export.hpp"

namespace trireme::comm {

// While a header is watched, a signal that ends this process is noted in it; then whatever handled the signal before does.
void watch_signals(FlightHeader* header);
void unwatch_signals(FlightHeader* header);

struct ProcessStatus {
  char state = '?';         // as in /proc: R runs, S and D sleep, T is stopped, Z is a zombie
  std::uint64_t start = 0;  // ticks after the boot
};

// Of a process of this machine, or of one of its threads; nothing when there is none.
TRIREME_EXPORT std::optional<ProcessStatus> status_of(std::int32_t process, std::int32_t thread);

TRIREME_EXPORT std::uint64_t
this_machine();  // the same where the same process numbers mean the same processes, until the next boot

}  // namespace trireme::comm
