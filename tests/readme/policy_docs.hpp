// SPDX-License-Identifier: MIT
#pragma once

// Reads what a policy's header says of itself, and makes the README's tables of it: the headers are the one source.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace readme {

namespace fs = std::filesystem;

inline std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// One policy, in the words of its header.
struct policy_doc {
  std::string name, effect, off, needs, reference;
  bool argmax_invariant = false;
};

/// The docstring that stands right before `class NAME` (or `struct`, or a function of that name), its lines joined.
inline std::string docstring_of(const std::string& source, const std::string& name) {
  std::istringstream lines(source);
  std::string line, text;
  const std::regex declared("^(class|struct) " + name + "\\b.*|^.*[ &]" + name + "\\(.*");
  while (std::getline(lines, line)) {
    if (line.starts_with("///")) {
      text += line.size() > 4 ? line.substr(4) + ' ' : "\n";
    } else if (std::regex_match(line, declared) && !text.empty()) {
      return text;
    } else if (!line.starts_with("template") && !line.starts_with("  requires")) {
      text.clear();
    }
  }
  return {};
}

/// The sentence that begins with `label`, without it and without its full stop; empty if there is none.
inline std::string sentence(const std::string& text, const std::string& label) {
  const std::size_t begin = text.find(label);
  if (begin == std::string::npos) return {};
  const std::string rest = text.substr(begin + label.size());
  std::smatch end;
  return std::regex_search(rest, end, std::regex("\\.\\s+([A-Z]|$|\n)|\\s*\n|\\s*$")) ? end.prefix().str() : rest;
}

/// "Holtzman et al. 2020, arXiv 1904.09751" of a full reference.
inline std::string short_reference(std::string reference) {
  std::smatch found;
  const std::size_t title = reference.find(", \"");
  if (title == std::string::npos) return reference;
  std::string authors = reference.substr(0, title);
  const auto commas = std::count(authors.begin(), authors.end(), ',');
  if (commas > 1) authors = authors.substr(0, authors.find(',')) + " et al.";
  if (commas == 1) authors.replace(authors.find(','), 1, " and");
  std::string rest = reference.substr(title + 3);
  std::string year, paper;
  if (std::regex_search(rest, found, std::regex("\\b(19|20)[0-9][0-9]\\b(?!\\.[0-9])"))) year = " " + found.str();
  if (std::regex_search(rest, found, std::regex("arXiv [0-9]{4}\\.[0-9]{5}"))) paper = ", " + found.str();
  if (year.empty() && paper.empty()) return authors + ", " + rest.substr(0, rest.find('"'));
  return authors + year + paper;
}

inline policy_doc policy_of(const fs::path& header) {
  const std::string source = read_text(header), name = header.stem().string();
  std::string text = docstring_of(source, name);
  if (text.empty()) text = docstring_of(source, "sample_" + name);
  policy_doc doc;
  doc.name = name;
  doc.effect = text.substr(0, text.find_first_of('\n'));
  if (std::smatch end; std::regex_search(doc.effect, end, std::regex("\\.\\s+[A-Z]|\\.?\\s*$")))
    doc.effect = end.prefix();
  doc.off = sentence(text, "Off: ");
  if (doc.off.empty() || doc.off == "none" || doc.off.starts_with("none;")) doc.off = "";
  doc.reference = short_reference(sentence(text, "Reference: "));
  doc.argmax_invariant = source.find("argmax_invariant = true") != std::string::npos;
  const auto mentions = [&](const char* pattern) { return std::regex_search(source, std::regex(pattern)); };
  const auto need = [&](bool needed, const char* what) {
    if (needed) doc.needs += (doc.needs.empty() ? "" : ", ") + std::string(what);
  };
  need(mentions("context\\.(tokens|output|prompt_size)|history_scope|processors/sequence_bias|\\(context\\);$"),
       "text");
  need(mentions("vocabulary_bytes"), "bytes");
  need(mentions("context\\.draws|draw_stream"), "draws");
  need(mentions("void rollback\\("), "state");
  return doc;
}

/// A group of policies, in the order in which the README lists them.
struct policy_group {
  std::string title;
  fs::path room;
  std::vector<std::string> names;
};

inline const std::vector<policy_group>& groups() {
  static const std::vector<policy_group> all = {
      {"Reshaping",
       "processors",
       {"temperature", "dynamic_temperature", "edt", "quadratic", "exponential_decay_length", "renormalise"}},
      {"Truncation",
       "processors",
       {"top_k", "top_p", "min_p", "typical", "epsilon_cutoff", "eta_cutoff", "top_a", "tail_free", "top_n_sigma",
        "xtc", "p_less", "p_less_norm", "top_h", "confidence_increment"}},
      {"Repetition",
       "processors",
       {"repetition_penalty", "frequency_penalty", "presence_penalty", "dry", "no_repeat_ngram",
        "encoder_repetition_penalty", "encoder_no_repeat_ngram"}},
      {"Bans, biases and forcing",
       "processors",
       {"logit_bias", "sequence_bias", "bad_words", "allowed_tokens", "prefix_allowed_tokens", "suppress_tokens",
        "suppress_at_begin", "min_length", "min_new_tokens", "forced_bos", "forced_eos", "thinking_budget",
        "remove_invalid_values"}},
      {"Watermarks", "processors", {"green_list_watermark", "unigram_watermark", "synthid_watermark"}},
      {"Samplers",
       "samplers",
       {"greedy", "multinomial", "gumbel", "mirostat", "mirostat_v1", "adaptive_p", "arithmetic_sampling",
        "without_replacement", "gumbel_watermark"}},
  };
  return all;
}

/// A cell of a table: a bar would end it.
inline std::string cell(const std::string& text) { return std::regex_replace(text, std::regex("\\|"), "\\|"); }

/// The tables between the README's markers.
inline std::string policy_tables(const fs::path& include) {
  std::ostringstream out;
  for (const policy_group& group : groups()) {
    out << "\n### " << group.title << "\n\n| policy | effect | off at | argmax stays | needs | reference |\n"
        << "|---|---|---|---|---|---|\n";
    for (const std::string& name : group.names) {
      const policy_doc doc = policy_of(include / group.room / (name + ".hpp"));
      out << "| `" << doc.name << "` | " << cell(doc.effect) << " | " << cell(doc.off) << " | "
          << (group.room == "samplers" ? ""
              : doc.argmax_invariant   ? "yes"
                                       : "no")
          << " | " << doc.needs << " | " << doc.reference << " |\n";
    }
  }
  out << '\n';
  return out.str();
}

inline constexpr const char* begin_marker = "<!-- policies: written by the test readme, do not edit -->\n";
inline constexpr const char* end_marker = "<!-- policies: end -->\n";

}  // namespace readme
