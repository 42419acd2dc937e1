// Documents that are packed into rows train as if each was alone, on all kinds of meshes.

#include <cmath>
#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "parallel/mesh_layout.hpp"
#include "temporary_folder.hpp"
#include "trireme/data/documents/length_batches.hpp"
#include "trireme/data/loaders/document_loader.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/text/mask_tokens.hpp"
#include "trireme/data/text/text_batch.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/models/architectures/gpt_neox.hpp"
#include "trireme/models/architectures/llama.hpp"
#include "trireme/models/architectures/lstm_lm.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/step/step.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trainer/run.hpp"

using namespace trireme;
using tests::Layout;

namespace {

constexpr std::int64_t vocabulary = 19, length = 12;
constexpr int steps = 3;

// 16 documents, which fill 8 rows of 12 tokens except 5 tokens; each fourth has a prompt, whose tokens are no targets.
data::Documents documents() {
  data::Documents documents;
  const std::vector<int> lengths{12, 1, 4, 7, 9, 2, 6, 6, 1, 10, 11, 3, 8, 1, 5, 5};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    std::vector<std::int32_t> tokens, targets;
    for (int j = 0; j < lengths[i]; ++j) {
      tokens.push_back(static_cast<std::int32_t>((static_cast<int>(i) * 31 + j * j * 7 + j) % vocabulary));
    }
    for (int j = 0; j < lengths[i]; ++j) {
      const bool learnt = j + 1 < lengths[i] && (i % 4 != 2 || 2 * j > lengths[i]);
      targets.push_back(learnt ? tokens[static_cast<std::size_t>(j + 1)] : data::no_target);
    }
    documents.add({.tokens = tokens, .targets = targets});
  }
  return documents;
}

data::DocumentRows rows_of(bool packing) { return data::DocumentRows(documents(), {.length = length, .packing = packing}); }

const models::GptOptions gpt{
    .layers = 2, .heads = 2, .width = 16, .block = length, .vocabulary = vocabulary, .weight_deviation = 0.3};
const models::LlamaOptions llama{
    .layers = 2, .heads = 4, .kv_heads = 2, .width = 16, .hidden = 24, .vocabulary = vocabulary, .weight_deviation = 0.3};
const models::GptNeoXOptions neox{
    .layers = 2, .heads = 2, .width = 16, .hidden = 24, .vocabulary = vocabulary, .rotary_share = 0.5, .weight_deviation = 0.3};

models::LlamaOptions windowed() {
  models::LlamaOptions options = llama;
  options.window = 3;
  options.windowed = {true, false};
  return options;
}
models::LlamaOptions with_experts() {
  models::LlamaOptions options = llama;
  options.experts = {.count = 4, .top_k = 2, .auxiliary_loss = 0.5, .z_loss = 0.1};
  return options;
}
models::GptOptions with_attention_dropout() {
  models::GptOptions options = gpt;
  options.attention_dropout = 1e-14;  // takes another way through attention, but drops nothing
  return options;
}

struct Adapted {
  models::LlamaOptions options;
};

template <typename P, typename Options>
auto model_of(const Options& options, const ModelContext& context) {
  if constexpr (std::is_same_v<Options, Adapted>) {
    ModelContext adapted = context;
    adapted.lora = LoraOptions{.rank = 4, .alpha = 8, .targets = {std::string(LoraOptions::all_linear)}};
    return std::make_unique<models::Llama<P>>(options.options, adapted);
  } else if constexpr (std::is_same_v<Options, models::GptOptions>) {
    return std::make_unique<models::Gpt<P>>(options, context);
  } else if constexpr (std::is_same_v<Options, models::LlamaOptions>) {
    return std::make_unique<models::Llama<P>>(options, context);
  } else {
    return std::make_unique<models::GptNeoX<P>>(options, context);
  }
}

// Losses and norms of the gradient in some steps with all documents.
using Results = std::vector<double>;

// Of batches of any length.
template <typename Net>
auto loss_of_all(const Net& model, const std::vector<data::TokenBatch>& batches) {
  auto all = nn::loss_of(model, batches.front());
  double counted = all.target_weight.item();
  for (std::size_t i = 1; i < batches.size(); ++i) {
    const auto loss = nn::loss_of(model, batches[i]);
    all.sum = add(all.sum, loss.sum);
    counted += loss.target_weight.item();
    all.nominal_targets += loss.nominal_targets;
  }
  all.target_weight = counted;
  return all;
}

