#include "trireme/data/loaders/tar_images.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "trireme/core/parse_number.hpp"
#include "trireme/data/sources/bad_samples.hpp"
#include "trireme/files/json_fault.hpp"

namespace trireme::data {
namespace {

[[noreturn]] void refuse_sample(const TarSample& sample, const std::string& message, std::string hint) {
  throw BadSample({.message = fmt::format("the sample \"{}\": {}", sample.key, message),
                   .path = sample.shard.string(),
                   .hint = std::move(hint)});
}

const TarField& image_in(const TarSample& sample, const TarImageOptions& options) {
  for (const std::string& field : options.image_fields) {
    if (const TarField* found = sample.find(field)) return *found;
  }
  refuse_sample(sample, fmt::format("no image, .{}", fmt::join(options.image_fields, ", .")),
                "name what images end in by .image_fields; the files of a sample follow each other in the archive");
}

std::int32_t number_of_key(const TarSample& sample, std::string_view text, const TarImageOptions& options) {
  const auto object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object()) {
    refuse_sample(sample, fmt::format(".{} is no JSON object{}", options.label_field, why_no_json(text)),
                  "make the archive again");
  }
  const auto found = object.find(options.label_key);
  if (found != object.end() && found->is_number_integer() && *found >= 0 && *found <= INT32_MAX) return *found;
  refuse_sample(sample,
                fmt::format("\"{}\" of .{} is {}", options.label_key, options.label_field,
                            found == object.end() ? "not there" : found->dump()),
                "the label is a whole number from 0 on: name its key by .label_key");
}

std::int32_t label_in(const TarSample& sample, const TarImageOptions& options) {
  if (options.label_field.empty()) return 0;
  std::string_view text = sample.at(options.label_field).text();
  if (!options.label_key.empty()) return number_of_key(sample, text, options);
  constexpr std::string_view blank = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
  text = text.substr(0, text.find_last_not_of(blank) + 1);
  if (const auto label = parse_number<std::int32_t>(text)) return *label;
  refuse_sample(sample, fmt::format(".{} is \"{}\"", options.label_field, text.substr(0, 40)),
                "a label is a whole number; name its file by .label_field, its key in a JSON file by .label_key");
}

}  // namespace

ImageDataset tar_images(TarShards shards, TarImageOptions options) {
  std::string content = content_of(shards);
  const std::int64_t count = shards.size();
  const EncodedImageOptions images = options.images;
  const auto read = [shards = std::move(shards), options = std::move(options)](std::int64_t index) -> EncodedImage {
    TarSample sample = shards.at(index);
    return {.bytes = image_in(sample, options).bytes,
            .memory = sample.memory,
            .label = label_in(sample, options),
            .name = fmt::format("{}: {}", sample.shard, sample.key)};
  };
  return encoded_images(count, images, read, std::move(content));
}

}  // namespace trireme::data
