#pragma once

#include <string_view>

#include "trainer/small_run.hpp"
#include "trireme/core/log.hpp"

// Runs that are stopped, and started again from their checkpoints.
namespace trireme::test {

inline const Amount never = Steps{1'000'000};

struct Silence {
  Silence() {
    set_log_sink([](Severity, std::string_view) {});
  }
  ~Silence() { set_log_sink({}); }
};

inline trainer::Options options_in(const RunFolder& folder, std::int64_t micro_batch_size,
                                   const parallel::GradientSum& sum = {}) {
  return {.until = Steps{30},
          .batch_size = 12,
          .micro_batch_size = micro_batch_size,
          .checkpoints = {.directory = folder.path, .chunk_bytes = 1024},
          .checkpoint_every = never,
          .parallel = {.sum = sum}};
}

}  // namespace trireme::test