// batches(step, mesh) gives this rank's micro-batches, or all parts of one.
template <typename P, typename Options>
Results train(const Options& options, const Layout& layout, const auto& batches, bool all_in_one = false) {
  Results results;
  testing::run_ranks(layout.ranks(), [&](const Group& world) {
    const ProcessMesh mesh = layout.mesh(world);
    const auto model = model_of<P>(options, layout.context(mesh));
    model->initialize({.seed = 5});
    parallel::DataParallel replicas(*model, mesh, {.sharding = layout.sharding});
    optim::Sgd<P> optimizer(*model, {.learning_rate = 0.1});
    for (std::int64_t number = 0; number < steps; ++number) {
      const std::vector<data::TokenBatch> micro_batches = batches(number, mesh);
      parallel::Step step = replicas.begin(number, all_in_one ? 1 : static_cast<int>(micro_batches.size()));
      if (all_in_one) {
        step.backward(micro_batches.front(), [&] { return loss_of_all(*model, micro_batches); });
      } else {
        step.backward(*model, micro_batches);
      }
      step.update(optimizer);
      const StepSummary summary = step.finish();
      if (world.rank() != 0) continue;
      results.push_back(summary.loss());
      results.push_back(summary.gradient_norm);
    }
  });
  return results;
}

// Each document alone, without padding.
template <typename P, typename Options>
Results train_one_by_one(const Options& options) {
  return train<P>(
      options, {},
      [](std::int64_t, const ProcessMesh&) {
        std::vector<data::TokenBatch> batches;
        const data::DocumentRows rows = rows_of(false);
        for (std::int64_t row = 0; row < rows.size(); ++row) {
          batches.push_back(rows.collate(std::vector{row}, row, rows.tokens_of(row)));
        }
        return batches;
      },
      true);
}

// All documents in each step, by a loader.
template <typename P, typename Options>
Results train_rows(const Options& options, bool packing, const Layout& layout = {}, std::int64_t micro_batches = 1) {
  const data::DocumentRows rows = rows_of(packing);
  return train<P>(options, layout, [&](std::int64_t step, const ProcessMesh& mesh) {
    const std::int64_t count = mesh.batch().size();
    const data::DocumentLoader loader(rows, {.batch = {.batch_size = rows.size(),
                                                       .micro_batch_size = rows.size() / count / micro_batches,
                                                       .index = mesh.batch().rank(),
                                                       .count = static_cast<int>(count)}});
    std::vector<data::TokenBatch> batches;
    for (std::int64_t micro = 0; micro < loader.num_micro_batches(); ++micro) batches.push_back(loader.load(step, micro));
    return batches;
  });
}

// All documents in each step, in 8 micro-batches of up to 18 tokens.
data::LengthBatches batches_by_length() {
  return data::LengthBatches(documents(), {.max_tokens = 18, .length = length, .pad_to_multiple_of = 2});
}

template <typename P, typename Options>
Results train_by_length(const Options& options, const Layout& layout) {
  const data::LengthBatches by_length = batches_by_length();
  return train<P>(options, layout, [&](std::int64_t step, const ProcessMesh& mesh) {
    const data::Loader loader(
        by_length,
        data::BatchOptions{.batch_size = by_length.size(), .index = mesh.batch().rank(), .count = mesh.batch().size()});
    std::vector<data::TokenBatch> batches;
    for (std::int64_t micro = 0; micro < loader.num_micro_batches(); ++micro) batches.push_back(loader.load(step, micro));
    return batches;
  });
}

void expect_near(const Results& results, const Results& wanted, double tolerance) {
  REQUIRE(results.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO("step " << i / 2 << (i % 2 == 0 ? ", loss " : ", norm ") << results[i] << ", not " << wanted[i]);
    CHECK(std::abs(results[i] - wanted[i]) <= tolerance * std::abs(wanted[i]));
  }
}

