// A U-Net that finds regions of images (Ronneberger et al. 2015, arXiv 1505.04597), with smooth activations, so that rounding
// does not decide a ReLU. unet.py is the same in PyTorch.
#include "ports.hpp"
using namespace trireme;

struct Convolutions : nn::Module<Float32> {
  Convolutions(const Module& parent, std::string_view name, std::int64_t channels, std::int64_t size)
      : Module(parent, name), in(channels), out(size) {}
  Value forward(Value x) const {
    x = silu(norm1.forward(conv1.forward(x)));
    return silu(norm2.forward(conv2.forward(x)));
  }

  std::int64_t in, out;
  Conv2d conv1{*this, "conv1", {.in = in, .out = out, .kernel = 3, .padding = 1, .bias = false}};
  BatchNorm2d norm1{*this, "norm1", {.channels = out}};
  Conv2d conv2{*this, "conv2", {.in = out, .out = out, .kernel = 3, .padding = 1, .bias = false}};
  BatchNorm2d norm2{*this, "norm2", {.channels = out}};
};

struct UNet : nn::Module<Float32> {
  using Module::Module;
  Value forward(const Value& images) const {
    Value fine = down1.forward(images);
    Value coarse = down2.forward(avg_pool2d(fine, {.kernel = 2}));
    const Value middle_of_all = middle.forward(avg_pool2d(coarse, {.kernel = 2}));
    coarse = merge2.forward(cat({up2.forward(middle_of_all), coarse}, -1));
    fine = merge1.forward(cat({up1.forward(coarse), fine}, -1));
    return output.forward(fine);
  }

  Convolutions down1{*this, "down1", 3, 6};
  Convolutions down2{*this, "down2", 6, 12};
  Convolutions middle{*this, "middle", 12, 24};
  ConvTranspose2d up2{*this, "up2", {.in = 24, .out = 12, .kernel = 2, .stride = 2}};
  Convolutions merge2{*this, "merge2", 24, 12};
  ConvTranspose2d up1{*this, "up1", {.in = 12, .out = 6, .kernel = 2, .stride = 2}};
  Convolutions merge1{*this, "merge1", 12, 6};
  Conv2d output{*this, "output", {.in = 6, .out = 1, .kernel = 1}};
};

ports::Losses ports::unet(const Group& world, const std::string& weights, const Data& data) {
  UNet net;
  nn::load_weights<float>(net, weights);
  optim::AdamW optimizer(net, {.learning_rate = 0.003});
  parallel::DataParallel replicas(net, world);
  Losses losses;
  for (int number = 0; number < 20; ++number) {
    parallel::Step step = replicas.begin(number);
    step.backward(number, [&] { return bce_with_logits(net.forward(data.numbers.at("images")), data.numbers.at("regions")); });
    step.update(optimizer);
    losses.push_back(step.finish().loss());
  }
  return losses;
}
