#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/core/host_device.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct LossScaleRules {
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

// The loss scale of float16 and the counters that its updates need, as in torch.cuda.amp.GradScaler.
struct LossScale {
  double scale = 1;                 // a value of type float
  std::int64_t growth_tracker = 0;  // updates without overflow after the last change of the scale
  std::int64_t skipped_steps = 0;
  std::int64_t overflows = 0;  // after the last update()

  TRIREME_HOST_DEVICE void update(const LossScaleRules& rules) {
    if (overflows > 0) {
      scale = static_cast<double>(static_cast<float>(scale * rules.backoff_factor));
      growth_tracker = 0;
    } else if (++growth_tracker == rules.growth_interval) {
      const auto grown = static_cast<double>(static_cast<float>(scale * rules.growth_factor));
      if (grown - grown == 0) scale = grown;  // finite
      growth_tracker = 0;
    }
    overflows = 0;
  }
};

}  // namespace ops
}  // namespace trireme
