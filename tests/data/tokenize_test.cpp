#include "trireme/data/documents/tokenize.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/documents/raw_documents.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/shards/token_shard_writer.hpp"
#include "trireme/data/shards/token_shards.hpp"
#include "trireme/data/sources/locations_of.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::data;
namespace fs = std::filesystem;

namespace {

const auto byte_tokenizer = tokenizers::Tokenizer::bytes();

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string content_of_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The bytes of all files in a folder.
std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files[entry.path().filename()] = content_of_file(entry.path());
  return files;
}

std::vector<std::string> texts_in(const fs::path& folder) {
  const TokenShards shards(locations_of(folder.string()));
  std::vector<std::string> texts;
  for (std::int64_t document = 0; document < shards.size(); ++document)
    texts.push_back(byte_tokenizer.decode(shards.at(document)));
  return texts;
}

// JSON lines of different lengths, some of them empty and one long.
std::string lines_of(int count, const std::vector<int>& broken = {}) {
  std::string lines;
  for (int number = 0; number < count; ++number) {
    const std::size_t length = number == 5 ? 700 : static_cast<std::size_t>(number * 37 % 50);
    lines += "{\"text\": \"" + std::string(length, static_cast<char>('a' + number % 26)) + "\"}\n";
    for (const int at : broken) lines += at == number ? "{\"text\": 3}\n" : "";
  }
  return lines;
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing is thrown";
}

}  // namespace

TEST_CASE("documents are lines of JSON, texts, and what lies between separators") {
  const tests::TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_file(at + "in/a.jsonl",
             "\xef\xbb\xbf{\"text\": \"one\", \"id\": 1}\r\n\n  \n{\"other\": 1, \"text\": \"zwei \\u00fc\"}");
  write_file(at + "in/b.txt", "\xef\xbb\xbfwhole\n\ntext\n");
  const std::vector<std::string> inputs{at + "in/b.txt", at + "in/{a,c}.jsonl"};
  write_file(at + "in/c.jsonl", "{\"text\": \"\"}\n{\"text\": \"last\"}\n");
  const TokenizeReport report = tokenize_files(inputs, byte_tokenizer, at + "out/x", {.end_token = 0});
  CHECK(texts_in(at + "out") == std::vector<std::string>{std::string("whole\n\ntext\n\0", 13), std::string("one\0", 4),
                                                         std::string("zwei \xc3\xbc\0", 8), std::string("last\0", 5)});
  CHECK(report.documents == 4);
  CHECK(report.empty == 1);
  CHECK(report.shards == 1);
  const TokenShards shards(locations_of(at + "out"));
  shards.verify(255);
  CHECK(shards.source_of(0) == 0);
  CHECK(shards.source_of(3) == 1);
  tokenize_files(inputs, byte_tokenizer, at + "files/x", {.sources = SourceNumbers::files});
  CHECK(TokenShards(locations_of(at + "files")).source_of(3) == 2);
  tokenize_files(std::vector{at + "in/b.txt"}, byte_tokenizer, at + "cut/x", {.separator = "\n\n"});
  CHECK(texts_in(at + "cut") == std::vector<std::string>{"whole", "text\n"});
}

TEST_CASE("a separator that lies on two pieces of a file is found") {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.path() / "x.txt";
  constexpr std::int64_t piece = 1 << 20;
  for (const std::int64_t before : {piece - 3, piece - 2, piece - 1, piece, 3 * piece + 1}) {
    write_file(file, std::string(static_cast<std::size_t>(before), 'a') + "<|>" + "b<|>" + std::string(piece, 'c') + "<|>");
    const std::vector<Location> files{file, file};
    RawDocuments documents(files, "<|>", "text", {});
    const auto first = documents.next(), second = documents.next(), third = documents.next();
    REQUIRE(third.has_value());
    CHECK(std::ssize(first->text) == before);
    CHECK(second->text == "b");
    CHECK(third->text == std::string(piece, 'c'));
    CHECK(third->next == DocumentPlace{0, before + 3 + 4 + piece + 3});
    CHECK(documents.next()->place == DocumentPlace{1, 0});
    RawDocuments later(files, "<|>", "text", second->next);
    CHECK(later.next()->text == third->text);
  }
}

