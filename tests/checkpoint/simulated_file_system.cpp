#include "checkpoint/simulated_file_system.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::test {
namespace {

constexpr std::size_t page = 512;

[[noreturn]] void fail(const Location& path, int error_number) {
  throw Error(
      {.code = ErrorCode::io, .message = "the simulated call failed", .path = path.string(), .error_number = error_number});
}

}  // namespace

class SimulatedOutput final : public OutputFile {
 public:
  SimulatedOutput(SimulatedFileSystem& system, Location path, std::shared_ptr<SimulatedFileSystem::Node> node)
      : system_(system), path_(std::move(path)), node_(std::move(node)) {}

  void reserve(std::uint64_t) override { system_.change(path_); }
  void write(std::span<const std::byte> bytes) override {
    const std::size_t half = bytes.size() / 2;
    append(bytes.first(half));
    system_.change(path_);
    append(bytes.subspan(half));
  }
  void sync() override {
    system_.change(path_);
    const std::scoped_lock lock(system_.mutex_);
    node_->synced_content = node_->content;
  }
  void close() override { system_.change(path_); }

 private:
  void append(std::span<const std::byte> bytes) {
    const std::scoped_lock lock(system_.mutex_);
    node_->content.insert(node_->content.end(), bytes.begin(), bytes.end());
  }

  SimulatedFileSystem& system_;
  Location path_;
  std::shared_ptr<SimulatedFileSystem::Node> node_;
};

class SimulatedInput final : public InputFile {
 public:
  SimulatedInput(Location path, std::vector<std::byte> content, ReadObserver observer)
      : path_(std::move(path)), content_(std::move(content)), observer_(std::move(observer)) {}
  std::uint64_t size() const override { return content_.size(); }
  void read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    if (offset > content_.size() || into.size() > content_.size() - offset) {
      throw Error({.code = ErrorCode::corrupt_file, .message = "the file ends too early", .path = path_.string()});
    }
    if (!into.empty()) std::memcpy(into.data(), content_.data() + offset, into.size());
    if (observer_) observer_(into);
  }

 private:
  Location path_;
  std::vector<std::byte> content_;
  ReadObserver observer_;
};

SimulatedFileSystem::SimulatedFileSystem() : root_(std::make_shared<Node>()) { root_->folder = true; }

void SimulatedFileSystem::change(const Location& path) {
  const std::scoped_lock lock(mutex_);
  ++calls_;
  if (power_lost_at_ > 0 && calls_ >= power_lost_at_) throw PowerLost();
  if (calls_ == failing_.first) {
    failed_call_ = path.string();
    fail(path, failing_.second);
  }
}

std::shared_ptr<SimulatedFileSystem::Node> SimulatedFileSystem::find(const Location& path) const {
  std::shared_ptr<Node> node = root_;
  for (const std::filesystem::path& name : std::filesystem::path(path.after_scheme()).relative_path()) {
    const auto found = node->names.find(name.string());
    if (found == node->names.end()) return nullptr;
    node = found->second;
  }
  return node;
}

std::shared_ptr<SimulatedFileSystem::Node> SimulatedFileSystem::folder_at(const Location& path) const {
  auto node = find(path);
  if (node == nullptr || !node->folder) fail(path, ENOENT);
  return node;
}

void SimulatedFileSystem::apply(Node& folder, const Change& change) {
  std::shared_ptr<Node> node = change.node;
  if (!change.removed.empty()) {
    const auto found = folder.names.find(change.removed);
    if (found == folder.names.end()) return;
    node = found->second;
    folder.names.erase(found);
  }
  if (!change.added.empty()) folder.names[change.added] = node;
}

std::unique_ptr<OutputFile> SimulatedFileSystem::create(const Location& path) {
  change(path);
  const std::scoped_lock lock(mutex_);
  const auto folder = folder_at(path.parent());
  if (folder->names.contains(path.name())) fail(path, EEXIST);
  auto node = std::make_shared<Node>();
  folder->changes.push_back({.removed = {}, .added = path.name(), .node = node});
  apply(*folder, folder->changes.back());
  return std::make_unique<SimulatedOutput>(*this, path, std::move(node));
}

std::unique_ptr<InputFile> SimulatedFileSystem::open(const Location& path) const {
  const std::scoped_lock lock(mutex_);
  const auto node = find(path);
  if (node == nullptr || node->folder) fail(path, ENOENT);
  return std::make_unique<SimulatedInput>(path, node->content, observer_);
}

