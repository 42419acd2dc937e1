#include "generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "model_folder.hpp"
#include "text_coding.hpp"

using namespace trireme;
using models::TokenText;

namespace {

using Clock = std::chrono::steady_clock;

std::int32_t stop_token(const TextCoding& coding, const std::string& text) {
  if (const auto token = coding.find(text)) return *token;
  const TokenText tokens = coding.encode(text, false);
  require(tokens.size() == 1, "--stop \"{}\" is {} tokens, but a text ends with one", text, tokens.size());
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

template <typename Model>
void generate(const Model& model, const Group& world, const GenerateProgram& program, const ModelFolder& folder) {
  const TextCoding coding = coding_of(program, folder.path);
  const std::int64_t vocabulary = model.options().vocabulary;
  const std::vector<std::string> prompts = read_prompts(program);
  models::GenerateOptions options = sampling_of(program, folder, coding, vocabulary);
  const std::int64_t block = model.options().block;
  const std::int64_t context = options.context > 0 ? std::min(options.context, block) : block;
  std::vector<TokenText> encoded;
  for (const std::string& prompt : prompts) encoded.push_back(encode(coding, prompt, encoded.size(), vocabulary, context));
  const bool alone = program.prompts.empty();
  const bool speaks = world.rank() == 0;
  if (alone && speaks) {
    fmt::print("{}{}", prompts.front(), program.tokens == "number" ? " " : "");
    for (const std::int32_t token : encoded.front()) coding.decode_next(token);  // what follows is no begin of a text
    options.on_token = [&](std::size_t, std::int32_t token) {
      fmt::print("{}", coding.decode_next(token));
      std::fflush(stdout);
    };
  }
  const auto start = Clock::now();
  std::size_t tokens = 0;
  for (std::size_t first = 0; first < prompts.size(); first += static_cast<std::size_t>(program.batch)) {
    const std::size_t count = std::min(prompts.size() - first, static_cast<std::size_t>(program.batch));
    const auto begin = encoded.begin() + static_cast<std::ptrdiff_t>(first);
    options.first_row = first;
    const auto texts =
        models::generate(model, std::vector<TokenText>(begin, begin + static_cast<std::ptrdiff_t>(count)), options);
    for (std::size_t row = 0; row < texts.size(); ++row) {
      tokens += texts[row].size();
      if (!alone && speaks)
        fmt::print("{}\n", line_of(prompts[first + row], coding.decode_after(encoded[first + row], texts[row])));
    }
  }
  if (alone && speaks) fmt::print("{}\n", coding.decode_rest());
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (program.timing && speaks) {
    std::fflush(stdout);
    fmt::print(stderr, "{} tokens in {:.2f} s, {:.1f} tokens/s\n", tokens, seconds, static_cast<double>(tokens) / seconds);
  }
}

}  // namespace

template <typename P, typename D>
void generate(const Group& world, const GenerateProgram& program) {
  const ModelFolder folder = read_model_folder(program.folder);
  with_model<P, D>(folder, divided_by_all(world), [&](const auto& model) { generate(model, world, program, folder); });
}

template void generate<Float32, TRIREME_DEVICE>(const Group&, const GenerateProgram&);
template void generate<MixedBfloat16, TRIREME_DEVICE>(const Group&, const GenerateProgram&);
template void generate<MixedFloat16, TRIREME_DEVICE>(const Group&, const GenerateProgram&);
