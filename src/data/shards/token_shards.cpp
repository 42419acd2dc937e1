#include "trireme/data/shards/token_shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "data/shards/shard_column.hpp"
#include "data/shards/shard_digest.hpp"
#include "data/sources/ranged_file.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/core/range.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/files/file_content.hpp"
#include "trireme/files/file_memory.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {
namespace {

constexpr std::string_view format_key = "format";
constexpr std::string_view format_name = "trireme.tokens";
constexpr std::string_view digest_key = "digest", largest_key = "largest_token";
constexpr std::string_view tokens_name = "tokens", ends_name = "document_ends", sources_name = "document_sources";
constexpr std::int64_t read_at_once = 1 << 16;  // elements

[[noreturn]] void refuse_shard(const Location& file, std::string message, std::string_view tensor = {}, std::string hint = {}) {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = std::move(message),
               .operation = "reading a token shard",
               .name = std::string(tensor),
               .path = file.string(),
               .hint = std::move(hint)});
}

void widen(const std::byte* __restrict narrow, std::span<std::int32_t> wide) {
  std::int32_t* __restrict into = wide.data();
  for (std::size_t at = 0; at < wide.size(); ++at) {
    std::uint16_t token = 0;
    std::memcpy(&token, narrow + at * sizeof token, sizeof token);
    into[at] = token;
  }
}

SafetensorsFile header_of(std::shared_ptr<const RangedFile> file, const Location& location) {
  SafetensorsFile header(std::move(file), location);
  const auto format = header.metadata().find(std::string(format_key));
  if (format == header.metadata().end() || format->second != format_name) {
    refuse_shard(location,
                 fmt::format("the file is no token shard: its metadata does not say {{\"format\": \"{}\"}}", format_name), {},
                 "trireme-data tokenize makes token shards of texts");
  }
  return header;
}

const SafetensorsEntry& entry_of(const SafetensorsFile& header, std::string_view name, std::array<DType, 2> dtypes) {
  const SafetensorsEntry* const found = header.find(name);
  if (found == nullptr) refuse_shard(header.path(), "the token shard lacks a tensor", name);
  if (std::ranges::find(dtypes, found->dtype) == dtypes.end()) {
    refuse_shard(header.path(),
                 fmt::format("the tensor is of {}, not of {}{}", name_of(found->dtype), name_of(dtypes[0]),
                             dtypes[0] == dtypes[1] ? "" : fmt::format(" or {}", name_of(dtypes[1]))),
                 name);
  }
  if (found->shape.size() != 1) {
    refuse_shard(header.path(), fmt::format("the tensor's shape is {}, where one dimension is wanted", found->shape.str()),
                 name);
  }
  return *found;
}

}  // namespace

// Functions take the open file, so that it is looked for once in each call of TokenShards.
class TokenShards::Shard {
 public:
  Shard(std::shared_ptr<const OpenFiles> files, std::size_t number, const std::shared_ptr<const RangedFile>& file)
      : Shard(files, number, *file, header_of(file, files->locations()[number])) {}

  const Location& location() const { return files_->locations()[number_]; }
  std::shared_ptr<const RangedFile> file() const { return files_->file(number_); }
  const SafetensorsMetadata& metadata() const { return metadata_; }
  std::int64_t num_documents() const { return ends_.size(); }
  std::int64_t num_tokens() const { return tokens_.size(); }

  Range tokens_of(const RangedFile& file, std::int64_t document) const {
    std::array<std::int64_t, 2> ends{};
    const bool is_first = document == 0;
    ends_.read(file, is_first ? 0 : document - 1, std::as_writable_bytes(std::span(ends).subspan(is_first ? 1 : 0)));
    check_document(document, ends[0], ends[1]);
    return {ends[0], ends[1]};
  }

  // The caller has checked that they are there.
  void read_lengths(const RangedFile& file, std::int64_t first, std::span<std::int64_t> into) const {
    ends_.read(file, first, std::as_writable_bytes(into));
    std::int64_t begin = first == 0 ? 0 : ends_.at<std::int64_t>(file, first - 1);
    for (std::size_t at = 0; at < into.size(); ++at) {
      const std::int64_t end = into[at];
      check_document(first + static_cast<std::int64_t>(at), begin, end);
      into[at] = end - begin;
      begin = end;
    }
  }

  bool has_sources() const { return sources_.has_value(); }
  std::int32_t source_of(std::int64_t document) const { return sources_ ? sources_->at<std::int32_t>(*file(), document) : 0; }

