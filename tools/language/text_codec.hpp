#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Text as the tokens of a model, and back.
struct TextCodec {
  std::function<std::vector<std::int32_t>(std::string_view)> encode;
  std::function<std::string(std::span<const std::int32_t>)> decode;
  std::function<std::string(std::int32_t)> decode_next;  // of one text's tokens in turn: what is complete
};

// byte: every byte is a token; number: texts are numbers of tokens with spaces between them. `folder`: the model's.
TextCodec codec_of(const std::string& tokens, const std::filesystem::path& folder);
