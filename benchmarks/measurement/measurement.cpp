#include "measurement/measurement.hpp"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double peak_rss_bytes(const trireme::Group& world) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  double bytes = static_cast<double>(usage.ru_maxrss) * 1024;
  world.all_reduce(std::span(&bytes, 1), trireme::ReduceOp::max).wait_on_host();
  return bytes;
}

double shared_out_bytes(const trireme::Group& world) {
  std::ifstream file("/proc/self/smaps_rollup");
  double bytes = 0;
  for (std::string word; file >> word;) {
    if (word != "Pss:") continue;
    file >> bytes;
    bytes *= 1024;
    break;
  }
  world.all_reduce(std::span(&bytes, 1), trireme::ReduceOp::sum).wait_on_host();
  return bytes;
}

void tune_malloc() {
  constexpr int never = 1 << 30;
  if (mallopt(M_MMAP_THRESHOLD, never) == 0) mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, never);
}

void write_text(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  std::ofstream file(path);
  file << text;
  if (!file.flush()) {
    throw trireme::Error({.code = trireme::ErrorCode::io, .message = "cannot write the results", .path = path});
  }
}

void write_json(const std::string& path, const nlohmann::ordered_json& figures) { write_text(path, figures.dump(2) + "\n"); }
