#include "data/sources/gzip.hpp"

#include "catch.hpp"
#include "data/image_files.hpp"
#include "data/sources/byte_stream.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/mnist.hpp"

using namespace trireme;
using namespace trireme::data;
using trireme::tests::Bytes;

namespace {

// printf 'a small file\n' | gzip -n9c
const Bytes small_file = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4b, 0x54, 0x28, 0xce, 0x4d, 0xcc, 0xc9,
                          0x51, 0x48, 0xcb, 0xcc, 0x49, 0xe5, 0x02, 0x00, 0xfb, 0x58, 0xd1, 0xe9, 0x0d, 0x00, 0x00, 0x00};

std::string unpacked(const Bytes& bytes) {
  const Bytes content = gunzip(bytes, "packed.gz");
  return {content.begin(), content.end()};
}

}  // namespace

TEST_CASE("gzip files are unpacked, of several members too") {
  CHECK(unpacked(small_file) == "a small file\n");
  Bytes twice = small_file;
  twice.insert(twice.end(), small_file.begin(), small_file.end());
  CHECK(unpacked(twice) == "a small file\na small file\n");
}

TEST_CASE("a damaged gzip file is refused, wherever the damage is") {
  for (std::size_t size = 0; size < small_file.size(); ++size) {
    INFO("the first " << size << " bytes");
    CHECK_THROWS_WITH(unpacked(Bytes(small_file.begin(), small_file.begin() + static_cast<std::ptrdiff_t>(size))),
                      ContainsSubstring("ends early") && ContainsSubstring("packed.gz"));
  }
  for (const std::size_t byte : {0, 1, 2, 10, 15, 20, 26, 30}) {
    INFO("byte " << byte);
    Bytes damaged = small_file;
    damaged[byte] ^= 0x41;
    CHECK_THROWS_WITH(unpacked(damaged), ContainsSubstring("packed.gz"));
  }
  Bytes longer = small_file;
  longer.insert(longer.end(), {1, 2, 3});
  CHECK_THROWS_WITH(unpacked(longer), ContainsSubstring("damaged") && ContainsSubstring("13 unpacked bytes"));
}

TEST_CASE("a packed MNIST file is known by its content, not by its name") {
  const tests::TemporaryFolder folder;
  tests::write_bytes(folder.path() / "images", small_file);
  tests::write_bytes(folder.path() / "labels.gz", tests::idx_file({0}, {}));
  CHECK_THROWS_WITH(read_mnist(folder.path() / "images", folder.path() / "labels.gz"), ContainsSubstring("had 13 bytes"));
  tests::write_bytes(folder.path() / "images", tests::idx_file({0, 1, 1}, {}));
  CHECK(read_mnist(folder.path() / "images", folder.path() / "labels.gz").count() == 0);
}

TEST_CASE("a packed file is read in pieces from any byte on") {
  const tests::TemporaryFolder folder;
  Bytes twice = small_file;
  twice.insert(twice.end(), small_file.begin(), small_file.end());
  const std::filesystem::path file = folder.path() / "x.gz";
  tests::write_bytes(file, twice);
  const std::string whole = "a small file\na small file\n";
  for (std::size_t from = 0; from <= whole.size(); ++from) {
    ByteStream stream(file, static_cast<std::int64_t>(from));
    std::string text = "before ";
    while (stream.read(text)) continue;
    CHECK(text == "before " + whole.substr(from));
  }
  twice.resize(twice.size() - 3);
  tests::write_bytes(file, twice);
  ByteStream cut(file, 0);
  std::string text;
  const auto read_all = [&] {
    while (cut.read(text)) continue;
  };
  CHECK_THROWS_WITH(read_all(), ContainsSubstring("ends early"));
}
