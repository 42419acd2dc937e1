#include <limits>

#include "ops/cuda_compare.hpp"
#include "trireme/ops/elementwise/rotary.hpp"

// The rotary positions of a GPU against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

TEMPLATE_TEST_CASE("rotary positions on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  struct Case {
    RotaryOptions options;
    Shape shape;
  };
  for (const auto& [options, shape] :
       {Case{{.size = 64, .heads = 24, .first_position = 3}, {2, 100, 36 * 64}}, Case{{.size = 6, .heads = 3}, {3, 7, 21}},
        Case{{.size = 128, .heads = 1}, {1, 1, 128}},
        Case{{.size = 64, .heads = 2, .scaling = {.kind = RotaryScalingKind::llama3, .factor = 8, .trained_positions = 64}},
             {2, 90, 192}},
        Case{{.size = 32,
        .heads = 3,
        .scaling = {.kind = RotaryScalingKind::yarn, .factor = 4, .trained_positions = 32, .attention_factor = 1.1}},
             {1, 50, 96}}}) {
    CAPTURE(options.size, options.heads);
    const auto x = random_tensor<T>(shape, 1);
    Tensor<T> y(shape);
    Tensor<T, Cuda> y_there(shape);
    // An angle is a position times a power, which differs by a rounding.
    const auto last = static_cast<double>(options.first_position + shape[1]);
    const double slack = 2 + 2 * last * std::numeric_limits<double>::epsilon() / bound<T>();
    rotary(x, options, y);
    rotary(x.template to<Cuda>(), options, y_there);
    require_same(y_there, y, slack);
    rotary_backward(x, options, y);
    y_there = x.template to<Cuda>();
    rotary_backward(y_there, options, y_there);
    require_same(y_there, y, slack);

    Tensor<std::int32_t> starts({shape[0], shape[1]});
    for (std::int64_t i = 0; i < starts.numel(); ++i) starts.data()[i] = static_cast<std::int32_t>(i % shape[1] / 6 * 6);
    rotary(x, options, y, starts);
    y_there = x.template to<Cuda>();
    rotary(y_there, options, y_there, starts.to<Cuda>());
    require_same(y_there, y, slack);
  }
}
