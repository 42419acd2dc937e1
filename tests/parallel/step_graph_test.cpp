#include "trireme/parallel/step_graph.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "trireme/data/loaders/prefetching.hpp"
#include "trireme/data/loaders/window_loader.hpp"
#include "trireme/nn/base/module.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using parallel::Step;
using parallel::StepGraph;

namespace {

struct Net : nn::Module<Float32> {
  Parameter<float> weight = add_parameter("weight", Shape{1}, Initializer::constant(1));
  Buffer<float> mean = add_buffer("mean", {2}, 1);
};

// A training on one rank.
template <typename Body>
void train(const Body& body) {
  testing::run_ranks(1, [&](const Group& world) {
    Net net;
    net.initialize();
    parallel::DataParallel replicas(net, ProcessMesh(world));
    optim::Sgd<Float32> optimizer(net, {.learning_rate = 0.5});
    body(net, replicas, optimizer);
  });
}

}  // namespace

TEST_CASE("on the CPU a step graph calls its function with the step's place and inputs") {
  train([](Net& net, auto& replicas, auto& optimizer) {
    std::vector<std::int64_t> numbers;
    StepGraph<Cpu, std::int32_t, float> graph(
        replicas, [&](Step& step, const auto& place, const auto& tokens, const auto& images) {
          CHECK(step.number() == place.number);
          CHECK(place.first_sample == 8 * place.number);
          numbers.push_back(place.number);
          step.backward(place.first_sample, [&] {
            const float factor = static_cast<float>(tokens.data()[0]) + images.data()[2];
            return Loss<float>{.sum = scale(net.weight.variable(), factor), .target_weight = 2, .nominal_targets = 2};
          });
          step.update(optimizer);
        });
    CHECK_FALSE(graph.newest_result().has_value());
    CHECK_THROWS_WITH(graph.last_result(), "last_result() before the first step");
    double weight = 1;
    double rate = 0.5;
    for (const std::int64_t number : {4, 5, 6}) {
      const bool gives_rate = number != 5;
      if (gives_rate) rate = 0.25 * static_cast<double>(number);
      graph.run({.number = number,
                 .first_sample = 8 * number,
                 .learning_rate = gives_rate ? std::optional<double>(rate) : std::nullopt},
                Tensor<std::int32_t>::full({3}, 1), Tensor<float>::full({3}, static_cast<float>(number)));
      const double gradient = static_cast<double>(number + 1) / 2;
      REQUIRE(graph.newest_result().has_value());
      CHECK(graph.newest_result()->number == number);
      CHECK(graph.last_result().loss == weight * gradient);
      CHECK(graph.last_result().gradient_norm == gradient);
      CHECK(optimizer.learning_rate() == rate);
      weight -= rate * gradient;
      CHECK(static_cast<double>(net.weight.value().item()) == weight);
    }
    CHECK(numbers == std::vector<std::int64_t>{4, 5, 6});
    CHECK_FALSE(graph.is_recorded());
  });
}

TEST_CASE("DataParallel's step keeps the buffers before it, in a step graph too") {
  train([](Net& net, auto& replicas, auto& optimizer) {
    BufferPlane& buffers = net.store().buffers();
    const auto value = [&] { return buffers.read_values<float>(0).data()[1]; };
    StepGraph<Cpu> graph(replicas, [&](Step& step, const auto&) {
      CHECK(buffers.are_kept());
      buffers.write_values(0, Tensor<float>::full({2}, 5));
      const bool no = false;
      buffers.restore_if(&no);
      CHECK(value() == 5);
      const bool yes = true;
      buffers.restore_if(&yes);
      CHECK(value() == 1);
      step.backward(0, [&] { return scale(net.weight.variable(), 0.0F); });
      buffers.write_values(0, Tensor<float>::full({2}, 6));
      step.update(optimizer);
    });
    graph.run({});
    CHECK(graph.last_result().loss == 0);
    CHECK_FALSE(buffers.are_kept());
    buffers.restore();
    CHECK(value() == 6);
  });
}

TEST_CASE("a step graph takes batches that grow and are read ahead") {
  const auto losses_of = [](const auto& loader, bool by_graph) {
    std::vector<double> losses;
    train([&](Net& net, auto& replicas, auto& optimizer) {
      const auto backward = [&](Step& step, std::int64_t first_sample, const Tensor<std::int32_t>& tokens) {
        step.backward(first_sample, [&] {
          float sum = 0;
          for (const std::int32_t token : tokens.span()) sum += static_cast<float>(token);
          return Loss<float>{.sum = scale(net.weight.variable(), sum / 1024),
                             .target_weight = static_cast<double>(tokens.numel()),
                             .nominal_targets = tokens.numel()};
        });
        step.update(optimizer);
      };
      StepGraph<Cpu, std::int32_t> graph(
          replicas, [&](Step& step, const auto& place, const auto& tokens) { backward(step, place.first_sample, tokens); });
      for (std::int64_t number = 0; number < 6; ++number) {
        const data::TokenBatch batch = loader.load(number);
        CHECK(batch.rows() == (number < 2 ? 2 : number < 4 ? 4 : 8));
        if (by_graph) {
          graph.run({.number = number, .first_sample = batch.first_sample}, batch.tokens);
          losses.push_back(graph.last_result().loss);
        } else {
          Step step = replicas.begin(number);
          backward(step, batch.first_sample, batch.tokens);
          losses.push_back(step.finish().loss());
        }
      }
    });
    return losses;
  };
  std::string text;
  for (int i = 0; i < 500; ++i) text += static_cast<char>(i * i % 90);
  const data::WindowLoader loader(data::TokenDataset::from_bytes(text),
                                  {.batch = {.batch_size = 2, .batch_size_from_step = {{2, 4}, {4, 8}}}, .length = 5});
  const std::vector<double> losses = losses_of(loader, false);
  CHECK(losses_of(data::Prefetching(loader, {.threads = 2, .batches = 3}), true) == losses);
  CHECK(losses.front() != losses.back());
}

TEST_CASE("a step graph's first steps are eager") {
  train([](Net&, auto& replicas, auto&) {
    CHECK_THROWS_WITH(StepGraph<Cpu>(replicas, {}, {.eager_steps = 0}), "a step is recorded after 1 or more eager ones, not 0");
  });
}

TEST_CASE("the function of a step graph ends with the update of one optimizer, whose learning rate it leaves alone") {
  train([](Net& net, auto& replicas, auto& optimizer) {
    optim::Sgd<Float32> other(net);
    std::function<void(Step&)> end;
    StepGraph<Cpu> graph(replicas, [&](Step& step, const auto& place) {
      step.backward(place.first_sample, [&] { return scale(net.weight.variable(), 1.0F); });
      end(step);
    });
    end = [](Step&) {};
    CHECK_THROWS_WITH(graph.run({}), ContainsSubstring("ends without update()"));
    end = [&](Step& step) { step.update(optimizer, {.learning_rate = 0.1}); };
    CHECK_THROWS_WITH(graph.run({}), ContainsSubstring("give it to run()"));
    CHECK(net.weight.value().item() == 1);
    end = [&](Step& step) { step.update(optimizer); };
    graph.run({});
    CHECK(net.weight.value().item() == 0.5F);
    end = [&](Step& step) { step.update(other); };
    CHECK_THROWS_WITH(graph.run({.number = 1}), ContainsSubstring("updated by one optimizer"));
    CHECK(net.weight.value().item() == 0.5F);
  });
}
