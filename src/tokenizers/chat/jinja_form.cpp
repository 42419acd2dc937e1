#include "tokenizers/chat/jinja_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "tokenizers/chat/jinja_lexer.hpp"

namespace trireme::tokenizers {
namespace {

using Kind = JinjaToken::Kind;
using Tokens = std::span<const JinjaToken>;

struct Node;
using Nodes = std::vector<Node>;

struct Branch {
  JinjaTokens condition;  // empty for else
  Nodes body;
};

struct Node {
  enum class Is { text, output, set, loop, choice };
  Is is;
  std::string text = {};
  JinjaTokens tokens = {};
  std::vector<Branch> branches = {};  // a loop has one, with its head as the condition
};

JinjaToken sign(const char* value) { return {.kind = Kind::sign, .value = value}; }
JinjaToken name(const char* value) { return {.kind = Kind::name, .value = value}; }

// Replaces alternative spellings: message.role by message['role'], text.strip() by text | trim, loop.index0 == 0 by loop.first.
JinjaTokens spelled_alike(const JinjaTokens& tokens, const TextMarks& marks) {
  JinjaTokens result;
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    const auto follow = [&](std::initializer_list<JinjaToken> wanted) {
      return wanted.size() <= tokens.size() - at && std::ranges::equal(wanted, std::span(tokens).subspan(at, wanted.size()));
    };
    const bool is_attribute = at > 0 && tokens[at - 1].is_sign(".");
    const bool is_argument = at + 1 < tokens.size() && tokens[at + 1].is_sign("=");
    if (follow({sign("."), name("strip"), sign("("), sign(")")})) {
      result.insert(result.end(), {sign("|"), name("trim")});
      at += 3;
    } else if (follow({sign("."), name("role")}) || follow({sign("."), name("content")})) {
      result.insert(result.end(), {sign("["), {.kind = Kind::text, .value = tokens[at + 1].value}, sign("]")});
      ++at;
    } else if (follow({name("loop"), sign("."), name("index0"), sign("=="), {.kind = Kind::number, .value = "0"}}) &&
               !is_attribute) {
      result.insert(result.end(), {name("loop"), sign("."), name("first")});
      at += 4;
    } else if (tokens[at].is_name("raise_exception") && at + 3 < tokens.size() && tokens[at + 2].kind == Kind::text &&
               tokens[at + 3].is_sign(")")) {
      result.insert(result.end(), {name("raise_exception"), sign("("), sign(")")});
      at += 3;
    } else if (!is_attribute && !is_argument && (tokens[at].is_name("bos_token") || tokens[at].is_name("eos_token"))) {
      result.push_back({.kind = Kind::text, .value = tokens[at].is_name("bos_token") ? marks.begin : marks.end});
    } else {
      result.push_back(tokens[at]);
      if (tokens[at].kind != Kind::name || is_attribute) continue;
      for (const auto& [python, jinja] : {std::pair("True", "true"), {"False", "false"}, {"None", "none"}}) {
        if (tokens[at].value == python) result.back().value = jinja;
      }
    }
  }
  return result;
}

// Calls visit(place, token) for the tokens outside of brackets and for the brackets.
template <typename Visit>
void for_outer(Tokens tokens, const Visit& visit) {
  int depth = 0;
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    const JinjaToken& token = tokens[at];
    if (token.is_sign(")") || token.is_sign("]") || token.is_sign("}")) --depth;
    if (depth == 0) visit(at, token);
    if (token.is_sign("(") || token.is_sign("[") || token.is_sign("{")) ++depth;
  }
}

// Removes brackets around a whole expression: (x) is x.
Tokens without_brackets(Tokens tokens) {
  while (tokens.size() > 2 && tokens.front().is_sign("(") && tokens.back().is_sign(")")) {
    std::size_t outer = 0;
    for_outer(tokens, [&](std::size_t, const JinjaToken&) { ++outer; });
    if (outer != 2) break;
    tokens = tokens.subspan(1, tokens.size() - 2);
  }
  return tokens;
}

// Splits an expression at the operators `between` outside of brackets. Returns the whole if one of `never` is outside of
// brackets too.
std::vector<Tokens> operands(Tokens tokens, std::initializer_list<std::string_view> between,
                             std::initializer_list<std::string_view> never) {
  std::vector<Tokens> parts;
  bool is_whole = false;
  std::size_t begin = 0;
  for_outer(tokens, [&](std::size_t at, const JinjaToken& token) {
    if (token.kind != Kind::sign && token.kind != Kind::name) return;
    if (at > 0 && tokens[at - 1].is_sign(".")) return;
    is_whole = is_whole || std::ranges::find(never, token.value) != never.end();
    if (std::ranges::find(between, token.value) == between.end()) return;
    parts.push_back(tokens.subspan(begin, at - begin));
    begin = at + 1;
  });
  parts.push_back(tokens.subspan(begin));
  return is_whole || std::ranges::any_of(parts, [](Tokens part) { return part.empty(); }) ? std::vector{tokens} : parts;
}

