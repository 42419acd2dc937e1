#include <string>

#include "models/cuda_compare.hpp"
#include "trireme/models/architectures/bert.hpp"
#include "trireme/models/architectures/generate.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/models/architectures/gpt_neox.hpp"
#include "trireme/models/architectures/llama.hpp"
#include "trireme/models/architectures/vision_transformer.hpp"
#include "trireme/optim/adamw.hpp"

// Transformers of other families on the GPU against the same ones on the CPU, which other tests compare with transformers.
using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr std::int64_t vocabulary = 96, time_steps = 24, rows = 3;

models::LlamaOptions llama() {
  return {.layers = 2, .heads = 4, .kv_heads = 2, .width = 64, .hidden = 96, .vocabulary = vocabulary, .block = 64};
}
models::LlamaOptions tied_llama3() {
  models::LlamaOptions options = llama();
  options.rotary_scaling = {.kind = ops::RotaryScalingKind::llama3, .factor = 8, .trained_positions = 16};
  options.rotary_base = 500000;
  options.tied = true;
  return options;
}
models::LlamaOptions qwen3() {
  models::LlamaOptions options = llama();
  options.kv_heads = 1;
  options.head_size = 32;
  options.query_key_norm = true;
  options.attention_bias = true;
  return options;
}
models::LlamaOptions windowed() {
  models::LlamaOptions options = llama();
  options.window = 7;
  return options;
}
models::GptNeoXOptions neox(bool parallel_residual) {
  return {.layers = 2,
          .heads = 4,
          .width = 64,
          .hidden = 128,
          .vocabulary = vocabulary,
          .block = 64,
          .parallel_residual = parallel_residual};
}
models::BertOptions bert(std::int64_t classes) {
  return {.layers = 2,
          .heads = 4,
          .width = 64,
          .hidden = 128,
          .vocabulary = vocabulary,
          .block = 64,
          .dropout = 0.1,
          .attention_dropout = 0,
          .classes = classes};
}
models::VisionTransformerOptions vit(bool distilled) {
  return {.layers = 2,
          .heads = 4,
          .width = 64,
          .hidden = 128,
          .image_size = 16,
          .patch_size = 4,
          .channels = 3,
          .classes = 10,
          .dropout = 0.1,
          .distilled = distilled};
}

data::TokenBatch tokens(std::uint32_t seed) {
  std::mt19937 generator(seed), again(seed);
  data::TokenBatch batch{.tokens = random_tokens({rows, time_steps}, vocabulary, generator),
                         .targets = random_tokens({rows, time_steps}, vocabulary, again)};
  batch.targets.span()[5] = ops::ignored_target;
  return batch;
}
data::TextBatch texts(std::uint32_t seed, bool classes) {
  std::mt19937 generator(seed), again(seed);
  return {.tokens = random_tokens({rows, time_steps}, vocabulary, generator),
          .targets = classes ? random_tokens({rows}, 3, again) : random_tokens({rows, time_steps}, vocabulary, again),
          .key_padding_mask = data::padding_mask(std::vector<std::int64_t>{24, 11, 1}, time_steps)};
}
data::ImageBatch images(std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  data::ImageBatch batch{.images = Tensor<float>({rows, 16, 16, 3}), .labels = random_tokens({rows}, 10, generator)};
  for (float& element : batch.images.span()) element = normal(generator);
  return batch;
}

// One forward and backward pass; the mean loss.
template <typename D>
double pass(const auto& model, const auto& batch, std::uint64_t step) {
  Tape tape({.seed = 3, .step = step});
  const auto loss = nn::loss_of(model, data::on_device<D>(batch));
  loss.backward();
  return loss.mean();
}

template <template <typename, typename> typename Model, typename P>
void compare_pass(const auto& options, const auto& batch) {
  Model<P, Cpu> here(options);
  Model<P, Cuda> there(options);
  here.initialize({.seed = 1});
  there.initialize({.seed = 1});
  const bool exact = std::is_same_v<P, Float32>;
  CHECK(pass<Cuda>(there, batch, 0) == Approx(pass<Cpu>(here, batch, 0)).epsilon(exact ? 1e-5 : 1e-2));
  CHECK(distance(gradients(there), gradients(here)) < (exact ? 1e-4 : 3e-2));
}