void SimulatedFileSystem::create_folder(const Location& path) {
  change(path);
  const std::scoped_lock lock(mutex_);
  if (find(path) != nullptr) return;
  const auto folder = folder_at(path.parent());
  auto node = std::make_shared<Node>();
  node->folder = true;
  folder->changes.push_back({.removed = {}, .added = path.name(), .node = std::move(node)});
  apply(*folder, folder->changes.back());
}

void SimulatedFileSystem::rename(const Location& from, const Location& to) {
  change(from);
  const std::scoped_lock lock(mutex_);
  if (from.parent() != to.parent()) throw std::logic_error("renames stay in a folder");
  const auto folder = folder_at(from.parent());
  if (!folder->names.contains(from.name())) fail(from, ENOENT);
  if (const auto there = find(to); there != nullptr && there->folder && !there->names.empty()) fail(to, ENOTEMPTY);
  folder->changes.push_back({.removed = from.name(), .added = to.name(), .node = nullptr});
  apply(*folder, folder->changes.back());
}

void SimulatedFileSystem::sync_folder(const Location& path) {
  change(path);
  const std::scoped_lock lock(mutex_);
  const auto folder = folder_at(path);
  folder->synced_names = folder->names;
  folder->changes.clear();
}

void SimulatedFileSystem::remove_all(const Location& path) {
  change(path);
  const std::scoped_lock lock(mutex_);
  const auto node = find(path);
  if (node == nullptr) return;
  if (node->folder) {  // each name by itself, so that half of them may be left
    while (!node->names.empty()) {
      node->changes.push_back({.removed = node->names.begin()->first, .added = {}, .node = nullptr});
      apply(*node, node->changes.back());
    }
  }
  const auto folder = folder_at(path.parent());
  folder->changes.push_back({.removed = path.name(), .added = {}, .node = nullptr});
  apply(*folder, folder->changes.back());
}

FileKind SimulatedFileSystem::kind_of(const Location& path) const {
  const std::scoped_lock lock(mutex_);
  const auto node = find(path);
  return node == nullptr ? FileKind::none : node->folder ? FileKind::folder : FileKind::file;
}

std::vector<FolderEntry> SimulatedFileSystem::entries_of(const Location& folder) const {
  const std::scoped_lock lock(mutex_);
  std::vector<FolderEntry> entries;
  for (const auto& [name, child] : folder_at(folder)->names) {
    entries.push_back({.name = name, .kind = child->folder ? FileKind::folder : FileKind::file});
  }
  return entries;
}

std::shared_ptr<SimulatedFileSystem::Node> SimulatedFileSystem::survivor(const Node& node, double keep,
                                                                         std::mt19937_64& random) {
  std::bernoulli_distribution kept(keep);
  auto result = std::make_shared<Node>();
  result->folder = node.folder;
  if (!node.folder) {
    result->content = node.synced_content;
    for (std::size_t begin = 0; begin < node.content.size(); begin += page) {
      if (!kept(random)) continue;
      const std::size_t end = std::min(begin + page, node.content.size());
      if (result->content.size() < end) result->content.resize(end);
      std::copy(node.content.begin() + static_cast<std::ptrdiff_t>(begin),
                node.content.begin() + static_cast<std::ptrdiff_t>(end),
                result->content.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    result->synced_content = result->content;
    return result;
  }
  Node names;
  names.names = node.synced_names;
  for (const Change& change : node.changes) {
    if (kept(random)) apply(names, change);
  }
  for (const auto& [name, child] : names.names) result->names[name] = survivor(*child, keep, random);
  result->synced_names = result->names;
  return result;
}

std::shared_ptr<SimulatedFileSystem> SimulatedFileSystem::after_power_loss(double keep, std::uint64_t seed) const {
  const std::scoped_lock lock(mutex_);
  std::mt19937_64 random(seed);
  auto system = std::make_shared<SimulatedFileSystem>();
  system->root_ = survivor(*root_, keep, random);
  return system;
}

std::int64_t SimulatedFileSystem::calls() const {
  const std::scoped_lock lock(mutex_);
  return calls_;
}

std::vector<std::byte>& SimulatedFileSystem::content(const Location& path) {
  const auto node = find(path);
  if (node == nullptr) fail(path, ENOENT);
  return node->content;
}

std::vector<Location> SimulatedFileSystem::files() const {
  std::vector<Location> paths;
  const std::function<void(const Node&, const Location&)> visit = [&](const Node& node, const Location& path) {
    if (!node.folder) paths.push_back(path);
    for (const auto& [name, child] : node.names) visit(*child, path / name);
  };
  visit(*root_, "/");
  return paths;
}

}  // namespace trireme::test
