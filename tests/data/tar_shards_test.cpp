#include "trireme/data/shards/tar_shards.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/counted_file_system.hpp"
#include "data/shards/shard_index.hpp"
#include "data/tar_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/loader.hpp"

using namespace trireme;
using namespace trireme::data;
using tests::tar_file;
using tests::tar_mark;
using tests::tar_member;
using tests::TarHeader;
using tests::TemporaryFolder;

namespace {

// "a: jpg=1 cls=0; b: jpg=2".
std::string text_of(const TarShards& shards) {
  std::string text;
  for (std::int64_t index = 0; index < shards.size(); ++index) {
    const TarSample sample = shards.at(index);
    text += fmt::format("{}{}:", index > 0 ? "; " : "", sample.key);
    for (const TarField& field : sample.fields) text += fmt::format(" {}={}", field.extension, field.text());
  }
  return text;
}

std::string samples_in(const std::string& archive) {
  const TemporaryFolder folder;
  tests::write_text(folder.path() / "x.tar", archive);
  return text_of(TarShards({folder.path() / "x.tar"}));
}

std::string error_of(const std::string& archive) {
  try {
    return samples_in(archive);
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("x.tar"));
    CHECK(error.code() == ErrorCode::corrupt_file);
    return error.what();
  }
}

// Of so many samples of 1000 bytes.
std::string archive_of(int count, int first = 0) {
  std::string archive;
  for (int sample = first; sample < first + count; ++sample) {
    archive += tar_file(fmt::format("{:06}.bin", sample), std::string(1000, static_cast<char>('a' + sample % 26)));
    archive += tar_file(fmt::format("{:06}.cls", sample), std::to_string(sample));
  }
  return archive + tar_mark;
}

}  // namespace

TEST_CASE("members of an archive become samples by WebDataset's rules") {
  CHECK(samples_in(tar_file("a/b.c/x.JPG", "1") + tar_file("a/b.c/x.seg.PNG", "2") + tar_file("a/x.jpg", "3") + tar_mark) ==
        "a/b.c/x: jpg=1 seg.png=2; a/x: jpg=3");
  CHECK(samples_in(tar_member({.name = "./", .type = '5'}) + tar_file("./x.a", "1") + tar_file("./.x.b", "hidden") +
                   tar_file("__meta__/x.json", "meta") + tar_file("__index__", "meta") + tar_file("README", "none") +
                   tar_member({.name = "pipe.fifo", .type = '6'}) + tar_member({.name = "old/", .size = 700, .type = '\0'}) +
                   tar_file("./x.c", "") + tar_file("./x.", "empty") + tar_file("__meta__.json", "a key") + tar_mark) ==
        "./x: a=1 c= =empty; __meta__: json=a key");
  CHECK(samples_in(tar_file("x.a", "1") + tar_file("y.a", "2") + tar_file("x.b", "3") + tar_mark) == "x: a=1; y: a=2; x: b=3");
  CHECK(samples_in(tar_mark) == "");
}

TEST_CASE("samples end with their archive") {
  const TemporaryFolder folder;
  const std::filesystem::path one = folder.path() / "1.tar", two = folder.path() / "2.tar", none = folder.path() / "0.tar";
  tests::write_text(one, tar_file("x.a", "1") + tar_mark);
  tests::write_text(none, tar_mark);
  tests::write_text(two, tar_file("x.b", "2") + tar_mark);
  const TarShards shards({one, none, two});
  CHECK(text_of(shards) == "x: a=1; x: b=2");
  CHECK_THAT(content_of(shards), ContainsSubstring("2 samples in 3 tar archives"));
  CHECK(content_of(shards) != content_of(TarShards({two, none, one})));
  CHECK_THROWS_WITH(shards.at(2), ContainsSubstring("sample 2 does not exist among 2"));
  CHECK_THROWS_AS(shards.at(-1), Error);
  CHECK_THROWS_WITH(shards.at(1).at("a"), ContainsSubstring("\"x\" has no file .a") && ContainsSubstring("2.tar") &&
                                              ContainsSubstring("--sort=name"));
  CHECK_THROWS_AS(TarShards({}), Error);
}

