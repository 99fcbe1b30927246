// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/errors.hpp>

namespace decant {

/// A stage of llama.cpp's chain.
enum class llama_cpp_stage : std::uint8_t {
  penalties,
  dry,
  top_n_sigma,
  top_k,
  typ_p,
  top_p,
  min_p,
  xtc,
  temperature,
  adaptive_p,
};

/// The order of llama.cpp's chain, read from and printed as either of its two texts.
///
/// "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature" is the default, "edskypmxt" the same in letters
/// ('a' is adaptive_p). Names may be written with hyphens; the aliases topk, topp, minp, nucleus, typical, typical_p,
/// typ, temp are read too, and never printed. An empty text is an empty order. A stage may stand more than once, as
/// there. "infill" is known, and refused: decant has no such stage.
/// Errors: bad_text, which names the place (1 is the first character) and what stands there.
/// Reference: llama.cpp, options --samplers and --sampling-seq.
class llama_cpp_order {
 public:
  using stage = llama_cpp_stage;

  llama_cpp_order() : stages_(usual.begin(), usual.end()) {}
  explicit llama_cpp_order(std::vector<stage> stages) : stages_(std::move(stages)) {}

  /// Reads names with semicolons between them.
  static result<llama_cpp_order> from_names(std::string_view text) {
    std::vector<stage> stages;
    if (text.empty()) return llama_cpp_order(std::move(stages));
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(';', begin), text.size());
      const std::string_view word = text.substr(begin, end - begin);
      std::string name(word);
      std::ranges::replace(name, '-', '_');
      const auto known = std::ranges::find(aliases, std::string_view(name), &alias::name);
      if (known == aliases.end()) return unknown("sampler", word, begin, name == "infill");
      stages.push_back(known->means);
      begin = end + 1;
    }
    return llama_cpp_order(std::move(stages));
  }

  /// Reads one letter a stage.
  static result<llama_cpp_order> from_letters(std::string_view text) {
    std::vector<stage> stages;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::size_t place = letters_of_stages.find(text[i]);
      if (place == std::string_view::npos) return unknown("letter", text.substr(i, 1), i, text[i] == 'i');
      stages.push_back(static_cast<stage>(place));
    }
    return llama_cpp_order(std::move(stages));
  }

  [[nodiscard]] std::string names() const {
    std::string text;
    for (const stage each : stages_) {
      if (!text.empty()) text += ';';
      text += name_of(each);
    }
    return text;
  }

  [[nodiscard]] std::string letters() const {
    std::string text;
    for (const stage each : stages_) text += letters_of_stages[static_cast<std::size_t>(each)];
    return text;
  }

  [[nodiscard]] const std::vector<stage>& stages() const { return stages_; }
  [[nodiscard]] bool contains(stage wanted) const { return std::ranges::find(stages_, wanted) != stages_.end(); }

  [[nodiscard]] static std::string_view name_of(stage each) { return aliases[static_cast<std::size_t>(each)].name; }

  friend bool operator==(const llama_cpp_order&, const llama_cpp_order&) = default;

 private:
  struct alias {
    std::string_view name;
    stage means;
  };

  static constexpr std::array<stage, 9> usual{stage::penalties, stage::dry,   stage::top_n_sigma,
                                              stage::top_k,     stage::typ_p, stage::top_p,
                                              stage::min_p,     stage::xtc,   stage::temperature};
  static constexpr std::string_view letters_of_stages = "edskypmxta";
  // First the name of each stage, in the order of the enumeration; then what else is read.
  static constexpr std::array<alias, 18> aliases{{
      {"penalties", stage::penalties},
      {"dry", stage::dry},
      {"top_n_sigma", stage::top_n_sigma},
      {"top_k", stage::top_k},
      {"typ_p", stage::typ_p},
      {"top_p", stage::top_p},
      {"min_p", stage::min_p},
      {"xtc", stage::xtc},
      {"temperature", stage::temperature},
      {"adaptive_p", stage::adaptive_p},
      {"topk", stage::top_k},
      {"topp", stage::top_p},
      {"minp", stage::min_p},
      {"nucleus", stage::top_p},
      {"typical", stage::typ_p},
      {"typical_p", stage::typ_p},
      {"typ", stage::typ_p},
      {"temp", stage::temperature},
  }};

  static error unknown(std::string_view kind, std::string_view word, std::size_t index, bool foreign) {
    const std::string what = std::string(kind) + " \"" + std::string(word) + "\"";
    return {error_code::bad_text, "llama_cpp_order:" + std::to_string(index + 1),
            foreign ? what + " stands for infill, which decant does not have" : "unknown " + what};
  }

  std::vector<stage> stages_;
};

}  // namespace decant
