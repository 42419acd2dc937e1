#pragma once

#include <memory>
#include <vector>

#include "comm/flight_recorder.hpp"
#include "comm/shared_segment.hpp"
#include "trireme/comm/launch.hpp"

namespace trireme::comm {

// The recorders of all ranks of this process, by rank; null where the options and TRIREME_FLIGHT_DIR name no folder.
std::vector<std::shared_ptr<FlightRecorder>> open_flights(const LaunchOptions& options, int ranks);

// The recorder of one rank of many processes, null as above. Collective over the ranks of the exchange: the folder that the
// lowest rank was given counts for all, and where one rank can't write, all throw its error.
std::shared_ptr<FlightRecorder> open_flight(const LaunchOptions& options, int rank, int ranks, const Exchange& exchange);

}  // namespace trireme::comm
