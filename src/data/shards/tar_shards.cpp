#include "trireme/data/shards/tar_shards.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "data/shards/shard_index.hpp"
#include "data/shards/tar_reader.hpp"
#include "data/sources/ranged_file.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/files/file_content.hpp"

namespace trireme::data {
namespace {

constexpr std::string_view tar_kind = "samples of a tar archive";

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& letter : small) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return small;
}

// The name that a member has in a sample; nothing where it is passed over.
std::optional<TarFieldName> name_in_sample(const TarMember& member, const TarReader& reader) {
  if (member.kind == TarKind::other) return std::nullopt;
  const std::optional<TarFieldName> name = tar_field_name(member.name);
  if (!name) return std::nullopt;
  if (member.kind == TarKind::link) {
    reader.refuse(member.begin, fmt::format("the member \"{}\" is a link", member.name),
                  "make the archive with --dereference --hard-dereference");
  }
  if (leads_outside(member.name)) {
    reader.refuse(member.begin, fmt::format("the member \"{}\" leads outside of the archive's folder", member.name),
                  "make the archive of relative paths");
  }
  return name;
}

void refuse_repeated(const TarMember& member, const TarReader& reader) {
  reader.refuse(member.begin, fmt::format("the member \"{}\" is the second of its sample with this extension", member.name),
                "give each sample a key of its own");
}

// The first byte of each sample, and the byte behind the last one.
ShardIndex index_of_archive(const RangedFile& file, const Location& shard) {
  const std::size_t request = shard.is_file_path() ? 1 << 16 : 1 << 22;
  ByteWindow window(file, request);
  TarReader reader([&](std::uint64_t begin, std::size_t count) { return window.bytes(begin, count); }, shard, 0, file.size());
  ShardIndex index;
  std::string key;
  std::vector<std::string> extensions;
  while (const std::optional<TarMember> member = reader.next()) {
    const std::optional<TarFieldName> name = name_in_sample(*member, reader);
    if (!name) continue;
    if (index.offsets.empty() || name->key != key) {
      index.offsets.push_back(static_cast<std::int64_t>(member->begin));
      key = name->key;
      extensions.clear();
    }
    std::string extension = in_small_letters(name->extension);
    if (std::ranges::find(extensions, extension) != extensions.end()) refuse_repeated(*member, reader);
    extensions.push_back(std::move(extension));
  }
  reader.check_end();
  index.count = std::ssize(index.offsets);
  index.offsets.push_back(static_cast<std::int64_t>(reader.position()));
  return index;
}

struct IndexedShard {
  ShardIndex index;
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;
  bool is_stored = false;  // the index was read from its file
};

IndexedShard indexed(const Location& shard) {
  const RangedFile file(shard);
  IndexedShard result{.index = {}, .bytes = file.size(), .digest = digest_of_ends(file)};
  std::optional<ShardIndex> stored = read_index(shard, file, tar_kind, result.digest);
  result.is_stored = stored && std::cmp_equal(stored->offsets.size(), stored->count + 1);
  result.index = result.is_stored ? *std::move(stored) : index_of_archive(file, shard);
  return result;
}

}  // namespace

const TarField* TarSample::find(std::string_view extension) const {
  const auto found = std::ranges::find(fields, extension, &TarField::extension);
  return found == fields.end() ? nullptr : &*found;
}

const TarField& TarSample::at(std::string_view extension) const {
  if (const TarField* field = find(extension)) return *field;
  std::vector<std::string_view> there;
  for (const TarField& field : fields) there.push_back(field.extension);
  throw Error({.code = ErrorCode::corrupt_file,
               .message = fmt::format("the sample \"{}\" has no file .{}", key, extension),
               .path = shard.string(),
               .had = fmt::format("{}", fmt::join(there, ", ")),
               .hint = "the files of a sample follow each other in the archive, as of tar --sort=name"});
}

struct TarShards::State {
  explicit State(std::vector<Location> locations) : files(std::move(locations)), shards(files.locations().size()) {}

  OpenFiles files;
  std::vector<IndexedShard> shards;
  std::vector<std::int64_t> first{0};  // sample of each shard, and how many there are
};

TarShards::TarShards(std::vector<Location> shards, const TarOptions& options) {
  require(!shards.empty(), "no shards are named");
  const auto state = std::make_shared<State>(std::move(shards));
  for_each_item(std::ssize(state->shards), options.workers, [&](std::int64_t shard) {
    const auto at = static_cast<std::size_t>(shard);
    state->shards[at] = indexed(state->files.locations()[at]);
  });
  for (const IndexedShard& shard : state->shards) state->first.push_back(state->first.back() + shard.index.count);
  state_ = state;
}

std::int64_t TarShards::size() const { return state_->first.back(); }

const std::vector<Location>& TarShards::shards() const { return state_->files.locations(); }

TarSample TarShards::at(std::int64_t index) const {
  require(index >= 0 && index < size(), "sample {} does not exist among {}", index, size());
  const auto after = std::ranges::upper_bound(state_->first, index);
  const auto number = static_cast<std::size_t>(after - state_->first.begin() - 1);
  const IndexedShard& shard = state_->shards[number];
  const Location& location = shards()[number];
  const auto place = static_cast<std::size_t>(index - state_->first[number]);
  const auto begin = static_cast<std::uint64_t>(shard.index.offsets[place]);
  const auto end = static_cast<std::uint64_t>(shard.index.offsets[place + 1]);
  const std::shared_ptr<const RangedFile> file = state_->files.file(number);
  const auto refuse_other = [&](std::uint64_t byte) {
    throw Error(
        {.code = ErrorCode::corrupt_file,
         .message = fmt::format("byte {}: the archive is not the one that was looked through", byte),
         .path = location.string(),
         .hint = fmt::format("archives may not change while they are read; remove {} and begin again", index_of(location))});
  };
  if (file->size() != shard.bytes) refuse_other(std::min(file->size(), shard.bytes));
  TarSample sample{.key = {}, .memory = file->range(begin, static_cast<std::size_t>(end - begin)), .shard = location};
  const auto bytes = [&](std::uint64_t first, std::uint64_t count) {
    return std::span(sample.memory.get() + (first - begin), static_cast<std::size_t>(count));
  };
  TarReader reader(bytes, location, begin, end);
  while (reader.position() != end) {
    const std::optional<TarMember> member = reader.next();
    if (!member) refuse_other(reader.position());
    const std::optional<TarFieldName> name = name_in_sample(*member, reader);
    if (!name) continue;
    if (sample.fields.empty()) sample.key = name->key;
    if (name->key != sample.key) refuse_other(member->begin);
    std::string extension = in_small_letters(name->extension);
    if (sample.find(extension) != nullptr) refuse_repeated(*member, reader);
    sample.fields.push_back({.extension = std::move(extension), .bytes = bytes(member->data, member->size)});
  }
  if (sample.fields.empty()) refuse_other(begin);
  return sample;
}

void TarShards::write_index() const {
  for (std::size_t shard = 0; shard < state_->shards.size(); ++shard) {
    const IndexedShard& one = state_->shards[shard];
    if (!one.is_stored) data::write_index(shards()[shard], one.index, tar_kind, one.digest);
  }
}

std::string content_of(const TarShards& shards) {
  std::uint64_t sum = 0;
  for (const IndexedShard& shard : shards.state_->shards) {
    sum = 31 * sum + shard.digest;
    sum = 31 * sum + digest_of_bytes(std::as_bytes(std::span(shard.index.offsets)));
  }
  return fmt::format("{} samples in {} tar archives, digest {:016x}", shards.size(), shards.shards().size(), sum);
}

}  // namespace trireme::data
