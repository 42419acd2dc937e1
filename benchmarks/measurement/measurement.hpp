#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "trireme/comm/base/group.hpp"
#include "trireme/core/stopwatch.hpp"

double median(std::vector<double> values);  // at least one

template <typename Run>
double seconds_of(const Run& run) {
  const trireme::Stopwatch stopwatch;
  run();
  return stopwatch.seconds();
}

// All ranks run this at the same time; returns the slowest rank's seconds.
template <typename Run>
double slowest_seconds(const trireme::Group& world, const Run& run) {
  world.barrier();
  double seconds = seconds_of(run);
  world.all_reduce(std::span(&seconds, 1), trireme::ReduceOp::max).wait_on_host();
  return seconds;
}

double peak_rss_bytes(const trireme::Group& world);  // the largest of all ranks

// The current memory of all ranks together; each counts its part of shared memory (PSS).
double shared_out_bytes(const trireme::Group& world);

// MPI allocates buffers inside its calls: from here on malloc keeps them, instead of asking the system for zeroed pages each
// time.
void tune_malloc();

// Does nothing where `path` is empty. Throws Error{io}.
void write_text(const std::string& path, const std::string& text);
void write_json(const std::string& path, const nlohmann::ordered_json& figures);
