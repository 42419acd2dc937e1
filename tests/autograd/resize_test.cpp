#include "trireme/autograd/operations/resize.hpp"

#include "gradient_check.hpp"

using namespace trireme;
using namespace trireme::tests;
using testing::check_gradients;

TEST_CASE("gradients of resized images") {
  for (const InterpolateOptions& options : {InterpolateOptions{.size = {5, 3}},
                                            {.scale = {0.6, 2.3}},
                                            {.size = {7, 2}, .mode = InterpolateMode::bilinear},
                                            {.scale = {2, 1.3}, .mode = InterpolateMode::bilinear},
                                            {.scale = 0.5, .mode = InterpolateMode::bilinear},
                                            {.size = {7, 1}, .mode = InterpolateMode::bilinear, .align_corners = true}}) {
    CAPTURE(options.size.height, options.scale.height);
    expect_passed(check_gradients([&](const Inputs& in) { return interpolate(in[0], options); }, {random({2, 2, 3, 4}, 1)}));
  }
  CHECK_THROWS_WITH(interpolate(Variable<double>(), {.scale = 2}),
                    ContainsSubstring("interpolate: operand 1 of 1 is undefined"));
}
