#include "tokenizers/files/sentencepiece_codec.hpp"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "files/config_file.hpp"
#include "tokenizers/codecs/added_tokens.hpp"
#include "tokenizers/files/folder_tokens.hpp"
#include "tokenizers/text/utf8.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::tokenizers {
namespace {

constexpr std::string_view sign_of_space = "\xE2\x96\x81";

// A sentencepiece model (Kudo and Richardson 2018, arXiv 1808.06226).
class SentencePieceCodec : public detail::Codec {
 public:
  explicit SentencePieceCodec(const Location& path) {
    const auto file = open_file(path);
    const auto bytes = file->map();
    const std::string_view model(reinterpret_cast<const char*>(bytes.get()), file->size());
    load(model, path, processor_);
    size_ = processor_.GetPieceSize();
    for (const StoredToken& stored : folder_tokens(path.parent())) {
      const AddedToken& token = stored.token;
      if (token.content.empty()) continue;
      added_.emplace(token.number, token);
      finder_.add(token);
      size_ = std::max<std::int64_t>(size_, token.number + 1);
    }
    for (int piece = 0; piece < processor_.GetPieceSize(); ++piece) {
      if (!processor_.IsControl(piece) || processor_.IdToPiece(piece).empty() || added_.contains(piece)) continue;
      finder_.add({.content = processor_.IdToPiece(piece), .number = piece, .is_special = true});
    }
    strips_ = find_strips();
    doubles_space_ = processor_.EncodeAsPieces(" a") != processor_.EncodeAsPieces("a");
    read_config(path.parent() / "tokenizer_config.json");
    if (!begins_each_part_ || doubles_space_) {
      // Appending this field overrides an earlier one: normalizer_spec.add_dummy_prefix = false.
      constexpr std::string_view without_first_space("\x1A\x02\x18\x00", 4);
      load(std::string(model).append(without_first_space), path, going_on_.emplace());
    }
  }

  void encode(std::string_view text, const EncodeOptions& options, Encoding& to, bool with_offsets) const override {
    encode(text, options, to, with_offsets, 0);
  }

  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const override {
    Encoding both;
    encode(first, options, both, true, 0);
    encode(second, options, both, true, 1);
    return both;
  }

