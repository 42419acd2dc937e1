#include "trireme/files/cached_file_system.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;

namespace {

// Files with versions, which count how many bytes are read of them.
class Remote final : public FileSystem {
 public:
  struct Entry {
    std::string text;
    std::string version;
  };
  std::map<std::string, Entry> entries;
  std::atomic<std::uint64_t> bytes_read = 0;
  std::function<void(std::uint64_t offset)> before_read = [](std::uint64_t) {};

  std::unique_ptr<InputFile> open(const Location& location) const override {
    const auto found = entries.find(location.string());
    if (found == entries.end())
      throw Error({.code = ErrorCode::io, .message = "there is no such file", .path = location.string()});
    return std::make_unique<Input>(const_cast<Remote&>(*this), found->second);
  }
  std::unique_ptr<OutputFile> create(const Location&) override { throw Error({.message = "nothing is written here"}); }
  void create_folder(const Location&) override {}
  void rename(const Location&, const Location&) override {}
  void sync_folder(const Location&) override {}
  void remove_all(const Location&) override {}
  FileKind kind_of(const Location& location) const override {
    return entries.contains(location.string()) ? FileKind::file : FileKind::none;
  }
  std::vector<FolderEntry> entries_of(const Location&) const override { return {}; }

 private:
  class Input final : public InputFile {
   public:
    Input(Remote& remote, Entry entry) : remote_(remote), entry_(std::move(entry)) {}
    std::uint64_t size() const override { return entry_.text.size(); }
    std::string version() const override { return entry_.version; }
    void read_at(std::span<std::byte> into, std::uint64_t offset) const override {
      remote_.before_read(offset);
      remote_.bytes_read += into.size();
      std::memcpy(into.data(), entry_.text.data() + offset, into.size());
    }

   private:
    Remote& remote_;
    Entry entry_;
  };
};

std::vector<std::filesystem::path> kept_in(const tests::TemporaryFolder& folder) {
  std::vector<std::filesystem::path> kept;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "trireme-files")) {
    if (entry.path().extension() == ".cached") kept.push_back(entry.path());
  }
  return kept;
}

}  // namespace

TEST_CASE("a file is fetched once, for all who share the folder") {
  const tests::TemporaryFolder folder;
  const auto remote = std::make_shared<Remote>();
  const std::string text(20'000'003, 'x');
  remote->entries["far:/a"] = {text, "1"};
  remote->entries["far:/empty"] = {"", "1"};
  remote->entries["far:/unknown"] = {"abc", ""};
  const auto one = cached_file_system(remote, {.folder = folder.path()});
  const auto other = cached_file_system(remote, {.folder = folder.path()});
  {
    std::vector<std::jthread> readers;
    for (int reader = 0; reader < 4; ++reader) {
      readers.emplace_back([&, reader] {
        if ((reader % 2 == 0 ? one : other)->open("far:/a")->content() != text) std::abort();
      });
    }
  }
  CHECK(remote->bytes_read == text.size());
  const auto file = one->open("far:/a");
  CHECK(file->maps_from_disk());
  CHECK(std::memcmp(file->map().get(), text.data(), text.size()) == 0);
  std::vector<std::byte> beyond(2);
  CHECK_THROWS_AS(file->read_at(beyond, text.size() - 1), Error);
  CHECK_THROWS_AS(file->read_at(beyond, UINT64_MAX), Error);
  CHECK(remote->bytes_read == text.size());
  CHECK(one->open("far:/empty")->map() == nullptr);
  CHECK(one->open("far:/empty")->content().empty());
  CHECK_FALSE(one->open("far:/unknown")->maps_from_disk());
  CHECK(one->open("far:/unknown")->content() == "abc");
  CHECK_THROWS_AS(one->open("far:/absent"), Error);
  CHECK(one->kind_of("far:/a") == FileKind::file);

  remote->entries["far:/a"] = {"other", "2"};
  CHECK(one->open("far:/a")->content() == "other");
  CHECK(file->content() == text);  // what is open stays
}

TEST_CASE("only the newest version of a file is kept") {
  const tests::TemporaryFolder folder;
  const auto remote = std::make_shared<Remote>();
  const auto files = cached_file_system(remote, {.folder = folder.path()});
  for (const char version : {'1', '2', '3'}) {  // as a job's sign of life beside its checkpoints
    remote->entries["far:/sign"] = {std::string(200, version), std::string(1, version)};
    for (int time = 0; time < 2; ++time) CHECK(files->open("far:/sign")->content() == std::string(200, version));
  }
  CHECK(kept_in(folder).size() == 1);
  CHECK(remote->bytes_read == 600);
}