TEST_CASE("names and sizes are read in all formats of tar") {
  const std::string deep(130, 'd'), long_name = deep + "/x.jpg";
  const std::string gnu("ustar  \0", 8);
  CHECK(samples_in(tar_member({.name = "x.jpg", .prefix = deep}, "1") + tar_mark) == deep + "/x: jpg=1");
  CHECK(samples_in(tar_member({.name = "x.jpg", .magic = gnu, .prefix = "012345670123"}, "1") + tar_mark) == "x: jpg=1");
  CHECK(samples_in(tar_member({.name = "x.jpg", .magic = ""}, "1") + tar_mark) == "x: jpg=1");
  const std::string named = long_name + std::string(1, '\0');
  CHECK(samples_in(tar_member({.name = "././@LongLink", .type = 'L', .magic = gnu}, named) +
                   tar_member({.name = long_name.substr(0, 100), .magic = gnu}, "1") + tar_file("y.a", "2") + tar_mark) ==
        deep + "/x: jpg=1; y: a=2");
  const std::string records =
      tests::pax_record("mtime", "1.5") + tests::pax_record("path", long_name) + tests::pax_record("size", "3");
  CHECK(samples_in(tar_member({.name = "pax_global_header", .type = 'g'}, tests::pax_record("comment", "no\nmatter")) +
                   tar_member({.name = "PaxHeaders/x", .type = 'x'}, records) + TarHeader{.name = "x.jpg"}.bytes() +
                   tests::padded("abc") + tar_mark) == deep + "/x: jpg=abc");
  std::string wide(12, '\0');
  wide[0] = '\x80';
  wide[11] = 3;
  CHECK(samples_in(TarHeader{.name = "x.jpg", .size_field = wide}.bytes() + tests::padded("abc") + tar_mark) == "x: jpg=abc");
  CHECK(samples_in(TarHeader{.name = "x.jpg", .size_field = "      3 "}.bytes() + tests::padded("abc") + tar_mark) ==
        "x: jpg=abc");
  CHECK(samples_in(tar_member({.name = "\xc3\xa4.jpg", .checksum_off_by = -512}, "1") + tar_mark) == "\xc3\xa4: jpg=1");
}

