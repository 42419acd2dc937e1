// Tokens a second that a Llama generates, beside the time to read its weights once for each token.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <trireme/trireme.hpp>
#include <vector>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "measurement/turns.hpp"

namespace {

using namespace trireme;

struct Options {
  models::LlamaOptions model = {.kv_heads = 2, .block = 1024};
  std::string folder;
  int batch = 1;
  int prompt = 32;
  int count = 128;
  int rounds = 7;
  int threads = 1;
  std::string precision = "fp32";
  std::string json;
  std::string turns;
};

volatile std::uint64_t seen;  // keeps the compiler from dropping the reads

// Seconds to read this many bytes of memory, in several places at once.
double reading_seconds(const Tensor<std::int32_t>& memory, int threads) {
  constexpr std::int64_t places = 8;
  const auto* words = reinterpret_cast<const std::uint64_t*>(memory.data());
  const std::int64_t part = memory.numel() / 2 / (threads * places);
  return seconds_of([&] {
    std::uint64_t sum = 0;
#pragma omp parallel reduction(+ : sum) num_threads(threads)
    {
      const std::uint64_t* own = words + omp_get_thread_num() * places * part;
      std::uint64_t sums[places] = {};
      for (std::int64_t i = 0; i + 8 <= part; i += 8) {
        for (std::int64_t place = 0; place < places; ++place) {
          for (std::int64_t j = 0; j < 8; ++j) sums[place] += own[place * part + i + j];
        }
      }
      for (const std::uint64_t of_place : sums) sum += of_place;
    }
    seen = sum;
  });
}

template <typename P>
int run(const Options& options) {
  models::LlamaOptions sizes = options.folder.empty() ? options.model : models::llama_options(options.folder);
  models::Llama<P> model(sizes);
  if (options.folder.empty()) {
    model.initialize({.seed = 1});
  } else {
    models::load_pretrained(model, options.folder);
  }
  std::vector<models::TokenText> prompts(static_cast<std::size_t>(options.batch));
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    for (int i = 0; i < options.prompt; ++i) {
      prompts[row].push_back(
          static_cast<std::int32_t>((row * 31 + static_cast<std::size_t>(i) * 7) % static_cast<std::size_t>(sizes.vocabulary)));
    }
  }
  const auto seconds_of_text = [&](std::int64_t count) {
    return seconds_of([&] { models::generate(model, prompts, {.count = count, .temperature = 0}); });
  };
  // An embedding that the output layer does not share costs one row for each token.
  const std::int64_t looked_up = sizes.tied ? 0 : sizes.vocabulary * sizes.width;
  const std::int64_t weights = model.store().num_elements() - looked_up;
  const auto bytes = static_cast<std::int64_t>(static_cast<std::size_t>(weights) * sizeof(typename P::Compute));
  const auto memory = Tensor<std::int32_t>::zeros({bytes / 4});
  seconds_of_text(4);
  if (!options.turns.empty()) {
    return take_turns(0, options.turns, [&](const std::string& name) -> std::optional<double> {
      if (name == "text") return seconds_of_text(options.count);
      if (name == "floor") return options.count * reading_seconds(memory, options.threads);
      refuse_turn(name);
    });
  }
  std::vector<double> of_prompt, of_token, floor;
  for (int round = 0; round < options.rounds; ++round) {
    of_prompt.push_back(seconds_of_text(1));
    of_token.push_back((seconds_of_text(options.count) - of_prompt.back()) / std::max(options.count - 1, 1));
    for (int i = 0; i < 8; ++i) floor.push_back(reading_seconds(memory, options.threads));
  }
  const double per_token = median(of_token);
  const double per_reading = median(floor);
  fmt::print("prompts {:8.3f} ms   {} of {} tokens\n", median(of_prompt) * 1e3, options.batch, options.prompt);
  fmt::print("step    {:8.3f} ms   {:.0f} tokens/s\n", per_token * 1e3, options.batch / per_token);
  fmt::print("floor   {:8.3f} ms   {:.1f} MiB of weights at {:.1f} GB/s\n", per_reading * 1e3,
             static_cast<double>(bytes) / (1 << 20), static_cast<double>(bytes) / per_reading * 1e-9);
  fmt::print("step / floor {:.2f}\n", per_token / per_reading);
  const auto texts = models::generate(model, prompts, {.count = options.count, .temperature = 0});
  write_json(options.json, {{"step_seconds", per_token},
                            {"floor_seconds", per_reading},
                            {"ratio", per_token / per_reading},
                            {"prompt_seconds", median(of_prompt)},
                            {"tokens_per_second", options.batch / per_token},
                            {"texts", texts},
                            {"batch", options.batch},
                            {"threads", options.threads},
                            {"precision", name_of(dtype_of<typename P::Compute>)}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command(
      "Tokens a second of greedy generation against the time to read the weights once; the defaults are a 9.5M model.");
  command.option("--folder", options.folder, "a folder of transformers, in place of the sizes");
  command.option("--layers", options.model.layers, "blocks");
  command.option("--heads", options.model.heads, "of queries");
  command.option("--kv-heads", options.model.kv_heads, "of keys and values");
  command.option("--width", options.model.width, "of the residual stream");
  command.option("--hidden", options.model.hidden, "features of a block's MLP");
  command.option("--block", options.model.block, "positions");
  command.option("--vocabulary", options.model.vocabulary, "tokens there are");
  command.option("--batch", options.batch, "prompts");
  command.option("--prompt", options.prompt, "tokens of each");
  command.option("--count", options.count, "tokens to add");
  command.option("--rounds", options.rounds, "timed texts");
  command.option("--threads", options.threads, "threads");
  command.option("--precision", options.precision, "fp32, bf16 or fp16", {"fp32", "bf16", "fp16"});
  command.option("--json", options.json, "write the figures here");
  command.option("--turns", options.turns, "a folder: take turns with other programs, see measurement/turns.hpp");
  if (const auto code = command.parse(argc, argv)) return *code;
  omp_set_num_threads(options.threads);
  if (options.precision == "bf16") return run<MixedBfloat16>(options);
  return options.precision == "fp16" ? run<MixedFloat16>(options) : run<Float32>(options);
}
