#include "data/documents/raw_documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace trireme::data {
namespace {

constexpr std::string_view utf8_mark = "\xef\xbb\xbf";

}  // namespace

bool has_json_lines(const Location& file) {
  std::string_view name = file.string();
  if (name.ends_with(".gz")) name.remove_suffix(3);
  constexpr std::array<std::string_view, 3> endings{".jsonl", ".json", ".ndjson"};
  return std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

bool is_parquet(const Location& file) { return file.string().ends_with(".parquet"); }

std::string words_of(const DocumentPlace& place, const Location& file) {
  if (is_parquet(file)) return fmt::format("row {}", place.byte);
  if (!has_json_lines(file)) return fmt::format("byte {}", place.byte);
  ByteStream stream(file, 0);
  std::int64_t lines = 1, left = place.byte;
  for (std::string piece; left > 0 && stream.read(piece); piece.clear()) {
    const auto count = std::min<std::int64_t>(left, std::ssize(piece));
    lines += std::count(piece.begin(), piece.begin() + count, '\n');
    left -= count;
  }
  return fmt::format("line {}", lines);
}

std::optional<RawDocument> RawDocuments::next() {
  for (; place_.file < std::ssize(files_); place_ = {place_.file + 1, 0}) {
    const Location& file = files_[static_cast<std::size_t>(place_.file)];
    if (is_parquet(file)) {
      if (auto document = next_row(file)) return document;
      rows_.reset();
      continue;
    }
    if (!stream_) stream_ = std::make_unique<ByteStream>(file, place_.byte);
    const bool has_lines = has_json_lines(file);
    for (;;) {
      const DocumentPlace begin = place_;
      std::optional<std::string> text = next_of_file();
      if (!text) break;
      if (begin.byte == 0 && text->starts_with(utf8_mark)) text->erase(0, utf8_mark.size());
      if (has_lines && text->find_first_not_of(" \t\r") == text->npos) continue;
      return RawDocument{.text = *std::move(text), .place = begin, .next = place_};
    }
    stream_.reset();
    read_.clear();
    used_ = 0;
  }
  return std::nullopt;
}

std::optional<RawDocument> RawDocuments::next_row(const Location& file) {
  if (!rows_) rows_.emplace(std::vector{file}, ParquetOptions{.columns = {text_column_}, .cached_bytes = 0, .workers = 1});
  if (place_.byte >= rows_->size()) return std::nullopt;
  const ParquetRow row = rows_->at(place_.byte);
  const DocumentPlace begin = place_;
  ++place_.byte;
  return RawDocument{
      .text = row.is_null(text_column_) ? std::string() : std::string(row.text(text_column_)), .place = begin, .next = place_};
}

// Up to the next separator, which goes with it. Nothing: the file has ended.
std::optional<std::string> RawDocuments::next_of_file() {
  const Location& file = files_[static_cast<std::size_t>(place_.file)];
  const std::string_view separator = has_json_lines(file) ? std::string_view("\n") : std::string_view(separator_);
  const auto take = [&](std::size_t count, std::size_t separated) {
    std::string text = read_.substr(used_, count);
    used_ += count + separated;
    place_.byte += static_cast<std::int64_t>(count + separated);
    return text;
  };
  for (std::size_t looked = used_;;) {
    const std::size_t at = separator.empty() ? std::string::npos : read_.find(separator, looked);
    if (at != std::string::npos) return take(at - used_, separator.size());
    read_.erase(0, used_);  // the file is read on: what was given out goes
    used_ = 0;
    looked = read_.size() < separator.size() ? 0 : read_.size() - separator.size() + 1;
    if (separator.empty()) looked = read_.size();
    if (stream_->read(read_)) continue;
    return read_.empty() ? std::nullopt : std::optional(take(read_.size(), 0));
  }
}

}  // namespace trireme::data
