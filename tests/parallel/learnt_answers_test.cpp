// Documents with a learnt part, different in each: the losses of transformers, however the documents are divided.

#include <cmath>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "parallel/mesh_layout.hpp"
#include "trireme/data/loaders/document_loader.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/step/step.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using tests::Layout;

namespace {

struct Reference {
  std::filesystem::path model;
  double learning_rate;
  std::int64_t batch;
  std::int64_t length;
  data::Documents documents;
  std::vector<double> losses;
};

Reference reference_of(const tests::Fixture& set) {
  const auto expected = tests::read_json(set.file);
  const SafetensorsFile learnt(set.file.parent_path() / expected.at("samples").at(0).at("file").get<std::string>());
  const auto tokens = learnt.read_values<std::int32_t>("tokens"), targets = learnt.read_values<std::int32_t>("targets");
  const auto lengths = learnt.read_values<std::int32_t>("lengths");
  const auto row = static_cast<std::size_t>(learnt.at("tokens").shape.back());
  Reference reference{.model = set.file.parent_path().parent_path() / expected.at("model").get<std::string>(),
                      .learning_rate = expected.at("learning_rate"),
                      .batch = expected.at("batch"),
                      .length = static_cast<std::int64_t>(row),
                      .documents = {},
                      .losses = learnt.read_values<double>("sgd_losses")};
  for (std::size_t at = 0; at < lengths.size(); ++at) {
    const auto count = static_cast<std::size_t>(lengths[at]);
    reference.documents.add(
        {.tokens = std::span(tokens).subspan(at * row, count), .targets = std::span(targets).subspan(at * row, count)});
  }
  return reference;
}

void train(const Group& world, const Layout& layout, const Reference& reference) {
  const ProcessMesh mesh = layout.mesh(world);
  models::Llama<Float32> model(models::llama_options(reference.model), layout.context(mesh));
  models::load_pretrained(model, reference.model);
  parallel::DataParallel replicas(model, mesh, {.sharding = layout.sharding});
  optim::Sgd optimizer(model, {.learning_rate = reference.learning_rate});
  const std::int64_t share = reference.batch / mesh.batch().size();
  const data::DocumentLoader loader(data::DocumentRows(reference.documents, {.length = reference.length}),
                                    {.batch = {.batch_size = reference.batch,
                                               .micro_batch_size = share / layout.micro_batches,
                                               .index = mesh.batch().rank(),
                                               .count = mesh.batch().size()},
                                     .order = data::Order::sequential});
  for (std::int64_t number = 0; number < std::ssize(reference.losses); ++number) {
    std::vector<data::TokenBatch> batches;
    for (std::int64_t micro = 0; micro < loader.num_micro_batches(); ++micro) batches.push_back(loader.load(number, micro));
    parallel::Step step = replicas.begin(number, layout.micro_batches);
    step.backward(model, batches);
    step.update(optimizer);
    const double loss = step.finish().loss(), wanted = reference.losses[static_cast<std::size_t>(number)];
    require(std::abs(loss - wanted) < 1e-5 * wanted, "step {}: a loss of {}, not {}", number, loss, wanted);
  }
}

}  // namespace

TEST_CASE("answers are learnt on every mesh as by transformers") {
  for (const tests::Fixture& set : tests::fixtures_of_kind("conversations")) {
    const Reference reference = reference_of(set);
    std::vector<Layout> layouts = tests::layouts;
    layouts.push_back({.data = 3});
    layouts.push_back({.data = 3, .micro_batches = 2});
    layouts.push_back({.micro_batches = 6});
    int trained = 0;
    for (const Layout& layout : layouts) {
      INFO(layout.str());
      if (reference.batch % (layout.data * layout.micro_batches) != 0) continue;
      ++trained;
      CHECK_NOTHROW(testing::run_ranks(layout.ranks(), [&](const Group& world) { train(world, layout, reference); }));
    }
    CHECK(trained >= 6);
  }
}
