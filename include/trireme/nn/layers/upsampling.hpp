#pragma once

#include <cstdint>
#include <string_view>

#include "trireme/autograd/composed/pixel_shuffle.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/resize.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/module.hpp"

// Layers that make images [batch, height, width, channels] larger, without parameters.
namespace trireme TRIREME_EXPORT {
namespace nn {

// Resizes images, as torch.nn.Upsample does: Upsample up{*this, "up", {.scale = 2}}. forward() moves channels before pixels
// and back, which copies input and output.
template <typename P, typename D = Cpu>
class Upsample : public Module<P, D> {
 public:
  Upsample(const Module<P, D>& parent, std::string_view name, const InterpolateOptions& options)
      : Module<P, D>(parent, name), options_(options) {}

  template <typename T>
  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return permute(interpolate(permute(x, {0, 3, 1, 2}), options_), {0, 2, 3, 1}); });
  }

 private:
  InterpolateOptions options_;
};

// Computes pixel_shuffle(x, factor), as torch.nn.PixelShuffle does.
template <typename P, typename D = Cpu>
class PixelShuffle : public Module<P, D> {
 public:
  PixelShuffle(const Module<P, D>& parent, std::string_view name, std::int64_t factor)
      : Module<P, D>(parent, name), factor_(factor) {}

  template <typename T>
  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return pixel_shuffle(x, factor_); });
  }

 private:
  std::int64_t factor_;
};

}  // namespace nn
}  // namespace trireme
