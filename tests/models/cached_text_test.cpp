// Models with a cache of keys and values generate the same texts as models that read everything again for each token.
#include <cmath>
#include <filesystem>

#include "catch.hpp"
#include "fixtures.hpp"
#include "trireme/models/architectures/generate.hpp"
#include "trireme/models/folders/hugging_face.hpp"

using namespace trireme;

namespace {

namespace fs = std::filesystem;
using models::TokenText;

const std::vector<TokenText> prompts{{3, 1, 4}, {7}, {9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8}, {1, 1}};

template <typename Model>
Tensor<typename Model::T> anew(const Model& model, std::span<const std::int32_t> text, std::int64_t context) {
  const auto seen = text.last(std::min(text.size(), static_cast<std::size_t>(context)));
  return model.next_token_logits(Tensor<std::int32_t>::from({1, std::ssize(seen)}, seen));
}

// The text of a model that reads everything again for each token.
template <typename Model>
TokenText text_anew(const Model& model, const TokenText& prompt, const models::GenerateOptions& options) {
  const std::int64_t context = options.context == 0 ? model.options().block : options.context;
  return models::generate([&](std::span<const std::int32_t> text) { return anew(model, text, context); }, prompt, options);
}

template <typename T>
double difference(const Tensor<T>& a, const Tensor<T>& b) {
  REQUIRE(a.numel() == b.numel());
  double largest = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i])));
  }
  return largest;
}

// Reads the tokens of three texts in turns of several sizes, and compares all logits on the way.
template <typename Model>
void check_logits(const Model& model, double bound) {
  using T = typename Model::T;
  TokenText text(60);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int32_t>((i * i + 3) % 50);
  nn::KeyValueCache<T> cache(3, 64);
  const std::span<const std::int32_t> all(text);
  const auto check = [&](const std::vector<std::size_t>& counts) {  // of new tokens for each sequence
    std::vector<nn::NewTokens> parts;
    std::vector<std::size_t> ends;
    for (std::size_t sequence = 0; sequence < counts.size(); ++sequence) {
      if (counts[sequence] == 0) continue;
      const auto number = static_cast<std::int64_t>(sequence);
      const auto first = static_cast<std::size_t>(cache.length(number));
      parts.push_back({.sequence = number, .tokens = all.subspan(first, counts[sequence])});
      ends.push_back(first + counts[sequence]);
    }
    const auto logits = model.next_token_logits(parts, cache);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      CAPTURE(part, ends[part]);
      CHECK(difference(logits.narrow(static_cast<std::int64_t>(part), 1), anew(model, all.first(ends[part]), 64)) < bound);
    }
  };
  check({1, 9, 4});
  check({1, 1, 1});
  check({3, 0, 20});  // several tokens behind others
  for (int step = 0; step < 12; ++step) check({1, 1, 1});
  cache.clear(1);
  check({0, 2, 0});
  check({1, 11, 1});
}

models::LlamaOptions longer_options(const fs::path& folder) {
  models::LlamaOptions options = models::llama_options(folder);
  options.block = 256;
  return options;
}

template <typename P>
void check_logits_of(const fs::path& folder, double bound) {
  models::Llama<P> model(longer_options(folder));
  models::load_pretrained(model, folder);
  check_logits(model, bound);
}

void for_each_folder(const std::function<void(const fs::path& folder)>& check) {
  for (const tests::Fixture& set : tests::fixtures_of_kind("folders_of_transformers")) {
    for (const std::string name : tests::read_json(set.file).at("models")) {
      CAPTURE(name);
      check(set.file.parent_path() / name);
    }
  }
}

}  // namespace

TEST_CASE("logits with a cache are those without one, of every model of transformers") {
  for_each_folder([](const fs::path& folder) {
    check_logits_of<Float32>(folder, 1e-5);
    check_logits_of<MixedFloat16>(folder, 0.02);
    check_logits_of<MixedBfloat16>(folder, 0.1);
  });
}

TEST_CASE("texts with a cache are those without one, for 200 steps and past the context") {
  for_each_folder([](const fs::path& folder) {
    models::Llama<Float64> model(longer_options(folder));
    models::load_pretrained(model, folder);
    const models::GenerateOptions greedy{.count = 200, .temperature = 0};
    CHECK(models::generate(model, prompts[0], greedy) == text_anew(model, prompts[0], greedy));
    const models::GenerateOptions drawn{.count = 30, .temperature = 0.9, .top_k = 20, .top_p = 0.9, .seed = 3, .context = 16};
    const auto texts = models::generate(model, prompts, drawn);
    for (std::size_t row = 0; row < prompts.size(); ++row) {
      models::GenerateOptions alone = drawn;
      alone.first_row = row;
      CHECK(texts[row] == models::generate(model, prompts[row], alone));
      CHECK(texts[row] == text_anew(model, prompts[row], alone));
    }
  });
}

