// Mixtures of experts that are divided over an expert axis: the same training as on one rank.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "temporary_folder.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/files/digest.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/optim/named.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/parallel/pipeline/pipeline_schedule.hpp"
#include "trireme/parallel/step/step.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using trireme::test::expect;

namespace {

constexpr std::int64_t samples = 8, length = 6, vocabulary = 19;
constexpr std::int64_t uneven_samples = 7;  // of each micro-batch, where the ranks do not divide it
constexpr int steps = 5;

struct Layout {
  int data = 1;
  int expert = 1;
  int pipeline = 1;
  int tensor = 1;
  int micro_batches = 1;
  parallel::Sharding sharding = parallel::Sharding::none;
  std::string schedule = {};
  int chunks = 1;
  std::int64_t bucket_bytes = 1 << 20;
  bool uneven = false;  // the first ranks have a sample more

  int ranks() const { return data * expert * pipeline * tensor; }
  std::string str() const {
    return fmt::format("data {} x expert {} x pipeline {} x tensor {}, {} micro-batches, {}, {}{}", data, expert, pipeline,
                       tensor, micro_batches, sharding == parallel::Sharding::none ? "replicated" : "sharded", schedule,
                       uneven ? ", uneven shares" : "");
  }
  ProcessMesh mesh(const Group& world) const {
    return ProcessMesh(world, {.data = data, .pipeline = pipeline, .tensor = tensor, .expert = expert});
  }
  parallel::ParallelOptions options() const {
    return {.sharding = sharding,
            .buckets = {.bytes = bucket_bytes, .first_bytes = bucket_bytes, .slice_bytes = bucket_bytes},
            .schedule = schedule,
            .check_replicas = 2};
  }
};

const std::vector<Layout> layouts{{.micro_batches = 4},
                                  {.expert = 2},
                                  {.expert = 4},
                                  {.expert = 2, .micro_batches = 2},
                                  {.data = 2, .expert = 2},
                                  {.data = 2, .expert = 2, .sharding = parallel::Sharding::optimizer},
                                  {.data = 2, .tensor = 2},
                                  {.expert = 2, .pipeline = 2},
                                  {.expert = 2, .pipeline = 2, .micro_batches = 2, .bucket_bytes = 512},
                                  {.expert = 4, .pipeline = 2, .micro_batches = 2},
                                  {.data = 2, .expert = 2, .pipeline = 2, .micro_batches = 2, .bucket_bytes = 512},
                                  {.data = 2,
                                   .expert = 2,
                                   .pipeline = 2,
                                   .micro_batches = 2,
                                   .sharding = parallel::Sharding::optimizer,
                                   .bucket_bytes = 512}};

models::LlamaOptions model_options(bool tied = true) {
  return {.layers = 2,
          .heads = 2,
          .width = 16,
          .hidden = 12,
          .vocabulary = vocabulary,
          .tied = tied,
          .experts = {.count = 4,
                      .top_k = 2,
                      .renormalise = false,
                      .auxiliary_loss = 0.5,
                      .z_loss = 0.1,
                      .shared_hidden = 8,
                      .shared_gate = true},
          .weight_deviation = 0.2};
}

// Rows of the step that a rank's micro-batch has; every fifth target is ignored in some rows.
data::TokenBatch batch_of(std::int64_t step, std::int64_t first, std::int64_t rows) {
  data::TokenBatch batch{
      .tokens = Tensor<std::int32_t>({rows, length}), .targets = Tensor<std::int32_t>({rows, length}), .first_sample = first};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int64_t number = ((step * samples + first + row) * length + t) * 7919;
      batch.tokens.at(row, t) = static_cast<std::int32_t>(number % vocabulary);
      const bool ignored = (first + row) % 3 == 0 && t % 5 == 0;
      batch.targets.at(row, t) = ignored ? ops::ignored_target : static_cast<std::int32_t>(number / 3 % vocabulary);
    }
  }
  return batch;
}

struct Training {
  Training(const Group& world, const Layout& of, const std::string& optimizer_name,
           const std::vector<optim::ParameterGroup>& groups = {}, bool tied = true)
      : layout(of),
        mesh(layout.mesh(world)),
        model(model_options(tied),
              parallel::model_context(mesh, {.num_chunks = layout.chunks, .batch_size = of.uneven ? uneven_samples : 0})),
        replicas((model.initialize({.seed = 3}), model), mesh, layout.options()),
        optimizer(optim::make_optimizer<Float32, Cpu>(optimizer_name, model, {.learning_rate = 0.02, .groups = groups})) {}