TEST_CASE("a kept file that is damaged is fetched again") {
  const tests::TemporaryFolder folder;
  const auto remote = std::make_shared<Remote>();
  remote->entries["far:/a"] = {std::string(100'000, 'x'), "1"};
  const auto files = cached_file_system(remote, {.folder = folder.path()});
  files->open("far:/a")->content();
  REQUIRE(kept_in(folder).size() == 1);
  const std::filesystem::path kept = kept_in(folder).front();
  const auto size = std::filesystem::file_size(kept);
  for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{70'000}, std::uint64_t{100'003}, size - 3, size - 20}) {
    const std::uint64_t before = remote->bytes_read;
    std::fstream file(kept, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(place));
    file.put('y');
    file.close();
    CHECK(files->open("far:/a")->content() == std::string(100'000, 'x'));
    CHECK(remote->bytes_read == before + 100'000);
  }
  for (const std::uint64_t left : {std::uint64_t{0}, std::uint64_t{5}, size - 1}) {
    std::filesystem::resize_file(kept, left);
    CHECK(files->open("far:/a")->content() == std::string(100'000, 'x'));
  }
}

TEST_CASE("the files that were not opened for the longest time make room") {
  const tests::TemporaryFolder folder;
  const auto remote = std::make_shared<Remote>();
  for (const char* name : {"a", "b", "c", "d"})
    remote->entries[std::string("far:/") + name] = {std::string(1'000'000, *name), "1"};
  remote->entries["far:/large"] = {std::string(4'000'000, 'l'), "1"};
  const std::filesystem::path of_another = folder.path() / "0123456789abcdef.cached";
  std::ofstream(of_another) << std::string(4'000'000, 'o');
  const auto files = cached_file_system(remote, {.folder = folder.path(), .most_bytes = 3'100'000});
  const auto read = [&](const std::string& name) {
    const std::uint64_t before = remote->bytes_read;
    CHECK(files->open("far:/" + name)->content() == remote->entries["far:/" + name].text);
    std::this_thread::sleep_for(std::chrono::milliseconds(15));  // times of files are told apart
    return remote->bytes_read != before;
  };
  CHECK(read("a"));
  CHECK(read("b"));
  CHECK(read("c"));
  CHECK_FALSE(read("a"));
  CHECK(read("d"));
  CHECK_FALSE(read("a"));
  CHECK_FALSE(read("c"));
  CHECK(read("b"));  // it was gone
  CHECK(kept_in(folder).size() == 3);
  CHECK(read("large"));
  CHECK(read("large"));
  CHECK(kept_in(folder).size() == 3);
  CHECK(std::filesystem::file_size(of_another) == 4'000'000);
  CHECK_FALSE(files->open("far:/large")->maps_from_disk());  // it is read by ranges, and need not fit into memory
}

TEST_CASE("a process that is killed while it fetches leaves nothing that is taken for the file") {
  const tests::TemporaryFolder folder;
  const auto remote = std::make_shared<Remote>();
  const std::string text(30'000'000, 'x');
  remote->entries["far:/a"] = {text, "1"};
  const auto files = cached_file_system(remote, {.folder = folder.path()});
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{16} << 20}) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      remote->before_read = [&](std::uint64_t offset) {
        if (offset == at) kill(getpid(), SIGKILL);
      };
      files->open("far:/a")->content();
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    CHECK(kept_in(folder).empty());
  }
  CHECK(files->open("far:/a")->content() == text);
  CHECK(kept_in(folder).size() == 1);
}

TEST_CASE("a source that fails is told, and asked again") {
  const tests::TemporaryFolder folder;
  const auto remote = std::make_shared<Remote>();
  remote->entries["far:/a"] = {"text", "1"};
  const auto files = cached_file_system(remote, {.folder = folder.path()});
  remote->before_read = [](std::uint64_t) { throw Error({.code = ErrorCode::io, .message = "the source is gone"}); };
  const auto file = files->open("far:/a");
  CHECK_THROWS_WITH(file->content(), ContainsSubstring("the source is gone"));
  remote->before_read = [](std::uint64_t) {};
  CHECK(file->content() == "text");
  CHECK_THROWS_AS(cached_file_system(nullptr, {.folder = folder.path()}), Error);
  CHECK_THROWS_AS(cached_file_system(remote, {}), Error);
  CHECK_THROWS_AS(cached_file_system(remote, {.folder = "/proc/no"}), Error);
}
