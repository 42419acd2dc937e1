// A variational autoencoder of images (Kingma, Welling 2013, arXiv 1312.6114). vae.py is the same in PyTorch.
#include "ports.hpp"
using namespace trireme;

struct Vae : nn::Module<Float32> {
  using Module::Module;
  std::array<Value, 2> encode(const Value& images) const {
    const Value x = silu(encode2.forward(silu(encode1.forward(images))));
    return chunk<2>(moments.forward(flatten(x)), 1);
  }
  Value decode(const Value& z) const {
    const Value x = unflatten(silu(expand.forward(z)), 3, 16);
    return decode2.forward(silu(decode1.forward(x)));
  }
  Value loss(const Tensor<float>& images, const Tensor<float>& noise) const {
    const auto [mean, log_variance] = encode(images);
    const Value logits = decode(mean + noise * exp(0.5 * log_variance));
    const Value reconstruction = bce_with_logits(logits, images).sum;
    const Value divergence = -0.5 * sum(1 + log_variance - square(mean) - exp(log_variance));
    return (reconstruction + divergence) / images.dim(0);
  }

  Conv2d encode1{*this, "encode1", {.in = 1, .out = 8, .kernel = 4, .stride = 2, .padding = 1}};
  Conv2d encode2{*this, "encode2", {.in = 8, .out = 16, .kernel = 4, .stride = 2, .padding = 1}};
  Linear moments{*this, "moments", {.in = 16 * 3 * 3, .out = 2 * 5}};
  Linear expand{*this, "expand", {.in = 5, .out = 16 * 3 * 3}};
  ConvTranspose2d decode1{*this, "decode1", {.in = 16, .out = 8, .kernel = 4, .stride = 2, .padding = 1}};
  ConvTranspose2d decode2{*this, "decode2", {.in = 8, .out = 1, .kernel = 4, .stride = 2, .padding = 1}};
};

ports::Losses ports::vae(const Group& world, const std::string& weights, const Data& data) {
  Vae net;
  nn::load_weights<float>(net, weights);
  optim::Adam optimizer(net, {.learning_rate = 0.01});
  parallel::DataParallel replicas(net, world);
  Losses losses;
  for (int number = 0; number < 20; ++number) {
    parallel::Step step = replicas.begin(number);
    step.backward(number, [&] { return net.loss(data.numbers.at("images"), select(data.numbers.at("noise"), 0, number)); });
    step.update(optimizer);
    losses.push_back(step.finish().loss());
  }
  return losses;
}
