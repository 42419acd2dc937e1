#include "trireme/nn/base/named_errors.hpp"

#include <string_view>
#include <typeinfo>
#include <utility>

namespace trireme::nn::detail {

void rethrow_from(const std::string& layer, const Error& error) {
  const std::string_view message = error.fields().message;
  const bool is_named = message.starts_with(layer) && message.size() > layer.size() &&
                        (message[layer.size()] == ':' || message[layer.size()] == '.');
  if (layer.empty() || is_named || error.code() != ErrorCode::invalid_argument || typeid(error) != typeid(Error)) throw;
  ErrorFields fields = error.fields();
  fields.message = layer + ": " + fields.message;
  throw Error(std::move(fields));
}

}  // namespace trireme::nn::detail
