// Your own images: a convolutional network on folders of PNG or JPEG files, one folder for each class.
// Run 03_images --images shapes, with files such as shapes/training/circle/1.png and shapes/test/square/7.png.
#include <trireme/trireme.hpp>
using namespace trireme;

struct Net : nn::Module<Float32> {
  Net(const ModelContext& context, int classes)
      : Module(context), output(*this, "output", {.in = 16 * 8 * 8, .out = classes}) {}
  Value forward(const data::ImageBatch& batch) const {
    const Value half = max_pool2d(relu(first.forward(batch.images)), {.kernel = 2});  // [batch, 16, 16, 8]
    const Value quarter = max_pool2d(relu(second.forward(half)), {.kernel = 2});      // [batch, 8, 8, 16]
    return output.forward(flatten(quarter));
  }

  Conv2d first{*this, "first", {.in = 3, .out = 8, .kernel = 3, .padding = 1}};
  Conv2d second{*this, "second", {.in = 8, .out = 16, .kernel = 3, .padding = 1}};
  Linear output;
};

void train(trainer::Run& run, const std::string& images) {
  const auto [training, classes] = data::read_image_folder(images + "/training", {.height = 32, .width = 32});
  const auto [test, same] = data::read_image_folder(images + "/test", {.height = 32, .width = 32, .classes = classes});
  const data::Normalization normalization = data::normalization_of(training);
  Net net(run.context(), static_cast<int>(classes.size()));
  optim::AdamW optimizer(net, {.learning_rate = 0.005});
  run.add(net, optimizer);
  const data::ImageLoader batches(training, {.batch = run.batch(), .normalization = normalization});
  for (auto& step : run.steps(batches)) {
    for (const auto& batch : step.batches()) {
      step.backward(batch, [&] { return cross_entropy(net.forward(batch), batch.labels); });
    }
    step.update(optimizer);
    if (!run.due(Epochs{5})) continue;
    const Mean found = run.evaluate(net, data::NormalizedImages(test, normalization),
                                    [](const auto& y, const auto& batch) { return accuracy(y, batch.labels); });
    run.report({{"test_accuracy", found}});
  }
}

int main(int argc, char** argv) {
  std::string images = "images";
  trainer::CommandLine line("Trains a classifier of images");
  line.add("images", images, "folder with the folders training and test, and in these one for each class");
  return trainer::launch(argc, argv, line, {.until = Epochs{20}}, [&](trainer::Run& run) { train(run, images); });
}
