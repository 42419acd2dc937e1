#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "files/http_server.hpp"

namespace trireme::test {

// Buckets in memory, as S3 serves them by path: objects, listings by pages, uploads of parts, copies. It checks signatures by
// rules that are written here once more, and the clocks of those who sign.
class S3Server {
 public:
  S3Server();

  static constexpr const char* access_key = "AKIATEST";
  static constexpr const char* secret_key = "secret/of+test";

  HttpServer& http() { return http_; }
  std::string address() const { return http_.address(); }

  // What lies there, by "bucket/key".
  std::map<std::string, std::string> objects();
  std::size_t uploads();  // that are neither completed nor aborted
  void put(const std::string& name, const std::string& content);
  std::int64_t refusals() const { return refusals_; }  // of signatures and clocks

  std::size_t page = 1000;           // names in an answer
  std::string region = "us-east-1";  // of all buckets
  bool is_public = false;            // takes what is not signed
  bool knows_conditions = true;      // of If-None-Match; otherwise it answers 501
  std::string session_token = {};    // that requests have to carry

 private:
  struct Object {
    std::string content;
    std::string tag;
    std::string mark;
  };
  struct Upload {
    std::string name;
    std::string mark;
    std::map<int, Object> parts;
  };

  ServedAnswer answer(const ServedRequest& request);
  std::optional<ServedAnswer> refusal_of(const ServedRequest& request);
  ServedAnswer answer_object(const ServedRequest& request, const std::string& name);
  ServedAnswer put_object(const ServedRequest& request, const std::string& name);
  ServedAnswer put_part(const ServedRequest& request);
  ServedAnswer complete(const ServedRequest& request, const std::string& name);
  ServedAnswer list(const ServedRequest& request, const std::string& bucket);
  ServedAnswer list_uploads(const ServedRequest& request, const std::string& bucket);
  const Object* source_of(const ServedRequest& request) const;
  Object object_of(std::string content, std::string mark);

  std::map<std::string, Object> objects_;
  std::map<std::string, Upload> uploads_;
  std::int64_t next_ = 0;
  std::atomic<std::int64_t> refusals_{0};
  HttpServer http_;  // the last: it calls the others
};

}  // namespace trireme::test