// Whether a condition is never true if apply_chat_template passes add_generation_prompt = false.
bool is_never(Tokens condition) {
  const JinjaToken prompt = name("add_generation_prompt");
  const std::array<JinjaTokens, 2> undefined{
      {{name("not"), prompt, name("is"), name("defined")}, {prompt, name("is"), name("not"), name("defined")}}};
  for (const Tokens part : operands(condition, {"and"}, {"or", "if"})) {
    const Tokens bare = without_brackets(part);
    if (bare.size() == 1 && bare[0] == prompt) return true;
    for (const JinjaTokens& each : undefined) {
      if (std::ranges::equal(bare, each)) return true;
    }
  }
  return false;
}

class Reader {
 public:
  Reader(const std::vector<JinjaPart>& parts, const TextMarks& marks) : parts_(parts), marks_(marks) {}

  std::optional<Nodes> read() {
    Nodes nodes = read_body({});
    return failed_ || at_ < parts_.size() ? std::nullopt : std::optional(std::move(nodes));
  }

 private:
  static void add_text(const std::string& text, Nodes& to) {
    if (text.empty()) return;
    if (to.empty() || to.back().is != Node::Is::text) to.push_back({.is = Node::Is::text});
    to.back().text += text;
  }

  static void add_nodes(Nodes&& nodes, Nodes& to) {
    for (Node& node : nodes) node.is == Node::Is::text ? add_text(node.text, to) : to.push_back(std::move(node));
  }

  static void add_output(Tokens tokens, Nodes& to) {
    const Tokens bare = without_brackets(tokens);
    const auto parts =
        operands(bare, {"+", "~"},
                 {"if", "and", "or", "not", "in", "is", "==", "!=", "<", ">", "<=", ">=", "-", "*", "/", "//", "%", "**", ","});
    if (parts.size() > 1) {
      for (const Tokens part : parts) add_output(part, to);
    } else if (bare.size() == 1 && bare[0].kind == Kind::text) {
      add_text(bare[0].value, to);
    } else {
      to.push_back({.is = Node::Is::output, .tokens = {bare.begin(), bare.end()}});
    }
  }

  // The first name of the current statement; empty if it is not a statement.
  std::string keyword() const {
    const bool is_statement = at_ < parts_.size() && parts_[at_].kind == JinjaPart::Kind::statement;
    return is_statement && parts_[at_].tokens[0].kind == Kind::name ? parts_[at_].tokens[0].value : "";
  }

  JinjaTokens rest_of_statement() {
    const JinjaTokens tokens = spelled_alike(parts_[at_++].tokens, marks_);
    const Tokens rest = without_brackets(Tokens(tokens).subspan(1));
    return {rest.begin(), rest.end()};
  }

  // Reads nodes up to one of these statements.
  Nodes read_body(std::initializer_list<std::string_view> ends) {
    Nodes nodes;
    const int depth = depth_++;
    failed_ = failed_ || depth > 32;
    while (!failed_ && at_ < parts_.size()) {
      const JinjaPart& part = parts_[at_];
      const std::string word = keyword();
      if (std::ranges::find(ends, word) != ends.end()) break;
      if (part.kind == JinjaPart::Kind::text) {
        add_text(part.text, nodes);
        ++at_;
      } else if (part.kind == JinjaPart::Kind::output) {
        const JinjaTokens tokens = spelled_alike(part.tokens, marks_);
        add_output(tokens, nodes);
        ++at_;
      } else if (word == "generation" || word == "endgeneration") {
        ++at_;  // these tags only mark the assistant's text
      } else if (word == "set") {
        nodes.push_back({.is = Node::Is::set, .tokens = rest_of_statement()});
        bool assigns = false;
        for_outer(nodes.back().tokens, [&](std::size_t, const JinjaToken& token) { assigns = assigns || token.is_sign("="); });
        failed_ = failed_ || !assigns;
      } else if (word == "for") {
        Node loop{.is = Node::Is::loop};
        loop.branches.push_back({.condition = rest_of_statement(), .body = {}});
        loop.branches[0].body = read_body({"endfor"});
        expect_end("endfor");
        nodes.push_back(std::move(loop));
      } else if (word == "if") {
        add_choice(nodes);
      } else {
        failed_ = true;
      }
    }
    depth_ = depth;
    return nodes;
  }

  void expect_end(std::string_view word) {
    failed_ = failed_ || keyword() != word;
    if (!failed_) ++at_;
  }

