// Samples a second of tar archives, in their order and shuffled, beside copying the archives' bytes; and their images, decoded,
// cropped at random and normalized.
#include <fmt/format.h>
#include <omp.h>

#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/data/loaders/image_loader.hpp"
#include "trireme/data/loaders/tar_images.hpp"
#include "trireme/data/shards/tar_shards.hpp"
#include "trireme/data/sources/locations_of.hpp"
#include "trireme/data/sources/permutation.hpp"
#include "trireme/files/file_system.hpp"

using namespace trireme;

namespace {

// Copies what it is given: what is read counts, and a training step would do no less.
class Copy {
 public:
  void operator()(std::span<const std::byte> bytes) {
    if (room_.size() < bytes.size()) room_.resize(bytes.size());
    if (!bytes.empty()) std::memcpy(room_.data(), bytes.data(), bytes.size());
    total += bytes.size();
  }

  std::size_t total = 0;

 private:
  std::vector<std::byte> room_;
};

std::size_t read_samples(const data::TarShards& shards, const data::Permutation* order) {
  Copy copy;
  for (std::int64_t sample = 0; sample < shards.size(); ++sample) {
    for (const data::TarField& field : shards.at(order != nullptr ? (*order)(sample) : sample).fields) copy(field.bytes);
  }
  return copy.total;
}

// In pieces that stay in the cache, as those of samples do.
void copy_files(const std::vector<Location>& files) {
  constexpr std::size_t piece = 1 << 16;
  Copy copy;
  for (const Location& location : files) {
    const auto file = open_file(location);
    const auto memory = file->map();
    const std::span<const std::byte> bytes(memory.get(), file->size());
    for (std::size_t at = 0; at < bytes.size(); at += piece) copy(bytes.subspan(at, std::min(piece, bytes.size() - at)));
  }
}

// Of keys, extensions and sizes (FNV-1a), to compare what others read.
std::uint64_t digest_of(const data::TarShards& shards) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (std::int64_t index = 0; index < shards.size(); ++index) {
    const data::TarSample sample = shards.at(index);
    std::string text = sample.key;
    for (const data::TarField& field : sample.fields) text += fmt::format(" {}={}", field.extension, field.bytes.size());
    for (const char byte : text) digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return digest;
}

// Of all threads of this process: on a machine that others use too it is what the time would be on a quiet one.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Speed {
  double per_second = 0;
  double per_processor_second = 0;
};

// Images a second, by one thread.
Speed speed_of_images(const data::TarShards& shards, std::int64_t extent) {
  omp_set_num_threads(1);
  const auto images = data::tar_images(shards, {.images = {.height = extent, .width = extent, .classes = 1000}});
  const data::ImageLoader loader(images,
                                 {.batch = {.batch_size = 32},
                                  .order = data::ImageOrder::sequential,
                                  .normalization = {.mean = {0.485F, 0.456F, 0.406F}, .std = {0.229F, 0.224F, 0.225F}},
                                  .augmentation = {.random_resized_crop = data::RandomResizedCrop{}, .horizontal_flip = true}});
  const double before = processor_seconds();
  const double seconds = seconds_of([&] {
    for (std::int64_t step = 0; step < loader.steps_per_epoch(); ++step) loader.load(step);
  });
  const auto count = static_cast<double>(images.count());
  return {.per_second = count / seconds, .per_processor_second = count / (processor_seconds() - before)};
}

}  // namespace

int main(int argc, char** argv) {
  std::string pattern, json;
  int rounds = 5;
  std::int64_t extent = 0;
  CommandLine command("Reads all samples of tar archives, by one thread, in turn with copying the archives' bytes.");
  command.option("--data", pattern, "a pattern of archives, as train-{000..099}.tar");
  command.option("--rounds", rounds, "times that all are read");
  command.option("--images", extent, "decode and augment images to so many pixels each way; 0: don't", not_negative);
  command.option("--json", json, "write the figures here");
  command.require("--data");
  if (const auto code = command.parse(argc, argv)) return *code;

  const std::vector<Location> files = data::locations_of(pattern);
  copy_files(files);
  const auto open = [&] { return data::TarShards(files, {.workers = 1}); };
  const data::TarShards shards = open();
  const data::Permutation order(shards.size(), 1, 0);
  std::size_t bytes = 0;
  std::vector<double> opened, in_order, on_processor, shuffled, copied, of_floor, of_shuffled;
  for (int round = 0; round < rounds; ++round) {
    opened.push_back(seconds_of([&] { open(); }));
    const double before = processor_seconds();
    in_order.push_back(seconds_of([&] { bytes = read_samples(shards, nullptr); }));
    on_processor.push_back(processor_seconds() - before);
    copied.push_back(seconds_of([&] { copy_files(files); }));
    shuffled.push_back(seconds_of([&] { read_samples(shards, &order); }));
    of_floor.push_back(in_order.back() / copied.back());
    of_shuffled.push_back(shuffled.back() / copied.back());
  }
  const auto samples = static_cast<double>(shards.size());
  const double gigabytes = static_cast<double>(bytes) * 1e-9;
  fmt::print("{} samples of {:.0f} bytes in {} archives\n", shards.size(), static_cast<double>(bytes) / samples, files.size());
  fmt::print("looked through {:8.0f} samples/s {:6.2f} GB/s\n", samples / median(opened), gigabytes / median(opened));
  fmt::print("in order       {:8.0f} samples/s {:6.2f} GB/s   {:.2f} times as long as copying\n", samples / median(in_order),
             gigabytes / median(in_order), median(of_floor));
  fmt::print("shuffled       {:8.0f} samples/s {:6.2f} GB/s   {:.2f} times as long as copying\n", samples / median(shuffled),
             gigabytes / median(shuffled), median(of_shuffled));
  const Speed images = extent > 0 ? speed_of_images(shards, extent) : Speed{};
  if (extent > 0) fmt::print("images         {:8.0f} images/s\n", images.per_second);
  write_json(json, {{"images_per_second", images.per_second},
                    {"images_per_processor_second", images.per_processor_second},
                    {"samples", shards.size()},
                    {"bytes", bytes},
                    {"digest", digest_of(shards)},
                    {"looked_through_seconds", median(opened)},
                    {"in_order_seconds", median(in_order)},
                    {"in_order_processor_seconds", median(on_processor)},
                    {"shuffled_seconds", median(shuffled)},
                    {"in_order_beside_copying", median(of_floor)},
                    {"shuffled_beside_copying", median(of_shuffled)}});
  return 0;
}