  // Losses and norms of the gradient.
  std::vector<double> train(std::int64_t from, std::int64_t to) {
    std::vector<double> results;
    const int rank = mesh.batch().rank(), ranks = mesh.batch().size();
    const std::int64_t rows = samples / ranks / layout.micro_batches;
    const Range share = share_of(uneven_samples, rank, ranks);
    for (std::int64_t number = from; number < to; ++number) {
      std::vector<data::TokenBatch> batches;
      for (int micro = 0; micro < layout.micro_batches; ++micro) {
        batches.push_back(layout.uneven ? batch_of(number, micro * uneven_samples + share.begin, share.count())
                                        : batch_of(number, (rank * layout.micro_batches + micro) * rows, rows));
      }
      parallel::Step step = replicas.begin(number, layout.micro_batches);
      step.backward(model, batches);
      step.update(*optimizer, {.clip_norm = 0.8});
      results.push_back(step.finish().loss());
      results.push_back(step.finish().gradient_norm);
    }
    return results;
  }

  Layout layout;
  ProcessMesh mesh;
  models::Llama<Float32> model;
  parallel::DataParallel replicas;
  std::unique_ptr<optim::AnyOptimizer> optimizer;
};

std::vector<double> results_of(const Layout& layout, const std::string& optimizer,
                               const std::vector<optim::ParameterGroup>& groups = {}, bool tied = true) {
  std::vector<double> results;
  testing::run_ranks(layout.ranks(), [&](const Group& world) {
    const std::vector<double> here = Training(world, layout, optimizer, groups, tied).train(0, steps);
    if (world.rank() == 0) results = here;
  });
  return results;
}

