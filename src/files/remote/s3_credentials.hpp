#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "files/remote/http_client.hpp"
#include "files/remote/s3_signature.hpp"

namespace trireme::remote {

// A variable that is set to something; empty otherwise.
std::string environment(const char* name);

// A key of a profile in ~/.aws/config or ~/.aws/credentials; empty: there is none. AWS_PROFILE names another one than
// "default".
std::string shared_setting(const std::string& key);

// Where keys come from: those that are given, or the environment's, the shared files', the container's, in this order. They are
// looked for when first needed, and again before they expire.
class S3KeyChain {
 public:
  S3KeyChain(S3Keys given, std::shared_ptr<const HttpClient> client) : given_(std::move(given)), client_(std::move(client)) {}

  // None, where AWS_NO_SIGN_REQUEST asks for that. Error{io}, where nothing has any.
  S3Keys keys(const Location& location);
  void forget();  // a server has refused them as too old

 private:
  S3Keys find(const Location& location);
  std::optional<S3Keys> of_container(const Location& location);

  S3Keys given_;
  std::shared_ptr<const HttpClient> client_;
  std::mutex mutex_;
  std::optional<S3Keys> found_;
  std::optional<std::chrono::system_clock::time_point> expiry_;
};

}  // namespace trireme::remote
