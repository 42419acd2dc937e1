#include "trireme/data/documents/split_documents.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace trireme::data {

Documents split_documents(const TokenDataset& tokens, std::int32_t separator) {
  constexpr std::int64_t at_once = 1 << 16;
  Documents documents;
  std::vector<std::int32_t> document, read;
  for (std::int64_t position = 0; position < tokens.size(); position += at_once) {
    read.resize(static_cast<std::size_t>(std::min(at_once, tokens.size() - position)));
    tokens.window(position, read);
    for (const std::int32_t token : read) {
      if (token == separator && document.empty()) continue;
      document.push_back(token);
      if (token != separator) continue;
      documents.add(document);
      document.clear();
    }
  }
  if (!document.empty()) documents.add(document);
  return documents;
}

}  // namespace trireme::data
