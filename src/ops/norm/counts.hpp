#pragma once

namespace trireme::ops {

// Where dy of a batch norm counts. With ReLU it counts where the result was above 0: where_y takes the result from y, where_x
// computes it again from x.
enum class Counts { everywhere, where_y, where_x };

}  // namespace trireme::ops
