#include "trireme/files/file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/files/file_system.hpp"

using namespace trireme;

TEST_CASE("blocks are reserved while signals arrive") {
  constexpr std::uint64_t bytes = std::uint64_t{256} << 20;
  struct sigaction action {};
  action.sa_handler = [](int) {};
  struct sigaction before {};
  sigaction(SIGALRM, &action, &before);
  const itimerval often{.it_interval = {.tv_sec = 0, .tv_usec = 10'000}, .it_value = {.tv_sec = 0, .tv_usec = 1'000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  const int descriptor = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  const int refused = reserve_blocks(descriptor, 4096, bytes);
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  struct stat status {};
  fstat(descriptor, &status);
  close(descriptor);
  CHECK(refused == 0);
  CHECK(status.st_size == static_cast<off_t>(4096 + bytes));
  CHECK(static_cast<std::uint64_t>(status.st_blocks) * 512 == bytes);
}

TEST_CASE("what the system has no room for is said") {
  const tests::TemporaryFolder folder;
  File file = File::create(folder.path() / "large");
  CHECK_THROWS_WITH(file.reserve(std::uint64_t{1} << 60), ContainsSubstring("there is no room for 1152921504606846976 bytes"));
}

TEST_CASE("the content of a file is all of its bytes") {
  const tests::TemporaryFolder folder;
  const std::string text("one\0two\n", 8);
  File::create(folder.path() / "file").write(std::as_bytes(std::span(text)));
  CHECK(open_file(folder.path() / "file")->content() == text);
  CHECK_THROWS_WITH(File::open(folder.path()), ContainsSubstring("not a regular file"));
}

TEST_CASE("a file that is finished takes the place of another when it is committed") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "file";
  const auto written = [&] { return File::open(path).size(); };
  const std::vector<std::byte> bytes(3);
  File::create(path).write(std::span(bytes).first(1));
  {
    FileReplacement left(path);
    left.write(bytes);
    left.finish();
  }
  CHECK(written() == 1);
  FileReplacement file(path);
  file.write(bytes);
  file.finish();
  CHECK(written() == 1);
  file.commit();
  CHECK(written() == 3);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}