  void read(const RangedFile& file, std::int64_t first, std::span<std::int32_t> into) const {
    if (is_wide_) {
      tokens_.read(file, first, std::as_writable_bytes(into));
      for (const std::int32_t token : into) {
        if (token < 0)
          refuse_shard(location(), fmt::format("the token {} is too large", static_cast<std::uint32_t>(token)), tokens_name);
      }
      return;
    }
    if (const std::byte* const memory = tokens_.memory(file, first)) {
      widen(memory, into);
      return;
    }
    auto narrow = elements_for<std::byte>(into.size() * sizeof(std::uint16_t), location());
    tokens_.read(file, first, narrow);
    widen(narrow.data(), into);
  }

  // What the metadata say; nothing: they do not.
  std::optional<std::int64_t> said_largest() const {
    const auto said = metadata().find(std::string(largest_key));
    return said == metadata().end() ? std::nullopt : parse_number<std::int64_t>(said->second);
  }
  std::int64_t largest_token() const {
    if (const auto said = said_largest()) return *said;
    std::int64_t largest = 0;
    const auto file = this->file();
    for_each_part<std::int32_t>(
        num_tokens(), [&](std::int64_t first, std::span<std::int32_t> part) { read(*file, first, part); },
        [&](std::int64_t, std::span<const std::int32_t> part) {
          largest = std::max<std::int64_t>(largest, std::ranges::max(part));
        });
    return largest;
  }

  void verify(std::optional<std::int64_t> largest) const {
    const auto file = this->file();
    ColumnDigest of_tokens, of_ends, of_sources;
    std::int64_t before = 0;
    for_each_part<std::int64_t>(
        num_documents(), [&](std::int64_t first, auto part) { ends_.read(*file, first, std::as_writable_bytes(part)); },
        [&](std::int64_t first, std::span<const std::int64_t> part) {
          of_ends.add(part);
          for (std::size_t at = 0; at < part.size(); ++at) {
            check_document(first + static_cast<std::int64_t>(at), before, part[at]);
            before = part[at];
          }
        });
    const std::optional<std::int64_t> said = said_largest();
    for_each_part<std::int32_t>(
        num_tokens(), [&](std::int64_t first, std::span<std::int32_t> part) { read(*file, first, part); },
        [&](std::int64_t first, std::span<const std::int32_t> part) {
          of_tokens.add(part);
          const auto most = std::ranges::max_element(part);
          const std::int64_t place = first + (most - part.begin());
          if (largest && *most > *largest) {
            refuse_shard(location(), fmt::format("token {} is {}, above {}", place, *most, *largest), tokens_name);
          }
          if (said && *most > *said) {
            refuse_shard(location(),
                         fmt::format("token {} is {}, above the largest that the metadata tell, {}", place, *most, *said),
                         tokens_name);
          }
        });
    for_each_part<std::int32_t>(
        sources_ ? sources_->size() : 0,
        [&](std::int64_t first, auto part) { sources_->read(*file, first, std::as_writable_bytes(part)); },
        [&](std::int64_t, std::span<const std::int32_t> part) { of_sources.add(part); });
    const auto known = metadata().find(std::string(digest_key));
    if (known == metadata().end() || !is_digest_text(known->second)) return;
    const std::string found = digest_text(num_tokens(), of_tokens.value(), of_ends.value(), of_sources.value());
    if (found != known->second) {
      refuse_shard(location(), fmt::format("the content has the digest \"{}\", the metadata tell \"{}\"", found, known->second),
                   {}, "fetch or make the file again");
    }
  }

 private:
  Shard(std::shared_ptr<const OpenFiles> files, std::size_t number, const RangedFile& file, const SafetensorsFile& header)
      : files_(std::move(files)),
        number_(number),
        metadata_(header.metadata()),
        tokens_(entry_of(header, tokens_name, {DType::uint16, DType::uint32}), false),
        ends_(entry_of(header, ends_name, {DType::int64, DType::int64}), true),
        is_wide_(header.at(tokens_name).dtype == DType::uint32) {
    if (header.find(sources_name) != nullptr) {
      sources_.emplace(entry_of(header, sources_name, {DType::int32, DType::int32}), true);
      if (sources_->size() != ends_.size()) {
        refuse_shard(location(), fmt::format("{} sources of {} documents", sources_->size(), ends_.size()), sources_name);
      }
    }
    if (ends_.size() == 0) refuse_shard(location(), "the shard has no document", ends_name);
    if (const auto last = ends_.last<std::int64_t>(file); last != tokens_.size()) {
      refuse_shard(location(), fmt::format("the last document ends at {}, but there are {} tokens", last, tokens_.size()),
                   ends_name);
    }
  }

