#include "gradient_sets.hpp"

#include <algorithm>
#include <array>

namespace {

using Gradients = std::vector<GradientSize>;

// A weight is used at `positions` places of a sample, and its backward is two products.
void add(Gradients& gradients, const trireme::Shape& shape, double positions) {
  gradients.push_back({shape, 2.0 * static_cast<double>(shape.numel()) * positions});
}

Gradients gpt(int layers, std::int64_t width, std::int64_t vocabulary, std::int64_t block) {
  Gradients forward;
  const auto positions = static_cast<double>(block);
  add(forward, {vocabulary, width}, positions);  // tied with the output: final at the very end
  add(forward, {block, width}, 0);
  for (int layer = 0; layer < layers; ++layer) {
    for (const trireme::Shape& shape : std::vector<trireme::Shape>{{width},
                                                                   {width},
                                                                   {3 * width, width},
                                                                   {3 * width},
                                                                   {width, width},
                                                                   {width},
                                                                   {width},
                                                                   {width},
                                                                   {4 * width, width},
                                                                   {4 * width},
                                                                   {width, 4 * width},
                                                                   {width}}) {
      add(forward, shape, positions);
    }
  }
  add(forward, {width}, positions);
  add(forward, {width}, positions);
  std::ranges::reverse(forward);
  return forward;
}

class ResNet {
 public:
  explicit ResNet(bool bottleneck) : bottleneck_(bottleneck) {}

  Gradients build(const std::array<int, 4>& blocks) {
    convolution(3, 64, 7, 112);
    std::int64_t channels = 64;
    std::int64_t side = 56;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
      const std::int64_t width = 64 << stage;
      const std::int64_t out = bottleneck_ ? 4 * width : width;
      for (int block = 0; block < blocks[stage]; ++block) {
        if (block == 0 && channels != out) convolution(channels, out, 1, side);
        if (bottleneck_) {
          convolution(channels, width, 1, side);
          convolution(width, width, 3, side);
          convolution(width, out, 1, side);
        } else {
          convolution(channels, width, 3, side);
          convolution(width, out, 3, side);
        }
        channels = out;
      }
      side /= 2;
    }
    add(forward_, {1000, channels}, 1);
    add(forward_, {1000}, 1);
    std::ranges::reverse(forward_);
    return forward_;
  }

 private:
  // With the scale and shift of its batch norm.
  void convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t side) {
    const auto positions = static_cast<double>(side * side);
    add(forward_, {out, in, kernel, kernel}, positions);
    add(forward_, {out}, positions);
    add(forward_, {out}, positions);
  }

  bool bottleneck_;
  Gradients forward_;
};

}  // namespace

std::vector<std::string> gradient_set_names() { return {"gpt", "gpt2", "resnet18", "resnet50"}; }

Gradients gradient_set(const std::string& name) {
  if (name == "gpt2") return gpt(12, 768, 50257, 1024);
  if (name == "resnet18") return ResNet(false).build({2, 2, 2, 2});
  if (name == "resnet50") return ResNet(true).build({3, 4, 6, 3});
  return gpt(6, 384, 256, 256);
}

Gradients uniform_gradients(std::int64_t elements) {
  constexpr std::int64_t count = 64;
  constexpr std::int64_t columns = 256;
  Gradients gradients;
  for (std::int64_t index = 0; index < count; ++index) {
    add(gradients, {(elements + count * columns - 1) / (count * columns), columns}, 1);
  }
  return gradients;
}
