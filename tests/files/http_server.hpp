#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace trireme::test {

struct ServedRequest {
  std::int64_t number = 0;  // from 1 on
  std::string method;
  std::string path;                            // as it came, encoded
  std::string query;                           // without "?"
  std::map<std::string, std::string> headers;  // by names in small letters
  std::string body;

  std::string header(const std::string& name) const;
  std::string parameter(const std::string& name) const;  // of the query, decoded; empty: none
  bool has_parameter(const std::string& name) const;
};

struct ServedAnswer {
  int status = 200;
  std::map<std::string, std::string> headers = {};
  std::string body = {};
};

// What goes wrong with an answer.
enum class Fault : std::uint8_t {
  none,
  status_500,
  status_503,  // asks to wait for 0 s
  status_429,
  gone,       // the connection ends, and nothing was done
  lost,       // it was done, and the connection ends without an answer
  reset,      // in the middle of the answer
  truncated,  // an orderly end in the middle of it
  cut_head,   // the same in the middle of its head
  stalled,    // in the middle of it nothing comes any more
  slow,       // ten bytes a second
  wrong_tag,
};

std::string decoded_url(const std::string& text);

// Bytes of an object as a server gives them: whole, or the range that the request asks for, under its conditions.
ServedAnswer answer_with(const std::string& content, const std::string& tag, const ServedRequest& request);

// A server of HTTP/1.1 on a port of this machine, with a thread for each connection.
class HttpServer {
 public:
  using Handler = std::function<ServedAnswer(const ServedRequest&)>;  // one at a time
  using Script = std::function<Fault(const ServedRequest&)>;

  explicit HttpServer(Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string host() const;     // "127.0.0.1:1234"
  std::string address() const;  // "http://127.0.0.1:1234"
  void set_script(Script script);
  std::int64_t requests() const { return requests_; }
  std::int64_t connections() const { return connections_; }
  std::int64_t faults() const { return faults_; }
  void set_clock_ahead(std::int64_t seconds) { clock_ahead_ = seconds; }
  std::int64_t now() const;  // by its clock, in seconds since 1970

 private:
  void accept_all();
  void serve(int connection);
  bool answer(int connection, const ServedRequest& request);  // false: the connection ends

  Handler handler_;
  Script script_;
  std::mutex mutex_;
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::atomic<std::int64_t> requests_{0}, connections_{0}, faults_{0}, clock_ahead_{0};
  std::atomic<bool> is_over_{false};
  int listener_ = -1;
  int port_ = 0;
  std::thread acceptor_;
};

}  // namespace trireme::test
