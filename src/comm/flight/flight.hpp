#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/calls/exchange.hpp"
#include "comm/flight/flight_recorder.hpp"

namespace trireme::comm {

// The recorders of all ranks of this process, by rank; null where neither `directory` nor TRIREME_FLIGHT_DIR names a folder.
std::vector<std::shared_ptr<FlightRecorder>> open_flights(const std::string& directory, int ranks);

// The recorder of one rank of many processes, null as above. Collective over the ranks of the exchange: the folder that the
// lowest rank was given counts for all, and where one rank can't write, all throw its error.
std::shared_ptr<FlightRecorder> open_flight(const std::string& directory, int rank, int ranks, const Exchange& exchange);

}  // namespace trireme::comm
