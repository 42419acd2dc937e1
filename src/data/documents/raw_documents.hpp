#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/sources/byte_stream.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {

// Where a document begins: the number of its file, and the byte in it.
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

// "line 12" of JSON lines, else "byte 345": reads the file up to there.
std::string words_of(const DocumentPlace& place, const Location& file);

// The documents of files one after the other, from a place on: each line with more than spaces of JSON lines; of another file
// what lies between separators, or the whole. Keeps a document and what was read behind it.
class RawDocuments {
 public:
  RawDocuments(std::span<const Location> files, std::string separator, const DocumentPlace& first)
      : files_(files), separator_(std::move(separator)), place_(first) {}

  std::optional<RawDocument> next();

 private:
  // Of the file at place_; nothing: it has ended.
  std::optional<RawDocument> next_line();
  std::optional<RawDocument> next_text();  // up to the next separator, which goes with it

  void pass(std::uint64_t bytes);
  bool read_on();  // false: the file has ended

  std::span<const Location> files_;
  std::string separator_;
  DocumentPlace place_;
  std::unique_ptr<ByteStream> stream_;  // of the file at place_
  std::string read_;                    // bytes of it
  std::size_t used_ = 0;                // of them
};

}  // namespace trireme::data