  void add_choice(Nodes& to) {
    Node choice{.is = Node::Is::choice};
    bool has_else = false;
    for (std::string word = "if"; !failed_ && word != "endif"; word = keyword()) {
      failed_ = has_else || (word != "if" && word != "elif" && word != "else");
      if (failed_) return;
      has_else = word == "else";
      const JinjaTokens condition = rest_of_statement();
      Nodes body = read_body({"elif", "else", "endif"});
      if (has_else || !is_never(condition)) choice.branches.push_back({.condition = condition, .body = std::move(body)});
    }
    expect_end("endif");
    if (choice.branches.empty()) return;
    // If all branches do the same, drops the conditions.
    const std::string first = written_alone(choice.branches[0].body);
    const auto is_same = [&](const Branch& branch) { return written_alone(branch.body) == first; };
    if (choice.branches.back().condition.empty() && std::ranges::all_of(choice.branches, is_same)) {
      add_nodes(std::move(choice.branches[0].body), to);
    } else {
      to.push_back(std::move(choice));
    }
  }

  static std::string written_alone(const Nodes& nodes);

  const std::vector<JinjaPart>& parts_;
  const TextMarks& marks_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

// Writes nodes; variables are renamed in the order of their first use.
class Writer {
 public:
  explicit Writer(bool renames) : renames_(renames) {}

  void write(const Nodes& nodes) {
    for (const Node& node : nodes) {
      switch (node.is) {
        case Node::Is::text: text_ += quoted(node.text); break;
        case Node::Is::output: write("output", node.tokens); break;
        case Node::Is::set: write("set", node.tokens); break;
        case Node::Is::loop: write("for", node.branches); break;
        case Node::Is::choice: write("if", node.branches); break;
      }
      text_ += ";";
    }
  }

  std::string take() { return std::move(text_); }

 private:
  static std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  void write(const char* word, const std::vector<Branch>& branches) {
    for (const Branch& branch : branches) {
      write(branch.condition.empty() ? "else" : word, branch.condition);
      text_ += "{";
      write(branch.body);
      text_ += "}";
    }
  }

  void write(const char* word, Tokens tokens) {
    text_ += word;
    for (std::size_t at = 0; at < tokens.size(); ++at) {
      const JinjaToken& token = tokens[at];
      const bool is_variable = token.kind == Kind::name && renames_ && may_be_renamed(tokens, at);
      text_ += ' ';
      text_ += token.kind == Kind::text ? quoted(token.value) : is_variable ? renamed(token.value) : token.value;
    }
  }

  // Whether a name may be renamed: not arguments of the template, keywords and attributes.
  static bool may_be_renamed(Tokens tokens, std::size_t at) {
    static constexpr auto fixed = std::to_array<std::string_view>({"add_generation_prompt",
                                                                   "and",
                                                                   "cycler",
                                                                   "dict",
                                                                   "documents",
                                                                   "else",
                                                                   "false",
                                                                   "if",
                                                                   "in",
                                                                   "is",
                                                                   "joiner",
                                                                   "lipsum",
                                                                   "loop",
                                                                   "messages",
                                                                   "namespace",
                                                                   "none",
                                                                   "not",
                                                                   "or",
                                                                   "raise_exception",
                                                                   "range",
                                                                   "recursive",
                                                                   "strftime_now",
                                                                   "tools",
                                                                   "true"});
    if (std::ranges::find(fixed, tokens[at].value) != fixed.end()) return false;
    const JinjaToken* const before = at > 0 ? &tokens[at - 1] : nullptr;
    const bool is_test =
        before != nullptr && (before->is_name("is") || (before->is_name("not") && at > 1 && tokens[at - 2].is_name("is")));
    const bool is_of_value = before != nullptr && (before->is_sign(".") || before->is_sign("|"));
    const bool is_argument = at > 0 && at + 1 < tokens.size() && tokens[at + 1].is_sign("=") && !before->is_sign(".");
    return !is_test && !is_of_value && !is_argument;
  }

  std::string renamed(const std::string& variable) {
    const auto known = names_.emplace(variable, names_.size()).first;
    return fmt::format("v{}", known->second);
  }

  bool renames_;
  std::string text_;
  std::map<std::string, std::size_t> names_;
};

std::string Reader::written_alone(const Nodes& nodes) {
  Writer writer(false);
  writer.write(nodes);
  return writer.take();
}

}  // namespace

std::optional<std::string> jinja_form(std::string_view source, const TextMarks& marks) {
  const auto parts = lex_jinja(source);
  if (!parts) return std::nullopt;
  const auto nodes = Reader(*parts, marks).read();
  if (!nodes) return std::nullopt;
  Writer writer(true);
  writer.write(*nodes);
  return writer.take();
}

}  // namespace trireme::tokenizers
