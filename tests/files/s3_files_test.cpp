// Objects of S3, from a server in this process that fails on purpose.

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "files/remote/s3_signature.hpp"
#include "files/remote/s3_xml.hpp"
#include "files/s3_server.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/files/remote/remote_file_systems.hpp"
#include "trireme/files/safetensors.hpp"

using namespace trireme;
using test::Fault;
using test::HttpServer;
using test::S3Server;
using test::ServedRequest;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

S3Options options_for(const S3Server& server) {
  return {.endpoint = server.address(),
          .region = "us-east-1",
          .access_key = S3Server::access_key,
          .secret_key = S3Server::secret_key,
          .part_bytes = std::int64_t{5} << 20,
          .copy_bytes = std::int64_t{5} << 20,
          .remote = {.first_pause = std::chrono::milliseconds(1),
                     .longest_pause = std::chrono::milliseconds(4),
                     .stall = std::chrono::seconds(1),
                     .connections = 3}};
}

std::string random_bytes(std::size_t size, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

void write_all(OutputFile& file, std::string_view text) {
  for (std::size_t at = 0; at < text.size(); at += 100'000) {
    file.write(std::as_bytes(std::span(text.substr(at, 100'000))));
  }
  file.sync();
  file.close();
}

void create_object(FileSystem& files, const Location& location, std::string_view text) {
  write_all(*files.create(location), text);
}

Error thrown_by(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  throw std::logic_error("not reached");
}

using Variables = std::map<std::string, std::string>;

// Sets variables, and puts them back.
class Environment {
 public:
  explicit Environment(const Variables& values) {
    for (const auto& [name, value] : values) {
      const char* before = std::getenv(name.c_str());
      before_[name] = before == nullptr ? std::nullopt : std::optional<std::string>(before);
      set(name, value);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) set(name, value.value_or(""));
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void set(const std::string& name, const std::string& value) {
    value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
  }
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace

// The examples of "Authenticating Requests: Using the Authorization Header" in Amazon's documentation of S3.
TEST_CASE("signatures are those that Amazon publishes") {
  const remote::S3Keys keys{.access_key = "AKIAIOSFODNN7EXAMPLE", .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
  constexpr std::int64_t time = 1369353600;  // 20130524T000000Z
  const auto signature = [&](remote::S3Request request) {
    request.host = "examplebucket.s3.amazonaws.com";
    remote::sign(request, keys, "us-east-1", time);
    const std::string text = request.headers.at("authorization");
    return text.substr(text.find("Signature=") + 10);
  };
  CHECK(signature({.path = "/test.txt", .headers = {{"range", "bytes=0-9"}}}) ==
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  CHECK(signature({.query = {{"lifecycle", ""}}}) == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  CHECK(signature({.query = {{"max-keys", "2"}, {"prefix", "J"}}}) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  const std::string body = "Welcome to Amazon S3.";
  CHECK(signature({.method = "PUT",
                   .path = remote::s3_encoded("/test$file.text", true),
                   .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                   .body = std::as_bytes(std::span(body))}) ==
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST_CASE("what an S3 server answers is read, and refused where it is none") {
  const auto listing = remote::parse_listing(
      "<ListBucketResult xmlns='x'><EncodingType>url</EncodingType><Contents><Key>a+b%2Bc%25</Key></Contents>"
      "<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>t</NextContinuationToken></ListBucketResult>",
      "s3://b/");
  CHECK(listing.keys == std::vector<std::string>{"a b+c%"});
  CHECK(listing.prefixes == std::vector<std::string>{"d/"});
  CHECK(listing.next == "t");
  CHECK(remote::parse_refusal("<Error><Code>NoSuchKey</Code></Error>").code == "NoSuchKey");
  CHECK(remote::parse_refusal("<html>").code.empty());
  for (const char* text : {"", "<html></html>", "<ListBucketResult>", "<ListBucketResult><Contents/></ListBucketResult>",
                           "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"}) {
    CHECK(thrown_by([&] { remote::parse_listing(text, "s3://b/"); }).fields().path == "s3://b/");
  }
}

TEST_CASE("objects are written, read, listed, renamed and removed") {
  S3Server server;
  server.page = 3;
  const auto files = s3_file_system(options_for(server));
  const Location folder = "s3://bucket/some/folder";
  CHECK(files->is_object_store());
  CHECK(files->kind_of(folder) == FileKind::none);
  CHECK(thrown_by([&] { files->entries_of(folder); }).fields().error_number == ENOENT);
  const std::vector<std::string> names{"a", "b c+d%20&=?#'", "empty", "über", "z~*()!"};
  for (const std::string& name : names) create_object(*files, folder / name, name == "empty" ? "" : name);
  for (const char* below : {"deep/1", "deep/er/2", "deep2"}) create_object(*files, folder / below, below);
  CHECK(files->names_in(folder) == std::vector<std::string>{"a", "b c+d%20&=?#'", "deep", "deep2", "empty", "z~*()!", "über"});
  CHECK(files->entries_of(folder)[2].kind == FileKind::folder);
  CHECK(files->entries_of("s3://bucket")[0].name == "some");
  CHECK(files->kind_of(folder) == FileKind::folder);
  CHECK(files->kind_of("s3://bucket") == FileKind::folder);
  CHECK(files->kind_of("s3://nowhere") == FileKind::none);
  CHECK(files->kind_of(folder / "a") == FileKind::file);
  for (const std::string& name : names) CHECK(files->open(folder / name)->content() == (name == "empty" ? "" : name));
  CHECK(files->open(folder / "empty")->map() == nullptr);

  CHECK(thrown_by([&] { create_object(*files, folder / "a", "x"); }).fields().error_number == EEXIST);
  CHECK(thrown_by([&] { files->open(folder / "none"); }).fields().error_number == ENOENT);
  CHECK(thrown_by([&] { files->open(folder); }).fields().error_number == ENOENT);
  write_all(*files->replace(folder / "a"), "anew");
  files->rename(folder / "a", folder / "b c+d%20&=?#'");
  CHECK(files->open(folder / "b c+d%20&=?#'")->content() == "anew");
  CHECK(files->kind_of(folder / "a") == FileKind::none);
  CHECK(thrown_by([&] { files->rename(folder / "a", folder / "b"); }).fields().error_number == ENOENT);
  files->rename(folder / "deep", folder / "moved");
  CHECK(files->open(folder / "moved/er/2")->content() == "deep/er/2");
  CHECK(files->kind_of(folder / "deep") == FileKind::none);
  files->remove_all(folder / "moved");
  files->remove_all(folder / "none");
  CHECK(files->names_in(folder) == std::vector<std::string>{"b c+d%20&=?#'", "deep2", "empty", "z~*()!", "über"});
  files->remove_all(folder);
  CHECK(server.objects().empty());
  for (const char* text : {"s3://", "s3:///x", "s3://a b/x", "s3://user@host/x"}) {
    CHECK(thrown_by([&] { files->open(text); }).code() == ErrorCode::invalid_argument);
  }
  CHECK(thrown_by([&] { files->remove_all("s3://bucket"); }).code() == ErrorCode::invalid_argument);
}

TEST_CASE("a large object comes in parts, and is there when it is closed") {
  S3Server server;
  const auto files = s3_file_system(options_for(server));
  const Location location = "s3://bucket/large";
  const std::string content = random_bytes(12 * mebibyte + 5);
  {
    const auto file = files->create(location);
    file->reserve(content.size());
    file->write(std::as_bytes(std::span(content)));
    file->sync();
    CHECK(server.uploads() == 1);
    CHECK(server.objects().empty());
  }  // without close()
  CHECK(server.uploads() == 0);
  CHECK(server.objects().empty());
  create_object(*files, location, content);
  CHECK(server.objects() == std::map<std::string, std::string>{{"bucket/large", content}});
  CHECK(files->open(location)->content() == content);
  files->rename(location, "s3://other/copied");  // in three pieces
  CHECK(server.objects() == std::map<std::string, std::string>{{"other/copied", content}});

  server.http().set_script(
      [](const ServedRequest& request) { return request.parameter("partNumber") == "3" ? Fault::status_500 : Fault::none; });
  {
    const auto broken = files->replace(location);
    broken->write(std::as_bytes(std::span(content)));
    const std::string more = random_bytes(5 * mebibyte);
    broken->write(std::as_bytes(std::span(more)));  // sends the third part
    CHECK_THROWS_AS(broken->sync(), Error);
    CHECK_THROWS_WITH(broken->close(), ContainsSubstring("a part of it failed"));
  }
  server.http().set_script({});
  CHECK(server.objects().size() == 1);
  CHECK(server.uploads() == 0);

  const auto late = files->create(location);
  late->write(std::as_bytes(std::span(content)));
  create_object(*files, location, "first");
  CHECK(thrown_by([&] { late->close(); }).fields().error_number == EEXIST);
  CHECK(files->open(location)->content() == "first");
  const auto left = files->replace(location);
  left->write(std::as_bytes(std::span(content)));
  left->sync();
  files->remove_all(location);  // of a job that was killed, too
  CHECK(server.uploads() == 0);
  server.knows_conditions = false;
  create_object(*files, location, "small");
  CHECK(files->open(location)->content() == "small");
}

TEST_CASE("300 faults lose no object and no byte of one") {
  S3Server server;
  server.page = 7;
  constexpr std::array kinds{Fault::status_500, Fault::status_503, Fault::status_429, Fault::gone,
                             Fault::lost,       Fault::reset,      Fault::truncated,  Fault::cut_head};
  server.http().set_script([&](const ServedRequest& request) {
    const auto words = philox(11, 0, static_cast<std::uint64_t>(request.number));
    return words[0] % 5 < 2 ? kinds[words[2] % kinds.size()] : Fault::none;
  });
  const auto files = s3_file_system(options_for(server));
  std::map<std::string, std::string> wanted;
  std::mt19937_64 random(3);
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; server.http().faults() < 300; ++round) {
    const std::string key = "bucket/run/" + std::to_string(round % 40);
    const Location location = "s3://" + key;
    const std::string content = random_bytes(round % 25 == 0 ? 11 * mebibyte : random() % 50'000, random());
    if (wanted.contains(key)) {
      write_all(*files->replace(location), content);
    } else {
      create_object(*files, location, content);
    }
    wanted[key] = content;
    if (round % 7 == 3) {
      files->rename(location, location.beside("-renamed"));
      wanted[key + "-renamed"] = std::move(wanted[key]);
      wanted.erase(key);
    }
    if (round % 11 == 5) {
      files->remove_all(location);
      wanted.erase(key);
    }
    const auto chosen = std::next(wanted.begin(), static_cast<std::ptrdiff_t>(random() % wanted.size()));
    REQUIRE(files->open("s3://" + chosen->first)->content() == chosen->second);
    REQUIRE(files->names_in("s3://bucket/run").size() == wanted.size());
  }
  CHECK(server.objects() == wanted);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("a clock that is wrong, a bucket of another region and keys that have expired are mended") {
  S3Server server;
  server.put("bucket/a", "content");
  server.http().set_clock_ahead(7200);
  const auto files = s3_file_system(options_for(server));
  CHECK(files->open("s3://bucket/a")->content() == "content");  // by a HEAD, which says no code
  CHECK(server.refusals() == 1);
  server.http().set_clock_ahead(-3600);
  create_object(*files, "s3://bucket/b", "more");
  CHECK(files->names_in("s3://bucket") == std::vector<std::string>{"a", "b"});
  CHECK(server.refusals() == 2);
  server.region = "eu-west-1";
  CHECK(files->open("s3://bucket/b")->content() == "more");
  CHECK(server.refusals() == 3);
}

TEST_CASE("keys come from the environment, the shared files or the container") {
  const tests::TemporaryFolder home;
  S3Server server;
  server.put("bucket/a", "content");
  HttpServer container([](const ServedRequest& request) -> test::ServedAnswer {
    if (request.header("authorization") != "token of the container") return {.status = 401};
    return {.body = std::string(R"({"AccessKeyId":")") + S3Server::access_key + R"(","SecretAccessKey":")" +
                    S3Server::secret_key + R"(","Token":"of an hour","Expiration":"2099-01-01T00:00:00Z"})"};
  });
  const std::map<std::string, std::string> nothing{{"HOME", home.path()},
                                                   {"AWS_ACCESS_KEY_ID", ""},
                                                   {"AWS_SECRET_ACCESS_KEY", ""},
                                                   {"AWS_SESSION_TOKEN", ""},
                                                   {"AWS_PROFILE", ""},
                                                   {"AWS_SHARED_CREDENTIALS_FILE", ""},
                                                   {"AWS_CONFIG_FILE", ""},
                                                   {"AWS_REGION", ""},
                                                   {"AWS_DEFAULT_REGION", ""},
                                                   {"AWS_NO_SIGN_REQUEST", ""},
                                                   {"AWS_ENDPOINT_URL", server.address()},
                                                   {"AWS_ENDPOINT_URL_S3", ""}};
  const Environment clean(nothing);
  const auto read = [] { return s3_file_system()->open("s3://bucket/a")->content(); };
  const Error none = thrown_by(read);
  CHECK(none.fields().error_number == EACCES);
  CHECK_THAT(none.what(), ContainsSubstring("AWS_ACCESS_KEY_ID") && ContainsSubstring("profile default") &&
                              ContainsSubstring("AWS_NO_SIGN_REQUEST=1"));
  {
    const Environment anyone(Variables{{"AWS_NO_SIGN_REQUEST", "1"}});
    CHECK(thrown_by(read).fields().error_number == EACCES);
    server.is_public = true;
    CHECK(read() == "content");
    server.is_public = false;
  }
  {
    const Environment keys(Variables{{"AWS_ACCESS_KEY_ID", S3Server::access_key}, {"AWS_SECRET_ACCESS_KEY", "wrong"}});
    CHECK_THAT(thrown_by(read).what(), ContainsSubstring("SignatureDoesNotMatch"));
    const Environment right(Variables{{"AWS_SECRET_ACCESS_KEY", S3Server::secret_key}});
    CHECK(read() == "content");
  }
  {
    const Environment endpoint(Variables{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", container.address() + "/keys"},
                                         {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "token of the container"}});
    server.session_token = "of an hour";
    CHECK(read() == "content");
    const Environment elsewhere(Variables{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:80@example.com/"}});
    CHECK_THROWS_WITH(read(), ContainsSubstring("over https"));
    server.session_token.clear();
  }
  std::filesystem::create_directory(home.path() / ".aws");
  std::ofstream(home.path() / ".aws" / "credentials")
      << "# keys\n[default]\naws_access_key_id = no\naws_secret_access_key=no\n\n[ team ]\naws_access_key_id = "
      << S3Server::access_key << "\r\naws_secret_access_key = " << S3Server::secret_key << "\n";
  std::ofstream(home.path() / ".aws" / "config") << "[default]\nregion = here\n[profile team]\nregion = eu-west-1\n";
  const Environment team(Variables{{"AWS_PROFILE", "team"}});
  server.region = "eu-west-1";
  CHECK(read() == "content");
  CHECK(server.refusals() == 4);  // of a HEAD and a GET without keys and with wrong ones: the region is that of the file
}

TEST_CASE("a file of tensors is written to S3 and read from it as from a folder") {
  S3Server server;
  const Environment environment(Variables{{"AWS_ENDPOINT_URL", server.address()},
                                          {"AWS_ACCESS_KEY_ID", S3Server::access_key},
                                          {"AWS_SECRET_ACCESS_KEY", S3Server::secret_key},
                                          {"AWS_REGION", "us-east-1"}});
  const Location location = "s3://bucket/models/weights.safetensors";  // without a call of its own
  const std::vector<float> values{1, 2, 3};
  write_safetensors(location,
                    std::vector<TensorRef>{{.name = "w", .dtype = DType::float32, .shape = {3}, .data = values.data()}});
  CHECK(SafetensorsFile(location).read_values<float>("w") == values);
  CHECK(server.objects().size() == 1);
  CHECK(is_folder("s3://bucket/models"));
}
