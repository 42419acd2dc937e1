#pragma once

#include <string>
#include <vector>

#include "trireme/parallel/data_parallel.hpp"

namespace trireme::trainer {

// Lines about what a run decides in its first steps: its buckets, and whether it compresses gradients.
class Decisions {
 public:
  std::vector<std::string> take(const parallel::DataParallel& replicas);  // decisions since the last call

 private:
  bool tuned_ = false;
  bool compressed_ = false;
};

}  // namespace trireme::trainer