template <template <typename, typename> typename Model, typename D>
std::vector<double> train(const auto& options, const auto& batch_of) {
  Model<Float32, D> model(options);
  model.initialize({.seed = 1});
  optim::AdamW<Float32, D> optimizer(model, {.learning_rate = 1e-3, .weight_decay = 0.1});
  std::vector<double> losses;
  for (std::uint32_t step = 0; step < 6; ++step) {
    losses.push_back(pass<D>(model, batch_of(step), step));
    const auto parameters = static_cast<std::size_t>(model.store().num_parameters());
    optimizer.step({.loss_sum = losses.back(), .target_weight = 1, .used = std::vector<bool>(parameters, true)});
  }
  return losses;
}

template <template <typename, typename> typename Model>
void compare_training(const auto& options, const auto& batch_of) {
  const std::vector<double> there = train<Model, Cuda>(options, batch_of), here = train<Model, Cpu>(options, batch_of);
  for (std::size_t step = 0; step < here.size(); ++step) {
    CAPTURE(step);
    CHECK(there[step] == Approx(here[step]).epsilon(1e-4));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("the loss and the gradients of a Llama are those of the CPU", "", Float32, MixedBfloat16, MixedFloat16) {
  for (const models::LlamaOptions& options : {llama(), tied_llama3(), qwen3(), windowed()}) {
    CAPTURE(options.tied, options.query_key_norm, options.window);
    compare_pass<models::Llama, TestType>(options, tokens(7));
  }
}

TEMPLATE_TEST_CASE("the loss and the gradients of a GPT-NeoX are those of the CPU", "", Float32, MixedBfloat16, MixedFloat16) {
  for (const bool parallel : {false, true}) compare_pass<models::GptNeoX, TestType>(neox(parallel), tokens(7));
}

TEMPLATE_TEST_CASE("the loss and the gradients of a BERT are those of the CPU", "", Float32, MixedBfloat16, MixedFloat16) {
  compare_pass<models::Bert, TestType>(bert(0), texts(7, false));
  compare_pass<models::Bert, TestType>(bert(3), texts(7, true));
}

TEMPLATE_TEST_CASE("the loss and the gradients of a Vision Transformer are those of the CPU", "", Float32, MixedBfloat16,
                   MixedFloat16) {
  for (const bool distilled : {false, true}) compare_pass<models::VisionTransformer, TestType>(vit(distilled), images(7));
}

TEST_CASE("transformers on the GPU learn as on the CPU") {
  compare_training<models::Llama>(qwen3(), tokens);
  compare_training<models::GptNeoX>(neox(true), tokens);
  compare_training<models::Bert>(bert(0), [](std::uint32_t seed) { return texts(seed, false); });
  compare_training<models::VisionTransformer>(vit(true), images);
}

namespace {

template <template <typename, typename> typename Model>
void compare_texts(const auto& options) {
  Model<Float32, Cpu> here(options);
  Model<Float32, Cuda> there(options);
  here.initialize({.seed = 1});
  there.initialize({.seed = 1});
  const std::vector<models::TokenText> prompts{{5, 6, 7, 8, 9, 10, 11}, {3}, {90, 2}};
  const models::GenerateOptions greedy{.count = 40, .temperature = 0};
  CHECK(models::generate(there, std::span(prompts), greedy) == models::generate(here, std::span(prompts), greedy));
  // The cache's logits are those of reading the whole text.
  nn::KeyValueCache<float, Cuda> cache(1, 32);
  for (std::size_t read = 0; read < prompts[0].size(); ++read) {
    const nn::NewTokens part{.sequence = 0, .tokens = std::span(prompts[0]).subspan(read, 1)};
    const Tensor<float> cached = there.next_token_logits(std::span(&part, 1), cache).template to<Cpu>();
    const auto seen =
        Tensor<std::int32_t>::from({1, static_cast<std::int64_t>(read) + 1}, std::span(prompts[0]).first(read + 1));
    const Tensor<float> whole = here.next_token_logits(seen);
    CHECK(distance(std::vector<float>(cached.span().begin(), cached.span().end()),
                   std::vector<float>(whole.span().begin(), whole.span().end())) < 1e-4);
  }
}

}  // namespace

TEST_CASE("a GPU continues texts as the CPU does") {
  compare_texts<models::Llama>(llama());
  compare_texts<models::Llama>(qwen3());
  compare_texts<models::Gpt>(
      models::GptOptions{.layers = 2, .heads = 4, .width = 64, .block = 64, .vocabulary = vocabulary, .dropout = 0});
}

TEST_CASE("experts on a GPU are refused by one message") {
  models::LlamaOptions options = llama();
  options.experts = {.count = 4, .top_k = 2};
  CHECK_THROWS_WITH((models::Llama<Float32, Cuda>(options)), ContainsSubstring("GPU"));
}
