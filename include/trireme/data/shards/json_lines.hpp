#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A line of a file, without its end.
struct TextLine {
  std::string_view text;
  std::shared_ptr<const std::byte> memory;  // keeps the text
  Location file;
  std::uint64_t byte;  // the offset in the file where the line begins
};

struct JsonLinesOptions {
  int workers = 0;  // threads that index the files; 0: all threads of this rank
};

// The lines of files that need not fit into memory, as a dataset for Loader: JSON lines, or lines of any text.
//
//   const data::JsonLines lines(data::locations_of("part-{00..31}.jsonl"));
//   const std::string article = data::text_of(lines.at(12'345'678), "text");
//
// Blank lines, a carriage return at the end of a line and a UTF-8 mark are skipped. The constructor reads each file once to
// find the beginnings of lines. write_index() saves them beside the file, in x.jsonl.index, as TarShards does. A line takes one
// byte of memory. Local files are mapped; from other files at() reads up to 8 lines with one request. Several threads may call
// at().
//
// Throws Error{corrupt_file} for a compressed file.
class JsonLines {
 public:
  explicit JsonLines(std::vector<Location> files, const JsonLinesOptions& options = {});

  std::int64_t size() const;  // lines
  TextLine at(std::int64_t index) const;
  const std::vector<Location>& files() const;

  void write_index() const;  // for each file that has no valid index

  // A text that identifies the content, made from the files' sizes, beginnings and ends, and from the places where lines begin.
  friend std::string content_of(const JsonLines& lines);

 private:
  struct State;
  std::shared_ptr<const State> state_;
};
std::string content_of(const JsonLines& lines);

// The text under this key of a line's JSON object. Throws BadSample with file and line if there is none.
std::string text_of(const TextLine& line, std::string_view key);

}  // namespace data
}  // namespace trireme