  // Calls read(first, part), then use(first, part) with it, for all of `count` elements in parts.
  template <typename T>
  static void for_each_part(std::int64_t count, const auto& read, const auto& use) {
    std::vector<T> part;
    for (std::int64_t first = 0; first < count; first += read_at_once) {
      part.resize(static_cast<std::size_t>(std::min(read_at_once, count - first)));
      read(first, std::span(part));
      use(first, std::span<const T>(part));
    }
  }

  void check_document(std::int64_t document, std::int64_t begin, std::int64_t end) const {
    if (begin >= 0 && begin < end && end <= tokens_.size()) return;
    refuse_shard(location(),
                 fmt::format("document {} is said to be the tokens [{}, {}) of {}", document, begin, end, tokens_.size()),
                 ends_name);
  }

  std::shared_ptr<const OpenFiles> files_;
  std::size_t number_;  // among them
  SafetensorsMetadata metadata_;
  ShardColumn tokens_, ends_;
  std::optional<ShardColumn> sources_;
  bool is_wide_;
};

TokenShards::TokenShards(const std::vector<Location>& files) : shards_(files.size()) {
  require(!files.empty(), "token shards need at least one file");
  const auto open = std::make_shared<const OpenFiles>(files);
  for_each_item(std::ssize(files), 0, [&](std::int64_t number) {
    const auto at = static_cast<std::size_t>(number);
    shards_[at] = std::make_shared<const Shard>(open, at, open->open(at));
  });
  for (const auto& shard : shards_) {
    if (__builtin_add_overflow(num_documents_, shard->num_documents(), &num_documents_) ||
        __builtin_add_overflow(num_tokens_, shard->num_tokens(), &num_tokens_)) {
      refuse_shard(shard->location(), "the shards have more tokens than can be counted");
    }
    ends_.push_back(num_documents_);
    reads_by_requests_ = reads_by_requests_ || !shard->location().is_file_path();
    if (ends_.size() == 1) {
      metadata_ = shard->metadata();
    } else {
      std::erase_if(metadata_, [&](const auto& item) {
        const auto other = shard->metadata().find(item.first);
        return other == shard->metadata().end() || other->second != item.second;
      });
    }
  }
}

TokenShards::Place TokenShards::place_of(std::int64_t document) const {
  require(document >= 0 && document < num_documents_, "document {} of {}", document, num_documents_);
  const auto at = static_cast<std::size_t>(std::ranges::upper_bound(ends_, document) - ends_.begin());
  return {shards_[at].get(), document - (at == 0 ? 0 : ends_[at - 1])};
}

const Location& TokenShards::file_of(std::int64_t document) const { return place_of(document).shard->location(); }

std::int64_t TokenShards::number_in_file(std::int64_t document) const { return place_of(document).document; }

std::int64_t TokenShards::length_of(std::int64_t document) const {
  const Place place = place_of(document);
  return place.shard->tokens_of(*place.shard->file(), place.document).count();
}

void TokenShards::read_lengths(std::int64_t first, std::span<std::int64_t> into) const {
  require(first >= 0 && first <= num_documents_ && std::ssize(into) <= num_documents_ - first,
          "the documents [{}, {}) do not exist, there are {}", first, first + std::ssize(into), num_documents_);
  while (!into.empty()) {
    const Place place = place_of(first);
    const auto count = std::min(std::ssize(into), place.shard->num_documents() - place.document);
    place.shard->read_lengths(*place.shard->file(), place.document, into.first(static_cast<std::size_t>(count)));
    into = into.subspan(static_cast<std::size_t>(count));
    first += count;
  }
}

std::int32_t TokenShards::source_of(std::int64_t document) const {
  const Place place = place_of(document);
  return place.shard->source_of(place.document);
}

void TokenShards::read(std::int64_t document, std::int64_t begin, std::span<std::int32_t> into) const {
  const Place place = place_of(document);
  const auto file = place.shard->file();
  const Range tokens = place.shard->tokens_of(*file, place.document);
  const std::int64_t count = std::ssize(into);
  require(begin >= 0 && begin <= tokens.count() && count <= tokens.count() - begin,
          "{} tokens from {} on do not exist in document {}, which has {}", count, begin, document, tokens.count());
  place.shard->read(*file, tokens.begin + begin, into);
}

