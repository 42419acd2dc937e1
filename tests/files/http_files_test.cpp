// Files of web servers and of HDFS, from servers in this process that fail on purpose.

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "files/http_server.hpp"
#include "files/remote/answer_head.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/data/shards/token_shards.hpp"
#include "trireme/data/tables/npy_rows.hpp"
#include "trireme/data/tables/read_npy.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/files/remote/remote_file_systems.hpp"
#include "trireme/files/safetensors.hpp"

using namespace trireme;
using test::Fault;
using test::HttpServer;
using test::ServedAnswer;
using test::ServedRequest;

namespace {

std::string random_text(std::size_t size) {
  std::mt19937_64 random(size);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// No wait is long in a test.
RemoteOptions quick() {
  return {.attempts = 10,
          .first_pause = std::chrono::milliseconds(1),
          .longest_pause = std::chrono::milliseconds(4),
          .stall = std::chrono::seconds(1),
          .connections = 4};
}

Error refusal_by(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  throw std::logic_error("not reached");
}

std::string read_text(const InputFile& file, std::uint64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  file.read_at(std::as_writable_bytes(std::span(text)), offset);
  return text;
}

// /data.bin, with an ETag.
struct Served {
  std::string content;
  std::string tag = "\"one\"";
  HttpServer server{[this](const ServedRequest& request) {
    return request.path == "/data.bin" ? answer_with(content, tag, request) : ServedAnswer{.status = 404};
  }};

  Location location() const { return server.address() + "/data.bin"; }
};

}  // namespace

TEST_CASE("heads of answers are read, whatever they hold") {
  remote::AnswerHead head;
  for (const char* line :
       {"HTTP/1.1 301 Moved\r\n", "X: 1\r\n", "HTTP/2 206\r\n", "ETag:\t\"a:b\" \r\n", "no colon", ": none", "\r\n"}) {
    head.add_line(line);
  }
  CHECK(head == remote::AnswerHead{.status = 206, .fields = {{"etag", "\"a:b\""}}, .is_whole = true});
  CHECK(head.content_length() == std::nullopt);
  const auto range = remote::parse_content_range("bytes 5-9/20");
  REQUIRE(range);
  CHECK((range->begin == 5 && range->end == 10 && range->size == 20));
  CHECK(remote::parse_content_range("bytes */7")->size == 7);
  CHECK(remote::parse_content_range("bytes 0-0/*")->size == std::nullopt);
  for (const char* text : {"", "bytes", "bytes 5-4/20", "bytes 5-20/20", "bytes -5/20", "bytes 5-/20", "items 1-2/3",
                           "bytes 1-2", "bytes 0-18446744073709551615/*", "bytes 0-99999999999999999999/*", "bytes +1-2/3"}) {
    CHECK_FALSE(remote::parse_content_range(text));
  }
  CHECK(remote::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT") == 784111777);
  CHECK(remote::parse_iso_date("1994-11-06T08:49:37Z") == 784111777);
  CHECK_FALSE(remote::parse_http_date("Sun, 32 Nov 1994 08:49:37 GMT"));
  CHECK_FALSE(remote::parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT"));
  CHECK_FALSE(remote::parse_iso_date("1994-11-06"));
}

TEST_CASE("a file of a web server is read by ranges over few connections") {
  Served served{.content = random_text(100'000)};
  const auto file = open_file(served.location());  // without a call of its own
  CHECK(file->size() == 100'000);
  CHECK(file->content() == served.content);
  for (const std::uint64_t offset : {0, 1, 99'990}) CHECK(read_text(*file, offset, 10) == served.content.substr(offset, 10));
  CHECK(served.server.connections() == 1);
  CHECK(refusal_by([&] { read_text(*file, 99'991, 10); }).code() == ErrorCode::corrupt_file);
  CHECK(refusal_by([&] { read_text(*file, UINT64_MAX, 10); }).code() == ErrorCode::corrupt_file);
  CHECK(is_there(served.location()));
  CHECK_FALSE(is_there(served.server.address() + "/none"));
  CHECK_FALSE(is_folder(served.server.address() + "/"));
  const Error missing = refusal_by([&] { open_file(served.server.address() + "/none"); });
  CHECK(missing.fields().error_number == ENOENT);
  CHECK(missing.fields().path == served.server.address() + "/none");

  const auto files = file_system_of(served.location());
  CHECK_FALSE(files->is_object_store());
  CHECK(refusal_by([&] { FileReplacement{served.location()}; }).fields().error_number == EROFS);
  CHECK(refusal_by([&] { files->remove_all(served.location()); }).fields().error_number == EROFS);
  CHECK_THAT(refusal_by([&] { files->entries_of(served.server.address()); }).what(), ContainsSubstring("does not list"));
}

TEST_CASE("many bytes come over several connections, and an empty file has none") {
  Served served{.content = random_text(std::size_t{20} << 20)};
  const auto files = http_file_system(quick());
  const auto file = files->open(served.location());
  const auto memory = file->map();
  CHECK(std::string_view(reinterpret_cast<const char*>(memory.get()), file->size()) == served.content);
  CHECK(served.server.connections() >= 2);
  CHECK(served.server.connections() <= 4);
  served.server.set_script(
      [](const ServedRequest& request) { return request.number % 3 == 0 ? Fault::truncated : Fault::none; });
  CHECK(file->content() == served.content);
  served.server.set_script({});
  served.content.clear();
  CHECK(files->open(served.location())->map() == nullptr);
}

TEST_CASE("who reads piece by piece makes few journeys, and who reads here and there gets no byte more") {
  Served served{.content = random_text(3 << 20)};
  std::atomic<std::int64_t> bytes_sent{0};
  served.server.set_script([&](const ServedRequest& request) {
    if (request.method == "GET") bytes_sent += std::ssize(answer_with(served.content, served.tag, request).body);
    return Fault::none;
  });
  const auto files = http_file_system(quick());
  auto file = files->open(served.location());
  std::string all;
  while (all.size() < served.content.size())
    all += read_text(*file, all.size(), std::min<std::size_t>(1000, served.content.size() - all.size()));
  CHECK(all == served.content);
  CHECK(served.server.requests() < 12);
  CHECK(bytes_sent == std::ssize(served.content));

  bytes_sent = 0;
  for (std::uint64_t offset = 3 << 20; offset > 600'000; offset -= 300'000) {
    const std::uint64_t begin = offset - 1000;
    CHECK(read_text(*file, begin, 1000) == served.content.substr(begin, 1000));
  }
  CHECK(bytes_sent == 9000);

  file = files->open(served.location());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      std::uint64_t offset = seed * 700'000;
      for (int round = 0; round < 300; ++round) {
        if (random() % 10 == 0) offset = random() % (2 << 20);
        const std::size_t bytes = random() % 5000;
        if (read_text(*file, offset, bytes) != served.content.substr(offset, bytes)) ++wrong;
        offset += bytes + (random() % 3 == 0 ? random() % 2000 : 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("no byte is wrong among 300 faults") {
  Served served{.content = random_text(1 << 20)};
  constexpr std::array kinds{Fault::status_500, Fault::status_503, Fault::status_429, Fault::gone,
                             Fault::lost,       Fault::reset,      Fault::truncated,  Fault::cut_head};
  bool was_slow = false;
  served.server.set_script([&was_slow, kinds](const ServedRequest& request) {
    const auto words = philox(7, 0, static_cast<std::uint64_t>(request.number));
    if (words[0] % 2 == 0) return Fault::none;
    if (words[1] % 100 == 0 && !std::exchange(was_slow, true)) return Fault::slow;
    return kinds[words[2] % kinds.size()];
  });
  const auto begin = std::chrono::steady_clock::now();
  const auto file = http_file_system(quick())->open(served.location());
  std::mt19937_64 random(1);
  int wrong = 0;
  while (served.server.faults() < 300) {
    const std::size_t offset = random() % served.content.size();
    const std::size_t bytes = std::min<std::size_t>(random() % 100'000, served.content.size() - offset);
    if (read_text(*file, offset, bytes) != served.content.substr(offset, bytes)) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(was_slow);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
}

TEST_CASE("a file that changes is an Error, never a mixture") {
  Served served{.content = random_text(1000)};
  const auto files = http_file_system(quick());
  const auto refused = [&](const InputFile& file) { return refusal_by([&] { read_text(file, 10, 10); }); };
  auto file = files->open(served.location());
  served.server.set_script([](const ServedRequest&) { return Fault::wrong_tag; });
  CHECK_THAT(refused(*file).what(), ContainsSubstring("has changed") && ContainsSubstring("another file"));
  served.server.set_script({});
  served.tag = "\"two\"";
  CHECK(refused(*file).fields().error_number == EBUSY);
  for (const char* tag : {"", "W/\"weak\""}) {  // for which no condition can be set
    served.tag = tag;
    file = files->open(served.location());
    CHECK(read_text(*file, 10, 10) == served.content.substr(10, 10));
    served.content += "more";
    CHECK_THAT(refused(*file).what(), ContainsSubstring("has changed"));
  }
  file = files->open(served.location());
  served.content.resize(5);
  CHECK_THAT(refused(*file).what(), ContainsSubstring("has changed"));
}

TEST_CASE("servers that know no ranges or no HEAD, and those that lead elsewhere, are read too") {
  const std::string content = random_text(5000);
  std::string others;
  HttpServer server([&](const ServedRequest& request) -> ServedAnswer {
    if (request.path == "/moved") return {.status = 302, .headers = {{"Location", "/plain"}, {"ETag", "\"of the page\""}}};
    if (request.path == "/no-head" && request.method == "HEAD") return {.status = 405};
    if (request.path == "/no-head" || request.path == "/with%20space%23") return answer_with(content, "", request);
    if (request.path == "/part-of-200") {
      ServedAnswer answer = answer_with(content, "", request);
      answer.status = 200;
      return answer;
    }
    if (request.path == "/other-range") {
      return {.status = 206, .headers = {{"Content-Range", "bytes 7-16/5000"}}, .body = content.substr(7, 10)};
    }
    if (request.path == "/round") return {.status = 302, .headers = {{"Location", "/round"}}};
    if (request.path == "/secret") return {.status = 403};
    return {.body = content};
  });
  const auto files = http_file_system(quick());
  for (const char* name : {"/plain", "/moved", "/no-head", "/part-of-200", "/with space#"}) {
    const auto file = files->open(server.address() + name);
    CHECK(file->size() == 5000);
    CHECK(read_text(*file, 4000, 100) == content.substr(4000, 100));
    CHECK(file->content() == content);
  }
  const auto other = [&] { read_text(*files->open(server.address() + "/other-range"), 0, 10); };
  CHECK(refusal_by(other).code() == ErrorCode::corrupt_file);
  CHECK_THROWS_AS(files->open(server.address() + "/round"), Error);
  CHECK(refusal_by([&] { files->open(server.address() + "/secret"); }).fields().error_number == EACCES);
}

TEST_CASE("sizes that a server invents are errors that name the file") {
  // Each file is a token shard of which all bytes are there that the server speaks of: one document of so many tokens.
  const auto tokens_in = [](std::uint64_t size) { return (size - 1024) / 2; };
  HttpServer server([&](const ServedRequest& request) -> ServedAnswer {
    const std::uint64_t size = std::stoull(request.path.substr(1));
    ServedAnswer answer{.headers = {{"ETag", "\"one\""}, {"Content-Length", std::to_string(size)}}};
    if (request.method == "HEAD") return answer;
    const std::uint64_t tokens = tokens_in(size), length = 1024 - 16;
    std::string head = fmt::format(
        R"({{"__metadata__":{{"format":"trireme.tokens"}},"document_ends":{{"dtype":"I64","shape":[1],"data_offsets":[0,8]}},)"
        R"("tokens":{{"dtype":"U16","shape":[{}],"data_offsets":[8,{}]}}}})",
        tokens, 8 + 2 * tokens);
    head.resize(length, ' ');
    head =
        std::string(reinterpret_cast<const char*>(&length), 8) + head + std::string(reinterpret_cast<const char*>(&tokens), 8);
    if (request.path.ends_with(".npy")) {  // one row of so many numbers
      head = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': (1, {}), }}", tokens / 2);
      head.resize(1024 - 10, ' ');
      head = std::string("\x93NUMPY\1\0\xf6\3", 10) + head;
    }
    const std::string range = request.header("range");
    const std::uint64_t begin = std::stoull(range.substr(6)), last = std::stoull(range.substr(range.find('-') + 1));
    for (std::uint64_t at = begin; at <= last; ++at) answer.body += at < head.size() ? head[at] : '\0';
    answer.headers["Content-Length"] = std::to_string(answer.body.size());
    answer.headers["Content-Range"] = fmt::format("bytes {}-{}/{}", begin, last, size);
    answer.status = 206;
    return answer;
  });
  for (const std::uint64_t size : {UINT64_MAX, std::uint64_t{1} << 62}) {
    const std::string location = fmt::format("{}/{}", server.address(), size);
    const Error refused = refusal_by([&] { open_file(location); });
    CHECK(refused.code() == ErrorCode::corrupt_file);
    CHECK(refused.fields().path == location);
  }
  const std::uint64_t size = std::uint64_t{1} << 58;
  const std::string location = fmt::format("{}/{}", server.address(), size);
  const data::TokenShards shards({location});
  CHECK(shards.num_tokens() == static_cast<std::int64_t>(tokens_in(size)));
  std::vector<std::int32_t> some(3);
  shards.read(0, 1000, some);
#ifndef __SANITIZE_ADDRESS__  // which ends the process where there is no memory
  const auto refuses = [&](const auto& action) {
    const Error refused = refusal_by(action);
    CHECK(refused.code() == ErrorCode::out_of_memory);
    CHECK(refused.fields().path == location);
  };
  const std::string array = location + ".npy";
  for (const auto& read :
       {std::function([&] { data::read_npy<float>(array); }), std::function([&] { data::NpyRows<float>(array).at(0); })}) {
    const Error refused = refusal_by(read);
    CHECK(refused.code() == ErrorCode::out_of_memory);
    CHECK(refused.fields().path == array);
  }
  refuses([&] { open_file(location)->map(); });
  refuses([&] { shards.at(0); });
  refuses([&] { SafetensorsFile(location).read_bytes("tokens"); });
  refuses([&] { SafetensorsFile(location).read_values<std::uint16_t>("tokens"); });
#endif
}

TEST_CASE("a server that stalls or is not there has a deadline, and is named") {
  Served served{.content = random_text(1000)};
  RemoteOptions options = quick();
  options.attempts = 2;
  const auto files = http_file_system(options);
  const auto file = files->open(served.location());
  served.server.set_script([](const ServedRequest&) { return Fault::stalled; });
  const auto begin = std::chrono::steady_clock::now();
  const Error stalled = refusal_by([&] { read_text(*file, 0, 1000); });
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(8));
  CHECK(stalled.fields().error_number == ETIMEDOUT);
  CHECK(stalled.fields().path == served.location().string());
  CHECK_THAT(stalled.what(), ContainsSubstring("after 2 attempts") && ContainsSubstring("stalled"));
  const Location nowhere = "http://127.0.0.1:1/x";
  CHECK(refusal_by([&] { files->open(nowhere); }).fields().error_number == ECONNREFUSED);
  const Location unknown = "http://" + std::string(90, 'a') + "/x";  // no name of a host is so long
  const Error unresolved = refusal_by([&] { files->open(unknown); });
  CHECK_THAT(unresolved.what(), ContainsSubstring("after 2 attempts") && ContainsSubstring("resolve"));
  CHECK_THROWS_WITH(http_file_system({.attempts = 0}), ContainsSubstring("0 attempts"));
}

TEST_CASE("files of HDFS are listed and read at offsets, by way of its data nodes") {
  const std::string content = random_text(3000);
  std::int64_t modified = 5;
  const auto status = [&](const char* name, const char* type, std::size_t length) {
    return R"({"pathSuffix":")" + std::string(name) + R"(","type":")" + type + R"(","length":)" + std::to_string(length) +
           R"(,"modificationTime":)" + std::to_string(modified) + "}";
  };
  std::string user;
  HttpServer data_node([&](const ServedRequest& request) -> ServedAnswer {
    return {.body = content.substr(std::stoull(request.parameter("offset")), std::stoull(request.parameter("length")))};
  });
  HttpServer name_node([&](const ServedRequest& request) -> ServedAnswer {
    user = request.parameter("user.name");
    const std::string operation = request.parameter("op"), path = test::decoded_url(request.path);
    if (path == "/webhdfs/v1/broken") return {.body = "<html>"};
    if (path == "/webhdfs/v1/negative") {
      return {.body = R"({"FileStatus":{"type":"FILE","length":-1,"modificationTime":5}})"};
    }
    if (path == "/webhdfs/v1/secret") {
      return {.status = 403, .body = R"({"RemoteException":{"exception":"AccessControlException","message":"not you"}})"};
    }
    const bool is_file = path == "/webhdfs/v1/data/a b%.bin", is_folder = path == "/webhdfs/v1/data";
    if (!is_file && !is_folder) return {.status = 404, .body = "{}"};
    if (operation == "OPEN") return {.status = 307, .headers = {{"Location", data_node.address() + "/x?" + request.query}}};
    if (operation == "LISTSTATUS") {
      return {.body = R"({"FileStatuses":{"FileStatus":[)" + status("b", "DIRECTORY", 0) + "," +
                      status("a b%.bin", "FILE", 3000) + "]}}"};
    }
    return {.body = R"({"FileStatus":)" + status("", is_file ? "FILE" : "DIRECTORY", is_file ? 3000 : 0) + "}"};
  });
  setenv("HADOOP_USER_NAME", "eva", 1);
  const auto files = webhdfs_file_system(quick());
  const Location folder = "webhdfs://" + name_node.host() + "/data";
  CHECK(files->kind_of(folder) == FileKind::folder);
  CHECK(files->kind_of(folder / "none") == FileKind::none);
  CHECK(files->names_in(folder) == std::vector<std::string>{"a b%.bin", "b"});
  const auto file = files->open(folder / "a b%.bin");
  CHECK(file->size() == 3000);
  CHECK(read_text(*file, 1000, 500) == content.substr(1000, 500));
  CHECK(user == "eva");
  data_node.set_script([](const ServedRequest& request) { return request.number % 2 == 0 ? Fault::truncated : Fault::none; });
  name_node.set_script([](const ServedRequest& request) { return request.number % 3 == 0 ? Fault::status_503 : Fault::none; });
  for (std::uint64_t offset = 0; offset < 2000; offset += 100) {
    REQUIRE(read_text(*file, offset, 900) == content.substr(offset, 900));
  }
  name_node.set_script({});
  modified = 6;
  CHECK(refusal_by([&] { read_text(*file, 0, 10); }).fields().error_number == EBUSY);
  CHECK(refusal_by([&] { files->open(folder); }).fields().error_number == EISDIR);
  CHECK(refusal_by([&] { files->open(folder / "none"); }).fields().error_number == ENOENT);
  CHECK_THAT(refusal_by([&] { files->open(folder.parent() / "secret"); }).what(), ContainsSubstring("not you"));
  CHECK(refusal_by([&] { files->open(folder.parent() / "broken"); }).code() == ErrorCode::corrupt_file);
  CHECK_THAT(refusal_by([&] { files->open(folder.parent() / "negative"); }).what(), ContainsSubstring("length is no number"));
  CHECK(refusal_by([&] { files->create(folder / "c"); }).fields().error_number == EROFS);
  unsetenv("HADOOP_USER_NAME");
}
