#include "data/documents/raw_documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "data/sources/lines.hpp"

namespace trireme::data {
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
  return fmt::format("line {}", line_number_at(file, static_cast<std::uint64_t>(place.byte)));
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
    if (auto document = has_json_lines(file) ? next_line() : next_text()) return document;
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

std::optional<RawDocument> RawDocuments::next_line() {
  for (bool goes_on = true;; goes_on = read_on()) {
    LineScanner lines(std::string_view(read_).substr(used_), static_cast<std::uint64_t>(place_.byte), goes_on);
    const auto line = lines.next();
    pass(lines.position() - static_cast<std::uint64_t>(place_.byte));
    if (line) {
      return RawDocument{
          .text = std::string(line->text), .place = {place_.file, static_cast<std::int64_t>(line->byte)}, .next = place_};
    }
    if (!goes_on) return std::nullopt;
  }
}

std::optional<RawDocument> RawDocuments::next_text() {
  for (bool goes_on = true;; goes_on = read_on()) {
    const std::size_t end = separator_.empty() ? std::string::npos : read_.find(separator_, used_);
    if (end == std::string::npos && goes_on) continue;
    if (used_ == read_.size()) return std::nullopt;
    RawDocument document{
        .text = read_.substr(used_, end == std::string::npos ? end : end - used_), .place = place_, .next = {}};
    pass(document.text.size() + (end == std::string::npos ? 0 : separator_.size()));
    document.next = place_;
    if (document.place.byte == 0 && document.text.starts_with(utf8_mark)) document.text.erase(0, utf8_mark.size());
    return document;
  }
}

void RawDocuments::pass(std::uint64_t bytes) {
  used_ += bytes;
  place_.byte += static_cast<std::int64_t>(bytes);
}

// As much again as is left: a long document is looked through a few times alone.
bool RawDocuments::read_on() {
  read_.erase(0, used_);
  used_ = 0;
  const std::size_t before = read_.size();
  while (read_.size() <= 2 * before && stream_->read(read_)) continue;
  return read_.size() > before;
}

}  // namespace trireme::data