std::vector<std::int32_t> TokenShards::at(std::int64_t document) const {
  const Place place = place_of(document);
  const auto file = place.shard->file();
  const Range range = place.shard->tokens_of(*file, place.document);
  auto tokens = elements_for<std::int32_t>(static_cast<std::uint64_t>(range.count()), place.shard->location());
  place.shard->read(*file, range.begin, tokens);
  return tokens;
}

std::string TokenShards::content() const {
  std::vector<std::string> contents(shards_.size());
  std::atomic<std::int64_t> versions = 0;
  for_each_item(num_shards(), 0, [&](std::int64_t number) {
    const Shard& shard = *shards_[static_cast<std::size_t>(number)];
    std::string& content = contents[static_cast<std::size_t>(number)];
    const auto digest = shard.metadata().find(std::string(digest_key));
    const bool is_known = digest != shard.metadata().end();
    content = is_known ? digest->second : content_or_version_at(shard.location());
    if (!is_known && content.find(", version ") != content.npos) ++versions;
  });
  std::string all;
  for (const std::string& content : contents) all += content + '\n';
  return fmt::format("{} documents of {} tokens in {} shards, digest {:016x}{}", num_documents_, num_tokens_, num_shards(),
                     digest_of_bytes(std::as_bytes(std::span(all))),
                     versions > 0 ? fmt::format(" with the versions of {} of them by their servers", versions.load()) : "");
}

bool TokenShards::has_sources() const noexcept {
  return std::ranges::any_of(shards_, [](const auto& shard) { return shard->has_sources(); });
}

std::int64_t TokenShards::largest_token() const {
  std::int64_t largest = 0;
  for (const auto& shard : shards_) largest = std::max(largest, shard->largest_token());
  return largest;
}

void TokenShards::check_vocabulary(std::int64_t size) const {
  for (const auto& shard : shards_) {
    const std::optional<std::int64_t> largest = shard->said_largest();
    if (!largest) {
      shard->verify(size - 1);
    } else if (*largest < 0 || *largest >= size) {
      refuse_shard(shard->location(), fmt::format("it has the token {}, the vocabulary has {}", *largest, size), tokens_name,
                   "does the tokenizer belong to the model?");
    }
  }
}

void TokenShards::verify(std::optional<std::int64_t> largest) const {
  for (const auto& shard : shards_) shard->verify(largest);
}

void write_token_shard(const Location& file, std::span<const std::int32_t> tokens, std::span<const std::int64_t> ends,
                       std::span<const std::int32_t> sources, std::int32_t largest_token, SafetensorsMetadata metadata) {
  require(!ends.empty(), "a token shard needs at least one document");
  require(sources.empty() || sources.size() == ends.size(), "{} sources of {} documents", sources.size(), ends.size());
  std::int64_t before = 0;
  for (const std::int64_t end : ends) {
    require(end > before && end <= std::ssize(tokens), "a document is said to be the tokens [{}, {}) of {}", before, end,
            tokens.size());
    before = end;
  }
  require(before == std::ssize(tokens), "the last document ends at {}, but there are {} tokens", before, tokens.size());
  for (const std::int32_t token : tokens) {
    require(token >= 0 && token <= largest_token, "the token {} does not lie in [0, {}]", token, largest_token);
  }
  std::vector<std::uint16_t> narrow;
  const bool is_narrow = largest_token <= std::numeric_limits<std::uint16_t>::max();
  if (is_narrow) narrow.assign(tokens.begin(), tokens.end());
  metadata[std::string(format_key)] = format_name;
  metadata[std::string(largest_key)] = fmt::format("{}", std::ranges::max(tokens));
  metadata[std::string(digest_key)] =
      digest_text(std::ssize(tokens), digest_of_bytes(std::as_bytes(tokens)), digest_of_bytes(std::as_bytes(ends)),
                  digest_of_bytes(std::as_bytes(sources)));
  std::vector<TensorRef> tensors{
      {.name = std::string(ends_name), .dtype = DType::int64, .shape = {std::ssize(ends)}, .data = ends.data()}};
  if (!sources.empty()) {
    tensors.push_back(
        {.name = std::string(sources_name), .dtype = DType::int32, .shape = {std::ssize(sources)}, .data = sources.data()});
  }
  tensors.push_back({.name = std::string(tokens_name),
                     .dtype = is_narrow ? DType::uint16 : DType::uint32,
                     .shape = {std::ssize(tokens)},
                     .data = is_narrow ? static_cast<const void*>(narrow.data()) : static_cast<const void*>(tokens.data())});
  write_safetensors(file, tensors, metadata);
}

}  // namespace trireme::data
