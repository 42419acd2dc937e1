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
  std::uint64_t byte;  // of the file, where it begins
};

struct JsonLinesOptions {
  int workers = 0;  // threads that look through files at first; 0: all of this rank
};

// The lines of files that need not fit into memory, as a dataset for Loader: JSON lines, or lines of any text.
//
//   const data::JsonLines lines(data::locations_of("part-{00..31}.jsonl"));
//   const std::string article = data::text_of(lines.at(12'345'678), "text");
//
// Blank lines, a carriage return at the end of a line and a mark of UTF-8 are passed over. Files are looked through once for
// where lines begin. write_index() keeps that beside each, in x.jsonl.index, as TarShards does. In memory a line takes one
// byte. Files of this machine are mapped; of others at() reads up to 8 lines by one request. Threads may call at().
//
// Throws Error{corrupt_file} for a file that is packed.
class JsonLines {
 public:
  explicit JsonLines(std::vector<Location> files, const JsonLinesOptions& options = {});

  std::int64_t size() const;  // lines
  TextLine at(std::int64_t index) const;
  const std::vector<Location>& files() const;

  void write_index() const;  // of each file that has none that is used

  friend std::string content_of(const JsonLines& lines);  // of digests of sizes, beginnings and ends, and where lines begin

 private:
  struct State;
  std::shared_ptr<const State> state_;
};
std::string content_of(const JsonLines& lines);

// The text that a line's JSON object has under this key. Error{corrupt_file} names file and line where it has none.
std::string text_of(const TextLine& line, std::string_view key);

}  // namespace data
}  // namespace trireme