template <typename P>
void expect_packed_as_alone(double tolerance) {
  const auto check = [tolerance](const char* name, const auto& options, bool pads = true) {
    INFO(name);
    const Results alone = train_one_by_one<P>(options);
    expect_near(train_rows<P>(options, true), alone, tolerance);
    if (pads) expect_near(train_rows<P>(options, false), alone, tolerance);
  };
  check("GPT", gpt);
  check("GPT with attention dropout", with_attention_dropout());
  check("Llama", llama);
  check("Llama with windows", windowed());
  check("GPT-NeoX", neox);
  check("Llama with adapters", Adapted{windowed()});
  check("Llama with experts", with_experts(), false);  // whose added losses count padding
}

}  // namespace

TEST_CASE("a step of packed documents is that of each alone") {
  REQUIRE(rows_of(true).size() == 8);
  expect_packed_as_alone<Float64>(1e-11);
  expect_packed_as_alone<Float32>(1e-5);
  // Rounded alike but for sums in another order.
  expect_near(train_rows<MixedBfloat16>(gpt, true), train_rows<MixedBfloat16>(gpt, false), 1e-2);
  expect_near(train_rows<MixedBfloat16>(windowed(), true), train_rows<MixedBfloat16>(windowed(), false), 1e-2);
  expect_near(train_rows<MixedFloat16>(windowed(), true), train_rows<MixedFloat16>(windowed(), false), 1e-3);
  expect_near(train_rows<MixedFloat16>(neox, true), train_rows<MixedFloat16>(neox, false), 1e-3);
}

TEST_CASE("packed documents train alike on every mesh") {
  std::vector<std::pair<Layout, std::int64_t>> runs;
  for (const Layout& layout : tests::layouts) runs.emplace_back(layout, layout.micro_batches);
  runs.push_back({{.data = 2}, 4});  // one row a micro-batch
  runs.push_back({{.pipeline = 2}, 8});
  runs.push_back({{.data = 2, .pipeline = 2, .tensor = 2, .sequence_parallel = true}, 2});
  const auto check = [&](const char* name, const auto& options) {
    const Results wanted = train_one_by_one<Float64>(options);
    for (const auto& [layout, micro_batches] : runs) {
      INFO(name << ", " << layout.str() << ", in fact " << micro_batches);
      expect_near(train_rows<Float64>(options, true, layout, micro_batches), wanted, 1e-10);
    }
  };
  check("GPT", gpt);
  check("GPT with attention dropout", with_attention_dropout());
  check("Llama with windows", windowed());
  check("GPT-NeoX", neox);
  check("Llama with adapters", Adapted{windowed()});
  const auto check_experts = [](const char* name, const auto& options) {
    const Results wanted = train_one_by_one<Float64>(options);
    for (const Layout& layout :
         {Layout{.data = 2}, Layout{.expert = 2}, Layout{.pipeline = 2, .expert = 2}, Layout{.tensor = 2}}) {
      INFO(name << ", " << layout.str());
      expect_near(train_rows<Float64>(options, true, layout, 2), wanted, 1e-10);
    }
  };
  check_experts("experts", with_experts());
  check_experts("experts with adapters", Adapted{with_experts()});
}

TEST_CASE("micro-batches of documents of about one length train alike on every mesh") {
  REQUIRE(batches_by_length().size() == 8);
  const auto check = [&](const char* name, const auto& options) {
    const Results wanted = train_one_by_one<Float64>(options);
    for (const Layout& layout : tests::layouts) {
      INFO(name << ", " << layout.str());
      expect_near(train_by_length<Float64>(options, layout), wanted, 1e-10);
    }
  };
  check("GPT", gpt);
  check("Llama with windows", windowed());
  expect_near(train_by_length<MixedFloat16>(gpt, {.data = 2}), train_by_length<MixedFloat16>(gpt, {}), 1e-3);
  const Results with_added_losses = train_by_length<Float64>(with_experts(), {});
  for (const Layout& layout :
       {Layout{.data = 2}, Layout{.expert = 2}, Layout{.pipeline = 2, .expert = 2}, Layout{.tensor = 2}}) {
    INFO("experts, " << layout.str());
    expect_near(train_by_length<Float64>(with_experts(), layout), with_added_losses, 1e-10);
  }
}

