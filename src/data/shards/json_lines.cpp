#include "trireme/data/shards/json_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/shards/shard_index.hpp"
#include "data/sources/lines.hpp"
#include "data/sources/ranged_file.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/bad_samples.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t most_piece = std::uint64_t{1} << 31;  // that is looked through at once
constexpr std::int64_t lines_of_block = 8;                    // of which the index has the first one's place

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
  std::uint64_t piece = 1 << 24;
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

bool has_offsets_of_lines(const ShardIndex& index) {
  return std::ssize(index.offsets) == (index.count + lines_of_block - 1) / lines_of_block + 1;
}

// For messages: editors know lines, and who reads from afar knows bytes.
std::string place_of(const TextLine& line) {
  if (!line.file.is_file_path()) return fmt::format("the line at byte {}", line.byte);
  return fmt::format("line {}", line_number_at(line.file, line.byte));
}

}  // namespace

struct JsonLines::State : IndexedShards {
  State(std::vector<Location> locations, int workers)
      : IndexedShards(std::move(locations), workers, "lines of a file", has_offsets_of_lines, index_of_lines) {}
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
  TextLine result{
      .text = {}, .memory = state_->files.file(number)->range(begin, count), .file = files()[number], .byte = begin};
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
  try {
    return text_in_line(line.text, key);
  } catch (const Error& error) {
    throw BadSample({.message = fmt::format("{}: {}", place_of(line), error.fields().message),
                     .path = line.file.string(),
                     .hint = fmt::format("each line is an object such as {{\"{}\": \"...\"}}", key)});
  }
}

}  // namespace trireme::data
