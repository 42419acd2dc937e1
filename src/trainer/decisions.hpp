#pragma once

#include <string>
#include <vector>

#include "trireme/parallel/data_parallel.hpp"

namespace trireme::trainer {

// What a reduction finds out in its first steps, in words: its buckets, whether it compresses.
class Decisions {
 public:
  std::vector<std::string> take(const parallel::DataParallel& replicas);  // those since the last call

 private:
  bool tuned_ = false;
  bool compressed_ = false;
};

}  // namespace trireme::trainer