TEST_CASE("archives that say what is not so are refused with the byte") {
  const std::string good = tar_file("x.a", "1");
  const auto sized = [](const std::string& field) {
    return tar_file("x.a", "1") + TarHeader{.name = "y.a", .size_field = field}.bytes() + tar_mark;
  };
  const std::string negative(12, '\xff');
  std::string huge(12, '\0'), huger(12, '\0');
  huge[0] = huger[0] = '\x80';
  huge[4] = '\x7f';
  huger[4] = '\x80';
  std::string many_files;
  for (int number = 0; number <= 10'000; ++number) many_files += tar_file(fmt::format("x.{}", number), "");
  struct Case {
    std::string archive, message;
  };
  for (const auto& [archive, message] : std::vector<Case>{
           {sized(negative), "byte 1024: the size is negative"},
           {sized(huger), "byte 1024: the size is 2^63 or more"},
           {sized(huge), "byte 1024: the member \"y.a\" has 9151314442816847872 bytes, and 1024 follow"},
           {sized("00000002001"), "byte 1024: the member \"y.a\" has 1025 bytes, and 1024 follow"},
           {sized("0000000000x"), "byte 1024: the size is no number"},
           {sized("00000000008"), "byte 1024: the size is no number"},
           {good, "byte 1024: the archive ends without its mark"},
           {good.substr(0, 1000), "byte 1024: the archive ends without its mark"},
           {good.substr(0, 512), "byte 0: the member \"x.a\" has 1 bytes, and 0 follow"},
           {good.substr(0, 500), "byte 0: the archive ends"},
           {"", "byte 0: the archive ends"},
           {good + tar_mark + good + tar_mark, "more follows behind the mark"},
           {tar_member({.name = "x.a", .checksum_off_by = 1}, "1") + tar_mark, "byte 0: there is no header"},
           {"\x1f\x8b\x08" + std::string(600, 'x'), "packed by gzip"},
           {"\x28\xb5\x2f\xfd" + std::string(600, 'x'), "packed by zstd"},
           {good + tar_file("x.A", "2") + tar_mark, "byte 1024: the member \"x.A\" is the second of its sample"},
           {tar_file("../x.a", "1") + tar_mark, "\"../x.a\" leads outside"},
           {tar_file("a/../../x.a", "1") + tar_mark, "leads outside"},
           {tar_file("/etc/x.a", "1") + tar_mark, "leads outside"},
           {good + tar_member({.name = "y.a", .type = '1'}) + tar_mark, "byte 1024: the member \"y.a\" is a link"},
           {tar_member({.name = "y.a", .type = '2'}) + tar_mark, "is a link"},
           {tar_member({.name = "y.a", .type = 'S'}, "1") + tar_mark, "\"y.a\" has holes"},
           {tar_member({.type = 'x'}, tests::pax_record("GNU.sparse.major", "1")) + good + tar_mark, "has holes"},
           {tar_member({.type = 'x'}, tests::pax_record("size", "-1")) + good + tar_mark, "the size -1 is no number"},
           {tar_member({.type = 'x'}, tests::pax_record("size", "9223372036854775808")) + good + tar_mark, "below 2^63"},
           {tar_member({.type = 'x'}, "9 path=x\n7 a=b\n") + good + tar_mark, "extended header is damaged"},
           {tar_member({.type = 'x'}, "99 path=x\n") + good + tar_mark, "extended header is damaged"},
           {tar_member({.type = 'g'}, tests::pax_record("path", "y.a")) + good + tar_mark, "all members have the path y.a"},
           {tar_member({.type = 'x'}, tests::pax_record("path", "y.a")) + tar_mark, "behind an extended header"},
           {tar_member({.size = 2 << 20, .type = 'L'}, std::string(2 << 20, 'x')) + good + tar_mark, "have 2097152 bytes"},
           {TarHeader{.size = 4096, .type = 'L'}.bytes() + tar_mark, "extended header has 4096 bytes, and 1024 follow"},
           {many_files, "has more than 10000 files"},
           {"no archive", "byte 0: the archive ends"},
           {std::string(2000, 'x'), "byte 0: there is no header of a tar archive"}}) {
    INFO(message);
    CHECK_THAT(error_of(archive), ContainsSubstring(message));
  }
}

TEST_CASE("an index is kept beside the archive, and used for that archive alone") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.tar", index = folder.path() / "x.tar.index";
  std::string archive = archive_of(150);
  tests::write_text(path, archive);
  const TarShards first({path});
  first.write_index();
  REQUIRE(std::filesystem::exists(index));
  CHECK(text_of(TarShards({path})) == text_of(first));
  CHECK(content_of(TarShards({path})) == content_of(first));

  // What is damaged in the middle is found when it is read: nobody looks through the archive.
  const auto changed = [&](std::size_t byte) {
    std::string other = archive;
    other[byte] = static_cast<char>(other[byte] ^ 1);
    tests::write_text(path, other);
  };
  changed(75 * 2560 + 1);
  const TarShards known({path});
  CHECK(known.at(74).at("cls").text() == "74");
  CHECK_THROWS_WITH(known.at(75), ContainsSubstring("byte 192000: there is no header") && ContainsSubstring("x.tar"));
  CHECK(known.at(76).key == "000076");

  // Another beginning, another end or another size: the index is of another archive.
  for (const std::size_t byte : {std::size_t{700}, archive.size() - 1024 - 512}) {
    changed(byte);
    CHECK(content_of(TarShards({path})) != content_of(first));
  }
  tests::write_text(path, archive_of(149, 1));
  CHECK(TarShards({path}).at(0).key == "000001");
  tests::write_text(path, archive);
  for (const std::string& content : {std::string(), std::string("no index"), std::string("\2\0\0\0\0\0\0\0{}", 10)}) {
    tests::write_text(index, content);
    CHECK(TarShards({path}).size() == 150);
  }
  const std::uint64_t digest = digest_of_ends(RangedFile(path));
  const auto size = static_cast<std::int64_t>(archive.size());
  for (const ShardIndex& wrong : {ShardIndex{.count = INT64_MAX, .offsets = {0}}, ShardIndex{.count = 1, .offsets = {0}},
                                  ShardIndex{.count = 1, .offsets = {0, size + 1}}, ShardIndex{.count = 1, .offsets = {512, 0}},
                                  ShardIndex{.count = 0, .offsets = {}}, ShardIndex{.count = -1, .offsets = {0}}}) {
    write_index(path, wrong, "samples of a tar archive", digest);
    CHECK(TarShards({path}).size() == 150);
  }
  write_index(path, {.count = 1, .offsets = {512, 2560}}, "samples of a tar archive", digest);
  CHECK_THROWS_WITH(TarShards({path}).at(0), ContainsSubstring("byte 512: there is no header"));
  write_index(path, {.count = 1, .offsets = {0, 5120}}, "samples of a tar archive", digest);
  CHECK_THROWS_WITH(TarShards({path}).at(0), ContainsSubstring("byte 2560") && ContainsSubstring("remove"));
  std::filesystem::remove(index);
  TarShards({path}).write_index();
  CHECK(std::filesystem::file_size(index) > 150 * 8);
}

