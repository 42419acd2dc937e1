#include "trireme/data/shards/json_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "data/shards/shard_index.hpp"
#include "data/sources/ranged_file.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/bad_samples.hpp"
#include "trireme/files/json_fault.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t most_piece = std::uint64_t{1} << 31;  // that is read of another machine's file at once
constexpr std::int64_t lines_of_block = 8;                    // of which the index has the first one's place

// Lines of a text that begins at byte `begin` of a file.
class LineScanner {
 public:
  struct Line {
    std::string_view text;
    std::uint64_t byte;
  };

  // Where the file goes on behind the text, a last line without an end is not looked at.
  LineScanner(std::string_view text, std::uint64_t begin, bool goes_on = false) : rest_(text), at_(begin), goes_on_(goes_on) {}

  // The next line that is not blank.
  std::optional<Line> next() {
    while (!rest_.empty()) {
      const void* end = std::memchr(rest_.data(), '\n', rest_.size());
      if (end == nullptr && goes_on_) return std::nullopt;
      const std::size_t length =
          end != nullptr ? static_cast<std::size_t>(static_cast<const char*>(end) - rest_.data()) : rest_.size();
      Line line{.text = rest_.substr(0, length), .byte = at_};
      rest_.remove_prefix(std::min(length + 1, rest_.size()));
      at_ += length + 1;
      if (line.text.ends_with('\r')) line.text.remove_suffix(1);
      if (line.byte == 0 && line.text.starts_with("\xef\xbb\xbf")) line.text.remove_prefix(3);  // a mark of UTF-8
      if (line.text.find_first_not_of(" \t\r") != line.text.npos) return line;
    }
    return std::nullopt;
  }

  std::uint64_t position() const { return at_; }  // behind the lines so far

 private:
  std::string_view rest_;
  std::uint64_t at_;
  bool goes_on_;
};

std::string_view as_text(const std::byte* bytes, std::size_t count) { return {reinterpret_cast<const char*>(bytes), count}; }

[[noreturn]] void refuse_long(std::uint64_t byte, const Location& path) {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = fmt::format("the line at byte {} has more than {} bytes", byte, most_piece / 2),
               .path = path.string(),
               .hint = "give each item a line of its own"});
}

void refuse_packed(std::string_view begin, const Location& path) {
  const bool is_gzip = begin.starts_with("\x1f\x8b"), is_zstd = begin.starts_with("\x28\xb5\x2f\xfd");
  if (!is_gzip && !is_zstd) return;
  throw Error(
      {.code = ErrorCode::corrupt_file,
       .message = fmt::format("the file is packed by {}: its lines can't be read one by one", is_gzip ? "gzip" : "zstd"),
       .path = path.string(),
       .hint = is_gzip ? "unpack it: gunzip FILE" : "unpack it: unzstd FILE"});
}

// The places of the first line of each block, and the file's size.
ShardIndex index_of_lines(const RangedFile& file, const Location& path) {
  ShardIndex index;
  std::uint64_t piece = path.is_file_path() ? file.size() : 1 << 24;
  for (std::uint64_t at = 0; at < file.size();) {
    const auto count = static_cast<std::size_t>(std::min(piece, file.size() - at));
    const auto memory = file.range(at, count);
    const std::string_view text = as_text(memory.get(), count);
    if (at == 0) refuse_packed(text, path);
    LineScanner scanner(text, at, at + count < file.size());
    while (const auto line = scanner.next()) {
      if (index.count++ % lines_of_block == 0) index.offsets.push_back(static_cast<std::int64_t>(line->byte));
    }
    if (scanner.position() == at) {  // a line is longer
      piece *= 2;
      if (piece > most_piece) refuse_long(at, path);
    }
    at = scanner.position();
  }
  index.offsets.push_back(static_cast<std::int64_t>(file.size()));
  return index;
}

std::int64_t offsets_of_lines(std::int64_t count) { return (count + lines_of_block - 1) / lines_of_block + 1; }

// For messages: editors know lines, and who reads from afar knows bytes.
std::string place_of(const TextLine& line) {
  if (!line.file.is_file_path()) return fmt::format("the line at byte {}", line.byte);
  const RangedFile file(line.file);
  const auto count = static_cast<std::size_t>(std::min(line.byte, file.size()));
  const auto memory = file.range(0, count);
  const std::string_view before = as_text(memory.get(), count);
  return fmt::format("line {}", std::ranges::count(before, '\n') + 1);
}

}  // namespace

struct JsonLines::State : IndexedShards {
  State(std::vector<Location> locations, int workers)
      : IndexedShards(std::move(locations), workers, "lines of a file", offsets_of_lines, index_of_lines) {}
};

JsonLines::JsonLines(std::vector<Location> files, const JsonLinesOptions& options)
    : state_(std::make_shared<const State>(std::move(files), options.workers)) {}

std::int64_t JsonLines::size() const { return state_->size(); }

const std::vector<Location>& JsonLines::files() const { return state_->files.locations(); }

TextLine JsonLines::at(std::int64_t index) const {
  const auto [number, place] = state_->place_of(index);
  const std::vector<std::int64_t>& offsets = state_->shards[number].index.offsets;
  const auto block = static_cast<std::size_t>(place / lines_of_block);
  const auto begin = static_cast<std::uint64_t>(offsets[block]);
  const auto count = static_cast<std::size_t>(offsets[block + 1] - offsets[block]);
  TextLine result{.text = {}, .memory = state_->open(number)->range(begin, count), .file = files()[number], .byte = begin};
  LineScanner scanner(as_text(result.memory.get(), count), begin);
  for (std::int64_t line = 0; line <= place % lines_of_block; ++line) {
    const auto found = scanner.next();
    if (!found) refuse_other_shard(result.file, begin);
    result.text = found->text;
    result.byte = found->byte;
  }
  return result;
}

void JsonLines::write_index() const { state_->write_index(); }

std::string content_of(const JsonLines& lines) {
  return fmt::format("{} lines in {} files, digest {:016x}", lines.size(), lines.files().size(), lines.state_->digest());
}

std::string text_of(const TextLine& line, std::string_view key) {
  const auto refuse = [&](const std::string& message) {
    throw BadSample({.message = fmt::format("{}: {}", place_of(line), message),
                     .path = line.file.string(),
                     .hint = fmt::format("each line is an object such as {{\"{}\": \"...\"}}", key)});
  };
  auto object = nlohmann::json::parse(line.text, nullptr, false);
  if (!object.is_object()) refuse("this is no JSON object" + why_no_json(line.text));
  const auto found = object.find(key);
  if (found == object.end()) refuse(fmt::format("there is no \"{}\"", key));
  if (!found->is_string()) refuse(fmt::format("\"{}\" is no text", key));
  return std::move(found->get_ref<std::string&>());
}

}  // namespace trireme::data
