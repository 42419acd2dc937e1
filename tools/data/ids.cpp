#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "commands.hpp"
#include "trireme/checkpoint/checkpoint_reader.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/data/documents/token_mixture.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"

namespace trireme::data_program {
namespace {

// The settings of a run on token shards.
class Settings {
 public:
  explicit Settings(const std::string& run) : reader_(checkpoint::newest_folder(run)) {
    const std::string tokens = find("tokens");
    if (tokens == "shards") return;
    refuse("the run has read no token shards: ids are told of runs with --tokens shards", "tokens", "shards", tokens);
  }

  std::string text(const std::string& name) const {
    const std::string value = find(name);
    if (value.empty()) refuse("the checkpoint lacks a setting", name);
    return value;
  }
  template <typename T>
  T number(const std::string& name) const {
    const auto value = parse_number<T>(text(name));
    if (!value) refuse("the setting is no number", name, {}, text(name));
    return *value;
  }
  [[noreturn]] void refuse(std::string message, const std::string& name, std::string wanted = {}, std::string had = {},
                           std::string hint = {}) const {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = std::move(message),
                 .name = name,
                 .path = reader_.folder().string(),
                 .wanted = std::move(wanted),
                 .had = std::move(had),
                 .hint = std::move(hint)});
  }

  std::string find(const std::string& name) const {  // "" where the checkpoint lacks it
    const auto& settings = reader_.manifest().configuration;
    const auto found = settings.find(name);
    return found == settings.end() ? "" : found->second;
  }

 private:
  checkpoint::CheckpointReader reader_;
};

std::string text_of(const tokenizers::Tokenizer& tokenizer, const data::TokenShards& documents,
                    const data::PackedRows::Piece& piece) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(piece.count));
  documents.read(piece.document, piece.begin, tokens);
  return tokenizer.decode(tokens);
}

}  // namespace

int ids(const IdsCommand& command) {
  const Settings settings(command.run);
  const std::string data = command.data.empty() ? settings.text("data") : command.data;
  const data::TokenMixture mixture = data::open_token_mixture(data, {.length = settings.number<std::int64_t>("block")});
  const std::string content = content_of(mixture);
  if (content != settings.text("data_content")) {
    settings.refuse(fmt::format("{} is not what the run has read", data), "data_content", settings.text("data_content"),
                    content, "name the shards as they were by --data");
  }
  std::optional<tokenizers::Tokenizer> tokenizer;
  if (command.tokenizer == "byte") tokenizer = tokenizers::Tokenizer::bytes();
  if (!tokenizer && !command.tokenizer.empty()) tokenizer = tokenizers::read_tokenizer(command.tokenizer);

  const data::BatchOptions batch{.batch_size = settings.number<std::int64_t>("batch_size"),
                                 .batch_size_from_step = data::parse_batch_sizes(settings.find("batch_size_from_step")),
                                 .seed = settings.number<std::uint64_t>("seed")};
  const data::DatasetSampler sampler(mixture.rows.parts(), {.batch = batch, .mixture = mixture.weights});
  const data::SampledItems items = sampler.items(command.step - 1, 0);
  for (std::size_t at = 0; at < items.indices.size(); ++at) {
    const auto [part, row] = mixture.rows.place_of(items.indices[at]);
    const data::PackedRows& rows = mixture.rows.part(part);
    nlohmann::ordered_json line{{"step", command.step},
                                {"sample", items.first_sample + static_cast<std::int64_t>(at)},
                                {"part", mixture.names[part]},
                                {"row", row}};
    for (const data::PackedRows::Piece& piece : rows.pieces_of(row)) {
      nlohmann::ordered_json told{{"file", rows.documents().file_of(piece.document).string()},
                                  {"document", rows.documents().number_in_file(piece.document)},
                                  {"source", rows.documents().source_of(piece.document)},
                                  {"begin", piece.begin},
                                  {"end", piece.begin + piece.count}};
      if (tokenizer) told["text"] = text_of(*tokenizer, rows.documents(), piece);
      line["documents"].push_back(std::move(told));
    }
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return 0;
}

}  // namespace trireme::data_program