void expect_near(const std::vector<double>& results, const std::vector<double>& wanted) {
  REQUIRE(results.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO("step " << i / 2 << (i % 2 == 0 ? ", loss " : ", norm ") << results[i] << ", not " << wanted[i]);
    CHECK(std::abs(results[i] - wanted[i]) < 2e-5 * wanted[i]);
  }
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("losses and norms of a mixture of experts do not depend on the layout") {
  for (const char* optimizer : {"sgd", "adamw", "lamb"}) {
    const std::vector<double> wanted = results_of({}, optimizer);
    for (const Layout& layout : layouts) {
      INFO(optimizer << ", " << layout.str());
      expect_near(results_of(layout, optimizer), wanted);
    }
  }
}

TEST_CASE("ranks of which some have a sample more train a mixture of experts as one rank does") {
  for (const int micro_batches : {1, 2}) {
    const std::vector<double> wanted = results_of({.micro_batches = micro_batches, .uneven = true}, "adamw");
    for (Layout layout : layouts) {
      if (layout.micro_batches > 2) continue;
      layout.micro_batches = micro_batches;
      layout.uneven = true;
      INFO(layout.str());
      expect_near(results_of(layout, "adamw"), wanted);
    }
  }
}

TEST_CASE("an expert axis goes with every schedule of a pipeline") {
  const std::vector<double> wanted = results_of({}, "adamw");
  for (const std::string& schedule : parallel::pipeline_schedule_names()) {
    const Layout layout{.expert = 2,
                        .pipeline = 2,
                        .micro_batches = 4,
                        .schedule = schedule,
                        .chunks = schedule == "interleaved" ? 2 : 1,
                        .bucket_bytes = 512};
    INFO(layout.str());
    expect_near(results_of(layout, "adamw"), wanted);
  }
}

TEST_CASE("norms of groups, and a head of its own, are the same in stages of an expert axis") {
  const std::vector<optim::ParameterGroup> groups{{.pattern = "*experts*", .clip_norm = 0.1},
                                                  {.pattern = "*embed*", .clip_norm = 0.05}};
  for (const bool tied : {true, false}) {
    const std::vector<double> wanted = results_of({}, "sgd", groups, tied);
    for (const auto sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) {
      const Layout layout{.data = 2, .expert = 2, .pipeline = 2, .micro_batches = 2, .sharding = sharding};
      INFO(layout.str() << (tied ? ", tied" : ""));
      expect_near(results_of(layout, "sgd", groups, tied), wanted);
    }
  }
}

TEST_CASE("stages and ranks of an expert axis keep the same bits of what all of them hold") {
  for (const auto sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) {
    testing::run_ranks(8, [&](const Group& world) {
      Training training(world, {.data = 2, .expert = 2, .pipeline = 2, .micro_batches = 2, .sharding = sharding}, "adamw");
      training.train(0, steps);
      FlatStore& store = training.model.store();
      const auto digest_of = [&](int index) {
        const ParameterInfo& parameter = store.parameter(index);
        const Tensor<float> values = store.read_values<float>(index);
        return fmt::format("{:x}", digest(parameter.name, std::span<const float>(values.span())));
      };
      const auto embedding = world.gather_texts(digest_of(store.find("model.embed_tokens.weight")), "embedding");
      require(std::ranges::count(embedding, embedding.front()) == 8, "copies of the embedding differ");
      for (int index = 0; index < store.num_parameters(); ++index) {
        const auto all = training.mesh.batch().gather_texts(digest_of(index), "values");
        const bool split = store.parameter(index).placement.split();
        const auto wanted = split ? training.mesh.data().size() : training.mesh.batch().size();
        require(std::ranges::count(all, all.front()) == wanted, "copies of {} differ", store.parameter(index).name);
      }
    });
  }
}

TEST_CASE("a replica that changes in a mesh of experts and stages is named") {
  CHECK_THROWS_WITH(
      testing::run_ranks(8,
                         [](const Group& world) {
                           Training training(world, {.data = 2, .expert = 2, .pipeline = 2}, "sgd");
                           FlatStore& store = training.model.store();
                           // Of data 1, expert 1, stage 1.
                           if (world.rank() == 7) store.values<float>(store.find("model.norm.weight")).data()[1] += 1;
                           training.train(0, 4);
                         }),
      ContainsSubstring("element 1 of model.norm.weight") && ContainsSubstring("on rank 7") && ContainsSubstring("on rank 3"));
}

TEST_CASE("a rank that changes what all ranks of an expert axis hold is found") {
  for (const Layout& layout : {Layout{.expert = 2}, Layout{.data = 2, .expert = 2, .pipeline = 2}}) {
    for (const std::string name : {"model.norm.weight", "model.layers.0.mlp.gate.weight"}) {
      INFO(layout.str() << ", " << name);
      CHECK_THROWS_WITH(testing::run_ranks(layout.ranks(),
                                           [&](const Group& world) {
                                             Training training(world, layout, "sgd");
                                             FlatStore& store = training.model.store();
                                             const int index = store.find(name);
                                             const bool changes = training.mesh.expert().rank() == 1 && index >= 0;
                                             if (changes) store.values<float>(index).data()[1] += 1;
                                             training.train(0, 4);
                                           }),
                        ContainsSubstring("the ranks of the expert axis no longer hold the same values of " + name));
    }
  }
}

TEST_CASE("ranks of an expert axis reduce in one order, whichever their gradients are ready in") {
  struct Square : nn::Module<Float32> {
    using Module::Module;
    nn::Linear<Float32> one{*this, "one", {.in = 4, .out = 4}};
    nn::Linear<Float32> two{*this, "two", {.in = 4, .out = 4}};
  };
  testing::run_ranks(4, [](const Group& world) {
    const ProcessMesh mesh(world, {.data = 2, .expert = 2});
    Square model(parallel::model_context(mesh));
    model.initialize({.seed = 1});
    parallel::DataParallel replicas(model, mesh,
                                    {.sharding = parallel::Sharding::none, .buckets = {.bytes = 1, .first_bytes = 1}});
    optim::Sgd<Float32> optimizer(model, {.learning_rate = 0.1});
    const bool swapped = mesh.expert().rank() == 1;
    for (std::int64_t number = 0; number < 4; ++number) {
      parallel::Step step = replicas.begin(number);
      step.backward(mesh.batch().rank(), [&] {
        const Variable<float> x(Tensor<float>::full({2, 4}, 1));
        const auto& [first, second] = swapped ? std::tie(model.two, model.one) : std::tie(model.one, model.two);
        return mse_loss(second.forward(first.forward(x)), Tensor<float>::zeros({2, 4}));
      });
      step.update(optimizer);
    }
  });
}

TEST_CASE("ranks of an expert axis choose the next token from the same logits") {
  testing::run_ranks(4, [](const Group& world) {
    const ProcessMesh mesh(world, {.pipeline = 2, .expert = 2});
    models::Llama<Float32> model(model_options(), parallel::model_context(mesh));
    model.initialize({.seed = 3});
    FlatStore& store = model.store();
    const int norm = store.find("model.norm.weight");
    if (norm >= 0 && mesh.expert().rank() == 1) store.values<float>(norm).data()[1] += 1e-3F;
    const auto prompt = Tensor<std::int32_t>::from({1, 3}, std::vector<std::int32_t>{1, 2, 3});
    const Tensor<float> logits = model.next_token_logits(prompt);
    const auto all = world.gather_texts(fmt::format("{:x}", digest("logits", std::span<const float>(logits.span()))), "logits");
    require(std::ranges::count(all, all.front()) == 4, "logits differ");
  });
}

TEST_CASE("a checkpoint of a mixture goes from any layout to any other, and its folder has the same bytes") {
  const std::vector<double> wanted = results_of({}, "adamw");
  const std::vector<Layout> all{
      {},
      {.expert = 2},
      {.data = 2, .expert = 2, .sharding = parallel::Sharding::optimizer},
      {.data = 2, .tensor = 2},
      {.expert = 2, .pipeline = 2, .micro_batches = 2},
      {.data = 2, .expert = 2, .pipeline = 2, .micro_batches = 2, .sharding = parallel::Sharding::optimizer}};
  for (const Layout& before : all) {
    const tests::TemporaryFolder folder;
    const auto state_of = [](Training& training) {
      State state;
      training.replicas.add_to(state);
      training.optimizer->add_to(state, "optimizer.");
      return state;
    };
    std::vector<double> gone_on;  // without a stop
    testing::run_ranks(before.ranks(), [&](const Group& world) {
      Training training(world, before, "adamw");
      training.train(0, 3);
      checkpoint::Checkpoints checkpoints(world, {.directory = (folder.path() / "checkpoints").string()});
      State state = state_of(training);
      checkpoints.save(3, state);
      checkpoints.finish();
      if (training.mesh.data().rank() == 0) models::save_pretrained(training.model, folder.path() / "model");
      const std::vector<double> here = training.train(3, steps);
      if (world.rank() == 0) gone_on = here;
    });
    const std::string saved = content(folder.path() / "model" / "model.safetensors");
    for (const Layout& after : all) {
      INFO("from " << before.str() << " to " << after.str());
      std::vector<double> results;
      testing::run_ranks(after.ranks(), [&](const Group& world) {
        Training training(world, after, "adamw");
        checkpoint::Checkpoints checkpoints(world, {.directory = (folder.path() / "checkpoints").string()});
        State state = state_of(training);
        checkpoints.load(3, state);
        if (training.mesh.data().rank() == 0) models::save_pretrained(training.model, folder.path() / "again");
        const std::vector<double> here = training.train(3, steps);
        if (world.rank() == 0) results = here;
      });
      expect_near(results, {wanted.begin() + 6, wanted.end()});
      if (&before == &after) CHECK(results == gone_on);
      CHECK(content(folder.path() / "again" / "model.safetensors") == saved);
    }
  }
}

TEST_CASE("what an expert axis is not combined with is refused") {
  const auto refused = [](int ranks, const auto& work, const std::string& text) {
    CHECK_THROWS_WITH(testing::run_ranks(ranks, work), ContainsSubstring(text));
  };
  refused(
      4, [](const Group& world) { ProcessMesh(world, {.tensor = 2, .expert = 2}); },
      "an expert axis of 2 ranks is not combined with a tensor axis of 2 yet");
  refused(
      6, [](const Group& world) { ProcessMesh(world, {.pipeline = 2, .expert = 2}); },
      "a mesh of expert 2 x pipeline 2 needs a multiple of 4 ranks, there are 6");
  refused(
      3, [](const Group& world) { ProcessMesh(world, {.expert = 2}); }, "needs a multiple of 2 ranks, there are 3");
  refused(
      3, [](const Group& world) { Training(world, {.expert = 3}, "sgd"); }, "3 ranks of an expert axis can't divide 4 experts");
  refused(
      2,
      [](const Group& world) {
        const ProcessMesh mesh(world, {.expert = 2});
        models::Llama<Float32> model(model_options(), parallel::model_context(mesh));
        model.initialize();
        parallel::DataParallel replicas(model, mesh, {.sum = parallel::FixedBits{.micro_batches = 2}});
      },
      "with an expert axis gradients are summed by Plain");
  refused(
      2,
      [](const Group& world) {
        models::Llama<Float32> model(model_options());
        model.initialize();
        parallel::DataParallel replicas(model, ProcessMesh(world, {.expert = 2}));
      },
      "give both the same mesh");
}
