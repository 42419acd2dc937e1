#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/sources/byte_stream.hpp"
#include "trireme/data/shards/parquet_rows.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {

// Where a document begins: the number of its file, and the byte in it, or the row of a Parquet file.
struct DocumentPlace {
  std::int64_t file = 0;
  std::int64_t byte = 0;

  bool operator==(const DocumentPlace&) const = default;
};

// A document before it is tokenized.
struct RawDocument {
  std::string text;  // of JSON lines the line
  DocumentPlace place;
  DocumentPlace next;  // where what follows it begins
};

bool has_json_lines(const Location& file);  // by its name
bool is_parquet(const Location& file);      // likewise

// "line 12" of JSON lines, "row 12" of Parquet, else "byte 345": reads lines up to there.
std::string words_of(const DocumentPlace& place, const Location& file);

// The documents of files one after the other, from a place on: each line with more than spaces of JSON lines; the text column
// of each row of Parquet, where a null is an empty text; of another file what lies between separators, or the whole. Keeps a
// document and what was read behind it, or a row group.
class RawDocuments {
 public:
  RawDocuments(std::span<const Location> files, std::string separator, std::string text_column, const DocumentPlace& first)
      : files_(files), separator_(std::move(separator)), text_column_(std::move(text_column)), place_(first) {}

  std::optional<RawDocument> next();

 private:
  // Of the file at place_; nothing: it has ended.
  std::optional<RawDocument> next_line();
  std::optional<RawDocument> next_text();  // up to the next separator, which goes with it
  std::optional<RawDocument> next_row(const Location& file);

  void pass(std::uint64_t bytes);
  bool read_on();  // false: the file has ended

  std::span<const Location> files_;
  std::string separator_;
  std::string text_column_;
  DocumentPlace place_;
  std::optional<ParquetRows> rows_;     // of the file at place_, or:
  std::unique_ptr<ByteStream> stream_;  // of the file at place_
  std::string read_;                    // bytes of it
  std::size_t used_ = 0;                // of them
};

}  // namespace trireme::data