TEST_CASE("an archive that changes while it is read is refused") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.tar";
  tests::write_text(path, archive_of(4));
  const TarShards shards({path});
  tests::write_text(path, archive_of(5));
  CHECK_THROWS_WITH(shards.at(0), ContainsSubstring("not the one that was looked through") && ContainsSubstring("x.tar"));
  tests::write_text(path, tar_file("000000.bin", std::string(1536, 'x')) + archive_of(3, 1));
  const TarShards others({path});
  tests::write_text(path, archive_of(3, 1).substr(0, 2560 * 3) + tar_file("000000.bin", std::string(1536, 'x')) + tar_mark);
  CHECK_THROWS_AS(others.at(1), Error);
}

TEST_CASE("a sample of another file system is one request") {
  const TemporaryFolder folder;
  const auto system = std::make_shared<tests::CountedFileSystem>();
  add_file_system("counted-tar", system);
  const std::filesystem::path path = folder.path() / "x.tar";
  const Location remote("counted-tar:" + path.string());
  tests::write_text(path, archive_of(40));
  const TarShards local({path}), shards({remote});
  CHECK(text_of(shards) == text_of(local));
  shards.write_index();
  CHECK(content_of(TarShards({path})) == content_of(shards));
  const int before = system->requests();
  for (const std::int64_t index : {39, 0, 7}) CHECK(shards.at(index).at("cls").text() == std::to_string(index));
  CHECK(system->requests() == before + 3);
  const TarShards changing({remote});
  system->version = "another";
  CHECK_THROWS_WITH(changing.at(0), ContainsSubstring("not the one that was looked through") && ContainsSubstring("version"));
}

TEST_CASE("samples outlive their archives, and any number of threads reads them") {
  const TemporaryFolder folder;
  std::vector<Location> locations;
  for (int shard = 0; shard < 600; ++shard) {  // more than stay open
    locations.push_back(folder.path() / fmt::format("{}.tar", shard));
    tests::write_text(folder.path() / fmt::format("{}.tar", shard), archive_of(2, 2 * shard));
  }
  TarSample kept;
  {
    const TarShards shards(locations);
    REQUIRE(shards.size() == 1200);
    kept = shards.at(3);
    const Loader one(shards, {.batch = {.batch_size = 100}}), many(shards, {.batch = {.batch_size = 100}, .workers = 4});
    for (const std::int64_t step : {0, 11, 25}) {
      const auto expected = one.load(step), got = many.load(step);
      for (std::size_t row = 0; row < expected.items.size(); ++row) {
        CHECK(std::stoi(std::string(got.items[row].at("cls").text())) == std::stoi(got.items[row].key));
        CHECK(got.items[row].key == expected.items[row].key);
      }
    }
  }
  CHECK(kept.at("bin").text() == std::string(1000, 'd'));
}
