#include "generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <span>
#include <utility>

#include "model_folder.hpp"
#include "text_coding.hpp"
#include "trireme/core/stopwatch.hpp"

using namespace trireme;
using models::TokenText;

namespace {

std::int32_t stop_token(const TextCoding& coding, const std::string& text) {
  if (const auto token = coding.find(text)) return *token;
  const TokenText tokens = coding.encode(text, false);
  require(tokens.size() == 1, "--stop \"{}\" is {} tokens, but must be one", text, tokens.size());
  return tokens.front();
}

models::GenerateOptions sampling_of(const GenerateProgram& program, const ModelFolder& folder, const TextCoding& coding,
                                    std::int64_t vocabulary) {
  models::GenerateOptions options = program.sampling;
  for (const std::string& text : program.stop) options.stop.push_back(stop_token(coding, text));
  for (const std::int32_t token : folder.stop) {
    if (!program.ignore_eos && token >= 0 && token < vocabulary) options.stop.push_back(token);
  }
  return options;
}

TokenText encode(const TextCoding& coding, const std::string& prompt, std::size_t number, std::int64_t vocabulary,
                 std::int64_t context) {
  TokenText tokens = coding.encode(prompt, true);
  require(!tokens.empty(), "prompt {} is empty: give a prompt of at least one token", number);
  require(std::cmp_less_equal(tokens.size(), context), "prompt {} has {} tokens, but the model sees {} at most: shorten it",
          number, tokens.size(), context);
  for (const std::int32_t token : tokens) {
    require(token >= 0 && token < vocabulary,
            "prompt {} has the token {}, the model knows 0 to {}: does the tokenizer belong to it?", number, token,
            vocabulary - 1);
  }
  return tokens;
}

// The result for a batch of prompts.
struct Continued {
  std::string lines;
  std::uint64_t tokens = 0;
};

void send_to_first(const Group& replicas, const Continued& batch) {
  const std::array<std::uint64_t, 2> sizes{batch.lines.size(), batch.tokens};
  replicas.send(std::span(sizes), 0, 0, "size of texts");
  replicas.send(std::span(reinterpret_cast<const std::uint8_t*>(batch.lines.data()), batch.lines.size()), 0, 0, "texts");
}

Continued receive(const Group& replicas, int replica) {
  std::array<std::uint64_t, 2> sizes{};
  replicas.receive(std::span(sizes), replica, 0, "size of texts").wait_on_host();
  Continued batch{.lines = std::string(sizes[0], ' '), .tokens = sizes[1]};
  const std::span bytes(reinterpret_cast<std::uint8_t*>(batch.lines.data()), batch.lines.size());
  replicas.receive(bytes, replica, 0, "texts").wait_on_host();
  return batch;
}

struct Prompts {
  std::vector<std::string> texts;
  std::vector<TokenText> tokens;
};

Prompts encode_prompts(const GenerateProgram& program, const TextCoding& coding, std::int64_t vocabulary,
                       std::int64_t context) {
  Prompts prompts{.texts = read_prompts(program), .tokens = {}};
  for (const std::string& text : prompts.texts) {
    prompts.tokens.push_back(encode(coding, text, prompts.tokens.size(), vocabulary, context));
  }
  return prompts;
}

// The replicas of the model take the batches in turn. The first replica writes all results in order.
template <typename Model>
void generate(const Model& model, const ProcessMesh& mesh, const GenerateProgram& program, const ModelFolder& folder,
              std::optional<std::int64_t> step) {
  const std::int64_t vocabulary = model.options().vocabulary, block = model.options().block;
  const std::int64_t context = program.sampling.context > 0 ? std::min(program.sampling.context, block) : block;
  TextCoding coding;
  models::GenerateOptions options;
  Prompts prompts;
  const auto read = [&] {
    coding = coding_of(program, folder.path);
    options = sampling_of(program, folder, coding, vocabulary);
    prompts = encode_prompts(program, coding, vocabulary, context);
  };
  mesh.world().agree(read, "read the prompts");
  const bool alone = program.prompts.empty();
  const bool speaks = mesh.world().rank() == 0;
  if (alone && speaks) {
    if (program.watch) fmt::print("--- step {} ---\n", step.value_or(0));
    fmt::print("{}{}", prompts.texts.front(), program.tokens == "number" ? " " : "");
    for (const std::int32_t token : prompts.tokens.front()) coding.decode_next(token);  // the new tokens continue this text
    options.on_token = [&](std::size_t, std::int32_t token) {
      fmt::print("{}", coding.decode_next(token));
      std::fflush(stdout);
    };
  }
  const auto continue_batch = [&](std::size_t first) {
    const std::size_t end = std::min(prompts.texts.size(), first + static_cast<std::size_t>(program.batch));
    options.first_row = first;
    const auto texts = models::generate(model, std::span(prompts.tokens).subspan(first, end - first), options);
    Continued batch;
    for (std::size_t row = 0; row < texts.size(); ++row) {
      batch.tokens += texts[row].size();
      if (alone) continue;
      const std::string text = coding.decode_after(prompts.tokens[first + row], texts[row]);
      batch.lines += with_step(line_of(prompts.texts[first + row], text), step) + "\n";
    }
    return batch;
  };

  const Group& replicas = mesh.data();
  const Stopwatch stopwatch;
  std::uint64_t tokens = 0;
  int replica = 0;
  for (std::size_t first = 0; first < prompts.texts.size(); first += static_cast<std::size_t>(program.batch)) {
    Continued batch;
    if (replica == replicas.rank()) {
      batch = continue_batch(first);
      if (replica > 0 && mesh.tensor().rank() == 0) send_to_first(replicas, batch);
    } else if (speaks) {
      batch = receive(replicas, replica);
    }
    if (speaks) fmt::print("{}", batch.lines);
    tokens += batch.tokens;
    replica = (replica + 1) % replicas.size();
  }
  if (alone && speaks) fmt::print("{}\n", coding.decode_rest());
  std::fflush(stdout);
  const double seconds = stopwatch.seconds();
  if (program.timing && speaks) {
    std::fflush(stdout);
    fmt::print(stderr, "{} tokens in {:.2f} s, {:.1f} tokens/s\n", tokens, seconds, static_cast<double>(tokens) / seconds);
  }
}

}  // namespace

template <typename P, typename D>
void generate(const Group& world, const GenerateProgram& program, const Location& path, std::optional<std::int64_t> step) {
  const int tensor = program.tensor_parallel > 0 ? program.tensor_parallel : world.size();
  require(world.size() % tensor == 0, "--tensor-parallel {} does not divide the {} ranks", tensor, world.size());
  const ProcessMesh mesh(world, {.tensor = tensor});
  ModelFolder folder;
  const std::map<models::Family, std::string> refused{
      {models::Family::bert, "a BERT fills in masked tokens and can't continue a text"},
      {models::Family::vit, "a vision transformer reads images and can't continue a text"}};
  world.agree([&] { folder = read_model_folder(path, program.adapter, refused); }, "read the model's folder");
  with_model<P, D>(world, folder, parallel::model_context(mesh),
                   [&](const auto& model) { generate(model, mesh, program, folder, step); });
}

template void generate<Float32, TRIREME_DEVICE>(const Group&, const GenerateProgram&, const Location&,
                                                std::optional<std::int64_t>);
template void generate<MixedBfloat16, TRIREME_DEVICE>(const Group&, const GenerateProgram&, const Location&,
                                                      std::optional<std::int64_t>);
template void generate<MixedFloat16, TRIREME_DEVICE>(const Group&, const GenerateProgram&, const Location&,
                                                     std::optional<std::int64_t>);
