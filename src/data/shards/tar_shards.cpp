#include "trireme/data/shards/tar_shards.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "data/shards/shard_index.hpp"
#include "data/shards/tar_reader.hpp"
#include "data/sources/ranged_file.hpp"
#include "trireme/data/sources/bad_samples.hpp"

namespace trireme::data {
namespace {

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

// Whether a sample takes another file of this extension; `has` tells whether it has one.
void check_file(const TarMember& member, std::size_t num_files, bool has, const TarReader& reader) {
  constexpr std::size_t most_files = 10'000;
  if (num_files >= most_files) {
    reader.refuse(member.begin, fmt::format("the sample of the member \"{}\" has more than {} files", member.name, most_files),
                  "a key goes up to the first dot: give each sample one of its own");
  }
  if (!has) return;
  reader.refuse(member.begin, fmt::format("the member \"{}\" is the second of its sample with this extension", member.name),
                "give each sample a key of its own");
}

// The first byte of each sample, and the byte behind the last one.
ShardIndex index_of_archive(const RangedFile& file, const Location& shard) {
  constexpr std::size_t request = 1 << 22;
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
    check_file(*member, extensions.size(), std::ranges::find(extensions, extension) != extensions.end(), reader);
    extensions.push_back(std::move(extension));
  }
  reader.check_end();
  index.count = std::ssize(index.offsets);
  index.offsets.push_back(static_cast<std::int64_t>(reader.position()));
  return index;
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
  throw BadSample({.message = fmt::format("the sample \"{}\" has no file .{}", key, extension),
                   .path = shard.string(),
                   .had = fmt::format("{}", fmt::join(there, ", ")),
                   .hint = "the files of a sample follow each other in the archive, as of tar --sort=name"});
}

struct TarShards::State : IndexedShards {
  State(std::vector<Location> locations, int workers)
      : IndexedShards(
            std::move(locations), workers, "samples of a tar archive",
            [](const ShardIndex& index) { return std::ssize(index.offsets) == index.count + 1; }, index_of_archive) {}
};

TarShards::TarShards(std::vector<Location> shards, const TarOptions& options)
    : state_(std::make_shared<const State>(std::move(shards), options.workers)) {}

std::int64_t TarShards::size() const { return state_->size(); }

const std::vector<Location>& TarShards::shards() const { return state_->files.locations(); }

TarSample TarShards::at(std::int64_t index) const {
  const auto [number, place] = state_->place_of(index);
  const std::vector<std::int64_t>& offsets = state_->shards[number].index.offsets;
  const auto begin = static_cast<std::uint64_t>(offsets[static_cast<std::size_t>(place)]);
  const auto end = static_cast<std::uint64_t>(offsets[static_cast<std::size_t>(place) + 1]);
  const Location& location = shards()[number];
  TarSample sample{
      .key = {}, .memory = state_->files.file(number)->range(begin, static_cast<std::size_t>(end - begin)), .shard = location};
  const auto bytes = [&](std::uint64_t first, std::uint64_t count) {
    return std::span(sample.memory.get() + (first - begin), static_cast<std::size_t>(count));
  };
  TarReader reader(bytes, location, begin, end);
  while (reader.position() != end) {
    const std::optional<TarMember> member = reader.next();
    if (!member) refuse_other_shard(location, reader.position());
    const std::optional<TarFieldName> name = name_in_sample(*member, reader);
    if (!name) continue;
    if (sample.fields.empty()) sample.key = name->key;
    if (name->key != sample.key) refuse_other_shard(location, member->begin);
    std::string extension = in_small_letters(name->extension);
    check_file(*member, sample.fields.size(), sample.find(extension) != nullptr, reader);
    sample.fields.push_back({.extension = std::move(extension), .bytes = bytes(member->data, member->size)});
  }
  if (sample.fields.empty()) refuse_other_shard(location, begin);
  return sample;
}

void TarShards::write_index() const { state_->write_index(); }

std::string content_of(const TarShards& shards) {
  return fmt::format("{} samples in {} tar archives, digest {:016x}", shards.size(), shards.shards().size(),
                     shards.state_->digest());
}

}  // namespace trireme::data
