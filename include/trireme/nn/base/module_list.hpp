#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/nn/base/module.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

// Modules of one type in a row, named "<name>.0", "<name>.1", ... In a class that derives from Module:
//
//   nn::ModuleList<Block> blocks{*this, "block", 4};                   // Block(parent, "block.0"), ...
//   nn::ModuleList<Linear> towers{*this, "tower", 2, nn::LinearOptions{.in = 8, .out = 8}};
//   nn::ModuleList<Block> layers{*this, "layer", list_of_options};     // Block(parent, "layer.0", list_of_options[0]), ...
//   nn::ModuleList<Block> named{*this, names_and_options};             // Block(parent, names_and_options[0].first, ...), ...
template <typename M>
class ModuleList {
 public:
  template <typename Parent, typename... Arguments>
  ModuleList(const Parent& parent, std::string_view name, int count, const Arguments&... arguments) {
    require(count >= 0, "a list of modules {} has 0 or more, got {}", name, count);
    for (int index = 0; index < count; ++index) add(parent, name, arguments...);
  }
  template <typename Parent, typename Options>
  ModuleList(const Parent& parent, std::string_view name, const std::vector<Options>& options) {
    for (const Options& of_one : options) add(parent, name, of_one);
  }
  template <typename Parent, typename Options>
  ModuleList(const Parent& parent, const std::vector<std::pair<std::string, Options>>& modules) {
    for (const auto& [name, options] : modules) make(parent, name, options);
  }

  std::size_t size() const { return modules_.size(); }
  const M& operator[](std::size_t index) const { return *modules_[index]; }
  M& operator[](std::size_t index) { return *modules_[index]; }

  // for (const Block& block : blocks) x = block.forward(x);
  auto begin() const { return elements<const M>().begin(); }
  auto end() const { return elements<const M>().end(); }
  auto begin() { return elements<M>().begin(); }
  auto end() { return elements<M>().end(); }

 private:
  template <typename Parent, typename... Arguments>
  void add(const Parent& parent, std::string_view name, const Arguments&... arguments) {
    make(parent, std::string(name) + "." + std::to_string(modules_.size()), arguments...);
  }
  template <typename Parent, typename... Arguments>
  void make(const Parent& parent, const std::string& name, const Arguments&... arguments) {
    constexpr bool has_constructor = std::constructible_from<M, const Parent&, const std::string&, const Arguments&...>;
    static_assert(has_constructor,
                  "a list makes its modules by a constructor (parent, name, the other arguments of the list...): "
                  "write using Module::Module; in their class, or such a constructor");
    if constexpr (has_constructor) modules_.push_back(std::make_unique<M>(parent, name, arguments...));
  }

  template <typename Element>
  auto elements() const {
    return std::views::transform(modules_, [](const std::unique_ptr<M>& each) -> Element& { return *each; });
  }

  std::vector<std::unique_ptr<M>> modules_;
};

}  // namespace nn
}  // namespace trireme