  bool decode(std::int32_t token, bool is_first, std::string& to) const override {
    require(token >= 0, "{} is no token of the tokenizer, whose {} tokens are numbered from 0", token, size_);
    if (const AddedToken* const one = added(token)) {
      to += one->content;
      return true;
    }
    if (token >= processor_.GetPieceSize()) return false;
    const std::string& piece = processor_.IdToPiece(token);
    if (processor_.IsByte(token)) {
      to += static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16));
      return true;
    }
    if (processor_.IsUnknown(token)) {
      to += " \xE2\x81\x87 ";  // as sentencepiece decodes it
      return true;
    }
    std::string_view rest = piece;
    while (is_first && strips_ != Strips::none && rest.starts_with(sign_of_space)) {
      rest.remove_prefix(sign_of_space.size());
      if (strips_ == Strips::one) break;
    }
    const bool begins = !rest.empty() || strips_ != Strips::all;
    for (std::size_t at = rest.find(sign_of_space); at != std::string_view::npos; at = rest.find(sign_of_space)) {
      to += rest.substr(0, at);
      to += ' ';
      rest.remove_prefix(at + sign_of_space.size());
    }
    to += rest;
    return begins && !processor_.IsControl(token);
  }

  bool is_utf8() const override { return true; }
  std::int64_t vocabulary_size() const override { return size_; }

  std::optional<std::int32_t> find(std::string_view token) const override {
    for (const auto& [number, one] : added_) {
      if (one.content == token) return number;
    }
    const int number = processor_.PieceToId(token);
    if (number < 0 || number >= processor_.GetPieceSize() || processor_.IdToPiece(number) != token) return {};
    return number;
  }
  std::string spelling(std::int32_t token) const override {
    if (const AddedToken* const one = added(token)) return one->content;
    require(token >= 0 && token < processor_.GetPieceSize(),
            "{} is no token of the tokenizer, whose {} tokens are numbered from 0", token, size_);
    return processor_.IdToPiece(token);
  }
  bool is_special(std::int32_t token) const override {
    if (const AddedToken* const one = added(token); one != nullptr && one->is_special) return true;
    return token >= 0 && token < processor_.GetPieceSize() && (processor_.IsControl(token) || processor_.IsUnknown(token));
  }

 private:
  void read_config(const Location& path) {
    if (!is_there(path)) return;
    const ConfigFile config(path, "a tokenizer's config");
    // These are the defaults of transformers.
    const std::string type = config.text_or("tokenizer_class", "");
    adds_begin_ = config.flag_or("add_bos_token", type.find("Llama") != std::string::npos);
    adds_end_ = config.flag_or("add_eos_token", type.find("T5") != std::string::npos);
    begins_each_part_ = config.flag_or("legacy", type.find("Llama") == std::string::npos);
    if (adds_begin_ && processor_.bos_id() < 0) config.refuse("add_bos_token", "false, as the model has no such token");
    if (adds_end_ && processor_.eos_id() < 0) config.refuse("add_eos_token", "false, as the model has no such token");
  }

  // How many signs of spaces sentencepiece removes from the first piece when decoding.
  enum class Strips { none, one, all };

  // Finds it out by decoding pieces of the model.
  Strips find_strips() const {
    const auto decoded = [this](const std::vector<int>& pieces) { return processor_.DecodeIds(pieces); };
    for (int piece = 0; piece < processor_.GetPieceSize(); ++piece) {
      const std::string_view text = processor_.IdToPiece(piece);
      const bool is_word = text.starts_with(sign_of_space) && text.find(sign_of_space, 1) == std::string_view::npos;
      if (!is_word || text.size() == sign_of_space.size() || processor_.IsUnused(piece)) continue;
      if (decoded({piece}).starts_with(' ')) return Strips::none;
      const auto space = find(sign_of_space);
      return space && !decoded({*space, piece}).starts_with(' ') ? Strips::all : Strips::one;
    }
    return Strips::none;
  }

  void encode(std::string_view text, const EncodeOptions& options, Encoding& to, bool with_offsets, std::int32_t type) const {
    const bool surrounds = options.add_special_tokens;
    const auto add = [&](std::int32_t token, const Range& place) {
      to.tokens.push_back(token);
      if (with_offsets) to.offsets.push_back(place);
    };
    if (surrounds && adds_begin_) add(processor_.bos_id(), {});
    const auto encode_part = [&](const Range& part) {
      const std::string_view here = part_of(text, part);
      const bool has_space = here.starts_with(' ') || here.starts_with(sign_of_space);
      const bool goes_on = !begins_each_part_ || (has_space && doubles_space_);
      const auto& processor = part.begin > 0 && going_on_ && goes_on ? *going_on_ : processor_;
      const auto pieces = processor.EncodeAsImmutableProto(here);
      for (std::size_t piece = 0; piece < pieces.pieces_size(); ++piece) {
        const auto each = pieces.pieces(static_cast<int>(piece));
        add(static_cast<std::int32_t>(each.id()),
            widened({.begin = part.begin + each.begin(), .end = part.begin + each.end()}, text));
      }
    };
    const std::size_t invalid = first_invalid(text);
    require(invalid == text.size(), "a text is no UTF-8 at byte {} of {}: convert it, with iconv for example", invalid,
            text.size());
    finder_.split(text, options.parse_special_tokens, encode_part,
                  [&](const Range& place, const AddedToken& token) { add(token.number, place); });
    if (surrounds && adds_end_) add(processor_.eos_id(), {});
    if (with_offsets) to.types.resize(to.tokens.size(), type);
  }

  static void load(std::string_view model, const Location& path, sentencepiece::SentencePieceProcessor& to) {
    const auto loaded = to.LoadFromSerializedProto(model);
    if (loaded.ok()) return;
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = fmt::format("sentencepiece can't read a model: {}", loaded.ToString()),
                 .path = path.string()});
  }

  const AddedToken* added(std::int32_t token) const {
    const auto found = added_.find(token);
    return found == added_.end() ? nullptr : &found->second;
  }

  sentencepiece::SentencePieceProcessor processor_;
  // The same model without a space before a text, for text after an added or special token that does not count as the begin of
  // a text or already has a space. std::nullopt if that makes no difference.
  std::optional<sentencepiece::SentencePieceProcessor> going_on_;
  std::map<std::int32_t, AddedToken> added_;  // the folder's tokens, which replace pieces of the same number
  AddedTokenFinder finder_;                   // finds these and the model's special tokens
  std::int64_t size_ = 0;
  bool doubles_space_ = false;    // whether a text that begins with a space gets another one
  bool begins_each_part_ = true;  // whether text after an added token counts as the begin of a text
  bool adds_begin_ = false;
  bool adds_end_ = false;
  Strips strips_ = Strips::none;
};

}  // namespace

std::shared_ptr<const detail::Codec> read_sentencepiece(const Location& path) {
  return std::make_shared<SentencePieceCodec>(path);
}

}  // namespace trireme::tokenizers
