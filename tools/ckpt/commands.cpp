#include "commands.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "trireme/checkpoint/checkpoint_reader.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/float16.hpp"

namespace trireme::ckpt {
namespace {

namespace fs = std::filesystem;
using checkpoint::CheckpointReader;
using checkpoint::Manifest;
using checkpoint::SavedTensor;

std::uint64_t bytes_of(const SavedTensor& tensor) {
  return static_cast<std::uint64_t>(tensor.shape.numel()) * size_of(tensor.dtype);
}

std::uint64_t bytes_of(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const SavedTensor& tensor : manifest.tensors) bytes += bytes_of(tensor);
  return bytes;
}

// Only the beginning of a long text, as a vocabulary.
std::string text_of(const checkpoint::SavedValue& value) {
  constexpr std::size_t most = 80;
  const std::string text = std::visit([](const auto& known) { return fmt::format("{}", known); }, value);
  return text.size() <= most ? text : fmt::format("{}... ({} bytes)", text.substr(0, most), text.size());
}

// Calls visit(name, value in first, value in second) for every name in one of the two. A value is null if it is missing.
template <typename Value, typename Visit>
void for_each_name(const std::map<std::string, Value>& first, const std::map<std::string, Value>& second, const Visit& visit) {
  std::set<std::string> names;
  for (const auto& [name, value] : first) names.insert(name);
  for (const auto& [name, value] : second) names.insert(name);
  const auto find = [](const auto& map, const std::string& name) {
    const auto found = map.find(name);
    return found == map.end() ? nullptr : &found->second;
  };
  for (const std::string& name : names) visit(name, find(first, name), find(second, name));
}

// A long double holds every number of the types below.
template <typename T>
long double number_at(const std::byte* bytes, std::int64_t index) {
  T value;
  std::memcpy(&value, bytes + static_cast<std::size_t>(index) * sizeof value, sizeof value);
  return static_cast<long double>(static_cast<Accumulate<T>>(value));
}

// Returns nothing for types of 8 bits, whose values are codes.
std::optional<long double> number_at(DType dtype, const std::byte* bytes, std::int64_t index) {
  switch (dtype) {
    case DType::float32: return number_at<float>(bytes, index);
    case DType::float64: return number_at<double>(bytes, index);
    case DType::bfloat16: return number_at<bfloat16>(bytes, index);
    case DType::float16: return number_at<float16>(bytes, index);
    case DType::int64: return number_at<std::int64_t>(bytes, index);
    case DType::uint64: return number_at<std::uint64_t>(bytes, index);
    case DType::int32: return number_at<std::int32_t>(bytes, index);
    case DType::uint32: return number_at<std::uint32_t>(bytes, index);
    case DType::int16: return number_at<std::int16_t>(bytes, index);
    case DType::uint16: return number_at<std::uint16_t>(bytes, index);
    default: return std::nullopt;
  }
}

// Describes how the elements of one tensor differ.
std::string difference(const CheckpointReader& first, const SavedTensor& in_first, const CheckpointReader& second,
                       const SavedTensor& in_second) {
  const auto before = first.read(in_first);
  const auto after = second.read(in_second);
  const std::size_t bytes = size_of(in_first.dtype);
  std::int64_t count = 0;
  std::int64_t nans = 0;
  std::optional<long double> largest;
  for (std::int64_t index = 0; index < in_first.shape.numel(); ++index) {
    const std::size_t at = static_cast<std::size_t>(index) * bytes;
    if (std::memcmp(before.data() + at, after.data() + at, bytes) == 0) continue;
    ++count;
    const auto a = number_at(in_first.dtype, before.data(), index);
    const auto b = number_at(in_first.dtype, after.data(), index);
    if (!a || !b) continue;
    const long double by = std::abs(*a - *b);
    if (std::isnan(by)) {
      ++nans;
    } else {
      largest = std::max(largest.value_or(0), by);
    }
  }
  std::string text = fmt::format("{} of {} elements differ", count, in_first.shape.numel());
  if (largest) text += fmt::format(", by {:.3g} at most", *largest);
  if (nans > 0) text += fmt::format(", {} of them nan in one or both", nans);
  if (!largest && nans == 0)
    text += fmt::format("; the elements are {} codes, so the size of the differences is not given", name_of(in_first.dtype));
  return text;
}

void print_folder(const CheckpointReader& reader) {
  const Manifest& manifest = reader.manifest();
  fmt::print("step {}: {} tensors, {:.1f} MB in {} files, digest {:016x}\n", manifest.step, manifest.tensors.size(),
             1e-6 * static_cast<double>(bytes_of(manifest)), manifest.files.size(), manifest.digest());
  if (manifest.imported) fmt::print("  weights alone, imported from {}\n", manifest.imported->source);
  for (const auto& [name, value] : manifest.configuration) fmt::print("  option {} = {}\n", name, value);
  for (const auto& [name, value] : manifest.values) fmt::print("  value {} = {}\n", name, text_of(value));
  for (const SavedTensor& tensor : manifest.tensors) {
    fmt::print("  tensor {} {} {}{}\n", tensor.name, name_of(tensor.dtype), tensor.shape, tensor.optional ? ", optional" : "");
  }
}

// "-" if the option is missing.
std::string extract(checkpoint::Configuration& options, const char* name) {
  auto found = options.extract(name);
  return found.empty() ? "-" : found.mapped();
}

// "-" if there is no date, as on other file systems.
std::string date_of(const Location& location) {
  if (!location.is_file_path()) return "-";
  const fs::path file = location;
  struct stat status {};
  std::tm time{};
  if (stat(file.c_str(), &status) != 0 || gmtime_r(&status.st_mtime, &time) == nullptr) return "-";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday, time.tm_hour,
                     time.tm_min);
}

}  // namespace