TEST_CASE("a GPT's logits and texts with a cache are those without one") {
  const models::GptOptions options{.layers = 2, .heads = 2, .width = 32, .block = 64, .vocabulary = 53};
  models::Gpt<Float64> model(options);
  model.initialize({.seed = 4});
  check_logits(model, 1e-12);
  const models::GenerateOptions drawn{.count = 100, .seed = 5};  // past the context
  const auto texts = models::generate(model, prompts, drawn);
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    models::GenerateOptions alone = drawn;
    alone.first_row = row;
    CHECK(texts[row] == models::generate(model, prompts[row], alone));
    CHECK(texts[row] == text_anew(model, prompts[row], alone));
  }
  models::Gpt<MixedBfloat16> mixed(options);
  mixed.initialize({.seed = 4});
  check_logits(mixed, 0.02);
}

TEST_CASE("texts of a batch end by themselves, and tokens are told at once") {
  models::Gpt<Float32> model({.layers = 1, .heads = 2, .width = 8, .block = 32, .vocabulary = 11});
  model.initialize({.seed = 4});
  models::GenerateOptions options{.count = 25, .seed = 5};
  const std::vector<TokenText> starts{{3, 1}, {7}, {9, 2, 6, 5}};
  const auto whole = models::generate(model, starts, options);
  options.stop = {2, 6};
  std::vector<TokenText> told(starts.size());
  options.on_token = [&](std::size_t row, std::int32_t token) { told[row].push_back(token); };
  const auto texts = models::generate(model, starts, options);
  CHECK(texts == told);
  for (std::size_t row = 0; row < starts.size(); ++row) {
    TokenText wanted;
    for (const std::int32_t token : whole[row]) {
      wanted.push_back(token);
      if (token == 2 || token == 6) break;
    }
    CHECK(texts[row] == wanted);
    CHECK(texts[row].size() < 25);
  }
  CHECK(models::generate(model, std::vector<TokenText>{}, options).empty());
  options.count = 0;
  CHECK(models::generate(model, starts, options) == std::vector<TokenText>(3));
}

TEST_CASE("what a model can't continue is refused") {
  models::Gpt<Float32> model({.layers = 1, .heads = 2, .width = 8, .block = 6, .vocabulary = 11});
  model.initialize({.seed = 4});
  const auto refused = [&](const std::vector<TokenText>& starts, const models::GenerateOptions& options, const char* text) {
    CHECK_THROWS_WITH(models::generate(model, starts, options), ContainsSubstring(text));
  };
  refused({{1}, {}}, {}, "generate() needs a prompt of at least one token, number 1 has none");
  refused({{1, 2, 3, 4, 5, 6, 7}}, {}, "prompt 0 has 7 tokens, but the model sees 6 at most");
  refused({{1, 2, 3, 4}}, {.context = 3}, "prompt 0 has 4 tokens, but the model sees 3 at most");
  refused({{1}}, {.context = 7}, "a context of 7 tokens, but the model has 6 positions");
  refused({{1}}, {.stop = {11}}, "the stop token 11 is none of 11");
  refused({{1}}, {.stop = {-1}}, "the stop token -1 is none of 11");
  refused({{1}}, {.top_k = -1}, "top_k is above 0, or 0 for all tokens, got -1");
  refused({{1}}, {.top_p = 0}, "top_p lies in (0, 1], got 0");
  refused({{1}}, {.top_p = 1.5}, "top_p lies in (0, 1], got 1.5");
  refused({{1}}, {.top_p = NAN}, "top_p lies in (0, 1], got nan");
  refused({{1}}, {.temperature = -1}, "a temperature is 0 or more");
  refused({{11}}, {}, "11");
  nn::KeyValueCache<float> cache(2, 4);
  const auto read = [&](const std::vector<nn::NewTokens>& parts, const char* text) {
    CHECK_THROWS_WITH(model.next_token_logits(parts, cache), ContainsSubstring(text));
  };
  const TokenText tokens{1, 2, 3, 4, 5};
  const std::span<const std::int32_t> all(tokens);
  read({}, "there are no new tokens");
  read({{.sequence = 2, .tokens = all.first(1)}}, "a cache of 2 sequences has no sequence 2");
  read({{.sequence = 1}}, "no new tokens of sequence 1");
  read({{.sequence = 0, .tokens = all}}, "sequence 0 of 0 tokens gets 5 more, but the cache is for 4");
  read({{.sequence = 0, .tokens = all.first(1)}, {.sequence = 0, .tokens = all.first(1)}}, "sequence 0 are given twice");
  CHECK(cache.length(0) == 0);
  const Tape tape;
  refused({{1}}, {}, "call it without a tape");
}

TEST_CASE("a GPT-NeoX's texts of a batch are those of its prompts alone, read anew for each token") {
  models::GptNeoX<Float64> model({.layers = 2, .heads = 2, .width = 32, .hidden = 64, .vocabulary = 53, .block = 24});
  model.initialize({.seed = 4});
  const models::GenerateOptions drawn{.count = 30, .stop = {7}, .seed = 5};  // past the context
  const auto texts = models::generate(model, prompts, drawn);
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    models::GenerateOptions alone = drawn;
    alone.first_row = row;
    CHECK(texts[row] == models::generate(model, prompts[row], alone));
    CHECK(texts[row] == text_anew(model, prompts[row], alone));
  }
  CHECK_THROWS_WITH(models::generate(model, models::TokenText(25), {}), ContainsSubstring("prompt 0 has 25 tokens"));
}