TEST_CASE("shards are the same for any number of workers and ranks, and after a start that was killed") {
  const tests::TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_file(at + "in/a.jsonl", lines_of(300, {3, 70, 299}));
  write_file(at + "in/b.jsonl", "{\"text\": \"\"}\n[]\n");
  write_file(at + "in/c.jsonl", lines_of(40));
  write_file(at + "in/d.jsonl", "{\"text\": \"\"}\n");
  const std::vector<std::string> inputs{at + "in"};
  const TokenizeOptions options{.end_token = 7, .skip_broken = true, .shard_tokens = 512};
  const auto with_workers = [&](int workers) {
    TokenizeOptions others = options;
    others.workers = workers;
    return others;
  };
  const TokenizeReport whole = tokenize_files(inputs, byte_tokenizer, at + "1/x", with_workers(1));
  const auto expected = files_in(at + "1");
  CHECK(whole.shards == std::ssize(expected));
  CHECK(whole.shards > 10);
  CHECK(whole.broken == 4);
  CHECK(whole.empty == 6 + 1 + 1 + 1);
  tokenize_files(inputs, byte_tokenizer, at + "4/x", with_workers(4));
  CHECK(files_in(at + "4") == expected);
  for (const int ranks : {2, 3}) {
    const std::string to = at + "ranks" + std::to_string(ranks);
    testing::run_ranks(ranks, [&](const Group& world) {
      const TokenizeReport report = tokenize_files(inputs, byte_tokenizer, to + "/x", with_workers(2), &world);
      CHECK(report.tokens == whole.tokens);
    });
    CHECK(files_in(to) == expected);
  }

  // What a killed start leaves: some shards and half of one.
  for (const std::int64_t found : {1L, 2L, whole.shards - 1, whole.shards}) {
    const std::string to = at + "again" + std::to_string(found);
    for (std::int64_t number = 0; number < found; ++number)
      write_file(Location(token_shard(to + "/x", number)), expected.at(token_shard("x", number).string()));
    write_file(to + "/x-00003.safetensors.123-0.tmp", "half");
    const TokenizeReport report = tokenize_files(inputs, byte_tokenizer, to + "/x", options);
    CHECK(report.shards_found == found);
    CHECK(report.tokens == whole.tokens);
    CHECK(report.documents == whole.documents);
    CHECK(report.broken == whole.broken);
    CHECK(report.empty == whole.empty);
    CHECK(files_in(to) == expected);
  }
  // A shard that is missing is made again, and those behind it.
  fs::remove(at + "4/x-00002.safetensors");
  CHECK(tokenize_files(inputs, byte_tokenizer, at + "4/x", options).shards_found == 2);
  CHECK(files_in(at + "4") == expected);
}

TEST_CASE("shards of something else are not gone on from") {
  const tests::TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_file(at + "in.jsonl", lines_of(30));
  const std::vector<std::string> inputs{at + "in.jsonl"};
  tokenize_files(inputs, byte_tokenizer, at + "x", {.shard_tokens = 300});
  const auto refuses = [&](const TokenizeOptions& options) {
    const std::string message = message_of([&] { tokenize_files(inputs, byte_tokenizer, at + "x", options); });
    CHECK(message.find("x-00000.safetensors") != message.npos);
    CHECK(message.find("remove the shards") != message.npos);
  };
  refuses({.shard_tokens = 299});
  refuses({.end_token = 0, .shard_tokens = 300});
  write_file(at + "in.jsonl", lines_of(31));
  refuses({.shard_tokens = 300});
  fs::remove(at + "x-00000.safetensors");
  CHECK_THROWS_AS(tokenize_files(inputs, byte_tokenizer, at + "x", {.shard_tokens = 300}), Error);
}

TEST_CASE("broken documents are named by file and line") {
  const tests::TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  const auto message = [&](const std::string& name, const std::string& text, const TokenizeOptions& options = {}) {
    write_file(at + name, text);
    return message_of([&] { tokenize_files(std::vector{at + name}, byte_tokenizer, at + "out/x", options); });
  };
  const auto says = [](const std::string& text, const std::string& part) {
    INFO(text << " without " << part);
    CHECK(text.find(part) != text.npos);
  };
  const std::string good = "{\"text\": \"a\"}\n";
  says(message("a.jsonl", good + "\n" + good + "{\"text\": \"b\n"), "line 4: this is no JSON object: byte");
  says(message("a.jsonl", good + "[1]\n"), "line 2: this is no JSON object");
  says(message("a.jsonl", good + "{\"text\": 3}\n" + "x\n"), "line 2: \"text\" is no text");
  says(message("a.jsonl", good, {.text_field = "body"}), "line 1: there is no \"body\"");
  says(message("a.jsonl", good + "{}\n"), at + "a.jsonl");
  says(message("a.jsonl", good + "{}\n"), "--skip-broken");
  says(message("a.txt", std::string("ab\0c", 4)), "byte 2 of it is zero");
  says(message("a.txt", "\x28\xb5\x2f\xfd"), "packed by zstd");
  says(message("a.jsonl", ""), "have no document");
  says(message("a.jsonl", "{}\n{}\n", {.skip_broken = true}), "0 are empty, 2 broken");
  says(message("a.jsonl", good, {.end_token = 256}), "the end token 256");
  says(message("a.jsonl", good, {.shard_tokens = 0}), "at least one token");
  says(message("a.jsonl", good, {.workers = -1}), "-1 workers");
  CHECK_THROWS_AS(tokenize_files({}, byte_tokenizer, at + "out/x"), Error);
  CHECK_THROWS_AS(tokenize_files(std::vector{at + "absent.txt"}, byte_tokenizer, at + "out/x"), Error);
  CHECK_FALSE(fs::exists(at + "out/x-00000.safetensors"));
}