int list(const std::string& directory) {
  const auto steps = checkpoint::committed_steps(directory);
  require(!steps.empty(), "{} holds no checkpoint", directory);
  fmt::print("{:>10}  {:<20}  {:>10}  {:<12}  {:>9}  {}\n", "step", "date", "loss", "program", "MB", "folder");
  checkpoint::Configuration before;
  for (const std::int64_t step : steps) {
    const CheckpointReader reader(checkpoint::checkpoint_folder(directory, step));
    checkpoint::Configuration options = reader.manifest().configuration;
    const std::string loss = extract(options, "loss_of_step");
    const std::string program = extract(options, "program");
    options.erase("seconds_of_run");
    fmt::print("{:>10}  {:<20}  {:>10}  {:<12}  {:>9.1f}  {}\n", step, date_of(reader.folder() / "manifest.json"), loss,
               program, 1e-6 * static_cast<double>(bytes_of(reader.manifest())), reader.folder().name());
    for (const auto& [name, value] : options) {
      const auto old = before.find(name);
      if (old == before.end() || old->second != value) fmt::print("{:>12}{} = {}\n", "", name, value);
    }
    before = std::move(options);
  }
  return 0;
}

int inspect(const std::string& run) {
  const CheckpointReader reader(checkpoint::newest_folder(run));
  fmt::print("{}\n", reader.folder().string());
  print_folder(reader);
  return 0;
}

int verify(const std::vector<std::string>& runs) {
  int code = 0;
  for (const std::string& run : runs) {
    const CheckpointReader reader(checkpoint::newest_folder(run));
    const auto problems = reader.problems();
    for (const std::string& line : problems) fmt::print("{}\n", line);
    if (problems.empty()) fmt::print("{} is whole\n", reader.folder().string());
    if (!problems.empty()) code = 1;
  }
  return code;
}

int diff(const std::string& first, const std::string& second) {
  const CheckpointReader before(checkpoint::newest_folder(first));
  const CheckpointReader after(checkpoint::newest_folder(second));
  int found = 0;
  const auto tell = [&](const std::string& what, const std::string& name, const std::string& text) {
    ++found;
    fmt::print("{} {}: {}\n", what, name, text);
  };
  for_each_name(before.manifest().configuration, after.manifest().configuration,
                [&](const std::string& name, const std::string* a, const std::string* b) {
                  if (a != nullptr && b != nullptr && *a == *b) return;
                  tell("option", name, fmt::format("{} -> {}", a == nullptr ? "none" : *a, b == nullptr ? "none" : *b));
                });
  for_each_name(before.manifest().values, after.manifest().values, [&](const std::string& name, const auto* a, const auto* b) {
    if (a != nullptr && b != nullptr && checkpoint::is_same(*a, *b)) return;
    tell("value", name, fmt::format("{} -> {}", a == nullptr ? "none" : text_of(*a), b == nullptr ? "none" : text_of(*b)));
  });
  for (const SavedTensor& tensor : before.manifest().tensors) {
    const SavedTensor* other = after.find(tensor.name);
    if (other == nullptr) {
      tell("tensor", tensor.name, "only in the first");
    } else if (other->dtype != tensor.dtype || other->shape != tensor.shape) {
      tell("tensor", tensor.name,
           fmt::format("{} {} -> {} {}", name_of(tensor.dtype), tensor.shape, name_of(other->dtype), other->shape));
    } else if (other->digest != tensor.digest) {
      tell("tensor", tensor.name, difference(before, tensor, after, *other));
    }
  }
  for (const SavedTensor& tensor : after.manifest().tensors) {
    if (before.find(tensor.name) == nullptr) tell("tensor", tensor.name, "only in the second");
  }
  if (found == 0) fmt::print("no difference\n");
  return found == 0 ? 0 : 1;
}

int prune(const std::string& directory, int keep) {
  for (const std::string& name : checkpoint::prune(directory, keep)) fmt::print("removed {}\n", name);
  return 0;
}

int clean(const std::string& directory) {
  for (const std::string& name : checkpoint::remove_unfinished(directory)) fmt::print("removed {}\n", name);
  return 0;
}

}  // namespace trireme::ckpt