TEST_CASE("ranks and micro-batches without a target count for nothing") {
  // Padded rows, some with only one token: whole micro-batches, and in a batch of such rows a whole rank, have no target.
  for (const Layout& layout : {Layout{.data = 2}, Layout{.pipeline = 2}, Layout{.tensor = 2, .sequence_parallel = true}}) {
    INFO(layout.str());
    expect_near(train_rows<Float64>(gpt, false, layout, 8), train_one_by_one<Float64>(gpt), 1e-10);
  }
  const auto one_rank_has_none = [](std::int64_t, const ProcessMesh& mesh) {
    const bool none = mesh.batch().rank() == 1;
    const std::vector<std::int64_t> rows = none ? std::vector<std::int64_t>{1, 8} : std::vector<std::int64_t>{0, 3};
    return std::vector{rows_of(false).collate(rows, 0)};
  };
  const auto without_it = [](std::int64_t, const ProcessMesh&) {
    return std::vector{rows_of(false).collate(std::vector<std::int64_t>{0, 3}, 0)};
  };
  expect_near(train<Float64>(gpt, {.data = 2}, one_rank_has_none), train<Float64>(gpt, {}, without_it), 1e-11);
  const auto nobody_has_any = [](std::int64_t, const ProcessMesh&) {
    return std::vector{rows_of(false).collate(std::vector<std::int64_t>{1, 8}, 0)};
  };
  for (const double result : train<Float64>(with_experts(), {.data = 2}, nobody_has_any)) CHECK(result == 0);
}

TEST_CASE("a run over packed documents that is stopped within an epoch goes on with the same bits, and evaluates them") {
  const tests::TemporaryFolder folder;
  using Values = std::vector<std::vector<float>>;
  const auto train = [&](bool saves, std::int64_t last, int ranks) {
    Values values;
    std::vector<double> evaluated;
    testing::run_ranks(ranks, [&](const Group& world) {
      trainer::Options options{.until = Steps{5}, .batch_size = 4, .micro_batch_size = 2};
      if (saves) options.checkpoints.directory = folder.path().string();
      trainer::Run run(world, options);
      models::Llama<Float32> model(windowed(), run.context());
      optim::Sgd<Float32> optimizer(model, {.learning_rate = 0.1, .momentum = 0.9});
      run.add(model, optimizer);
      const data::DocumentLoader loader(rows_of(true), {.batch = run.batch()});
      for (auto& step : run.steps(loader)) {
        step.backward(model, step.batches());
        step.update(optimizer);
        if (run.done() == last) run.stop();
      }
      const double loss = run.evaluate(model, rows_of(true));
      if (world.rank() != 0) return;
      evaluated.push_back(loss);
      for (int i = 0; i < model.store().num_parameters(); ++i) {
        const auto of = model.store().values<float>(i);
        values.emplace_back(of.span().begin(), of.span().end());
      }
    });
    return std::pair(values, evaluated);
  };
  for (const int ranks : {1, 2}) {
    const auto whole = train(false, 5, ranks);  // an epoch has two steps
    train(true, 3, ranks);
    CHECK(train(true, 5, ranks) == whole);
    std::filesystem::remove_all(folder.path());
    std::filesystem::create_directories(folder.path());
  }
}

TEST_CASE("models that do not know documents refuse them, and borders of another batch") {
  const data::TokenBatch packed = rows_of(true).collate(std::vector<std::int64_t>{3}, 0);
  models::LstmLm<Float32> lstm({.vocabulary = vocabulary, .embedding = 4, .hidden = 4});
  lstm.initialize();
  CHECK_THROWS_WITH(lstm.forward(packed), ContainsSubstring("an LSTM reads a row as one text"));
  CHECK_THROWS_WITH(data::mask_tokens(packed, {.mask_token = 1, .vocabulary = vocabulary}),
                    ContainsSubstring("its rows hold several documents"));
  data::TokenBatch other = packed;
  other.document_starts = Tensor<std::int32_t>::zeros({1, length - 1});
  models::Gpt<Float32> of_gpt(gpt);
  of_gpt.initialize();
  CHECK_THROWS_WITH(of_gpt.forward(other), ContainsSubstring("do not belong to tokens"));
  models::Llama<Float32> of_llama(llama);
  of_llama.initialize();
  CHECK_THROWS_WITH(of_llama.forward(other), ContainsSubstring("document_starts has shape [1, 11]"));
}
