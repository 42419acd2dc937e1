// A plugin that a program loads: it trains with its own version of Trireme.

#include <exception>
#include <string>
#include <trireme/trireme.hpp>

using namespace trireme;

namespace {

struct Net : nn::Module<Float32> {
  using Module::Module;
  Value forward(const Value& x) const { return output.forward(tanh(hidden.forward(x))); }
  Linear hidden{*this, "hidden", {.in = 4, .out = 8}}, output{*this, "output", {.in = 8, .out = 1}};
};

double loss_after(int steps) {
  Net net;
  net.initialize();
  optim::AdamW optimizer(net, {.learning_rate = 0.05});
  const auto x = Tensor<float>::from({2, 4}, {1, 2, 3, 4, -4, -3, -2, -1});
  const auto target = Tensor<float>::from({2, 1}, {1, -1});
  double last = 0;
  launch(BackendKind::thread, {}, [&](const Group& world) {
    parallel::DataParallel replicas(net, ProcessMesh(world));
    for (int number = 0; number < steps; ++number) {
      parallel::Step step = replicas.begin(number);
      step.backward(0, [&] { return mse_loss(net.forward(Variable<float>(x)), target); });
      step.update(optimizer);
      last = step.finish().loss();
    }
    return 0;
  });
  return last;
}

}  // namespace

#define SHOWN extern "C" __attribute__((visibility("default")))

SHOWN int headers_minor() { return TRIREME_VERSION_MINOR; }
SHOWN const char* library_version() { return version().data(); }
SHOWN double trained_loss() { return loss_after(20); }

// Catches an error of the library by the type of this plugin's headers.
SHOWN bool error_is_caught() {
  try {
    Tensor<float>::from({2, 2}, {1, 2, 3});
  } catch (const Error& error) {
    return error.code() == ErrorCode::invalid_argument;
  } catch (const std::exception&) {
  }
  return false;
}
