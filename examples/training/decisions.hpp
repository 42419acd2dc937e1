#pragma once

#include <string>
#include <vector>

#include "trireme/parallel/data_parallel.hpp"

// What a reduction finds out in its first steps, in words: its buckets, whether it compresses.
class Decisions {
 public:
  explicit Decisions(const trireme::parallel::DataParallel& data_parallel) : data_parallel_(data_parallel) {}

  std::vector<std::string> take();  // those since the last call

 private:
  const trireme::parallel::DataParallel& data_parallel_;
  bool tuned_ = false;
  bool compressed_ = false;
};
