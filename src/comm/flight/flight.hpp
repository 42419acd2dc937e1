#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/calls/exchange.hpp"
#include "comm/flight/flight_recorder.hpp"

namespace trireme::comm {

// The recorders of all ranks of this process, by rank; null if neither `directory` nor TRIREME_FLIGHT_DIR names a folder.
std::vector<std::shared_ptr<FlightRecorder>> open_flights(const std::string& directory, int ranks);

// The recorder of this process's rank; null as above. The folder of the lowest rank that has one counts for all, and if one
// rank can't write, all throw its error. Collective over the ranks of the exchange.
std::shared_ptr<FlightRecorder> open_flight(const std::string& directory, int rank, int ranks, const Exchange& exchange);

}  // namespace trireme::comm
