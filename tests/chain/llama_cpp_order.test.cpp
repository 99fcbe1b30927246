// SPDX-License-Identifier: MIT
#include <decant/chain/llama_cpp_order.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace llama_cpp_order_test {

using decant::llama_cpp_order;
using stage = decant::llama_cpp_stage;

constexpr std::string_view usual_names = "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature";

std::string complaint(const decant::result<llama_cpp_order>& read) {
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().code == decant::error_code::bad_text);
  return read.error().text();
}

TEST_CASE("the default order prints as llama.cpp's help has it") {
  CHECK(llama_cpp_order().names() == usual_names);
  CHECK(llama_cpp_order().letters() == "edskypmxt");
}

TEST_CASE("both texts of an order read back") {
  CHECK(*llama_cpp_order::from_names(usual_names) == llama_cpp_order());
  CHECK(*llama_cpp_order::from_letters("edskypmxt") == llama_cpp_order());
  const std::vector<stage> all{stage::penalties,   stage::dry,       stage::top_n_sigma, stage::top_k,
                               stage::typ_p,       stage::top_p,     stage::min_p,       stage::xtc,
                               stage::temperature, stage::adaptive_p};
  for (const stage first : all) {
    for (const stage second : all) {
      const llama_cpp_order order({first, second});
      CHECK(*llama_cpp_order::from_names(order.names()) == order);
      CHECK(*llama_cpp_order::from_letters(order.letters()) == order);
    }
  }
}

TEST_CASE("an empty text is an empty order") {
  CHECK(llama_cpp_order::from_names("")->stages().empty());
  CHECK(llama_cpp_order::from_letters("")->stages().empty());
  CHECK(llama_cpp_order(std::vector<stage>{}).names().empty());
}

TEST_CASE("aliases are read and the name proper is printed") {
  const std::vector<std::pair<std::string, std::string>> aliases{
      {"top-k", "top_k"},          {"topk", "top_k"},
      {"top-p", "top_p"},          {"nucleus", "top_p"},
      {"topp", "top_p"},           {"typ-p", "typ_p"},
      {"typical", "typ_p"},        {"typical-p", "typ_p"},
      {"typical_p", "typ_p"},      {"typ", "typ_p"},
      {"min-p", "min_p"},          {"minp", "min_p"},
      {"temp", "temperature"},     {"top-n-sigma", "top_n_sigma"},
      {"adaptive-p", "adaptive_p"}};
  for (const auto& [alias, name] : aliases) {
    INFO(alias);
    REQUIRE(llama_cpp_order::from_names(alias).has_value());
    CHECK(llama_cpp_order::from_names(alias)->names() == name);
  }
}

TEST_CASE("a stage may stand twice, and an order knows what it contains") {
  const auto order = llama_cpp_order::from_names("top_k;temp;top_k");
  CHECK(order->letters() == "ktk");
  CHECK(order->contains(stage::temperature));
  CHECK_FALSE(order->contains(stage::dry));
}

TEST_CASE("what is unknown is an error that names the place") {
  CHECK(complaint(llama_cpp_order::from_names("top_k;topq;min_p")) == "llama_cpp_order:7: unknown sampler \"topq\"");
  CHECK(complaint(llama_cpp_order::from_names("TOP_K")) == "llama_cpp_order:1: unknown sampler \"TOP_K\"");
  CHECK(complaint(llama_cpp_order::from_names("top_k; min_p")) == "llama_cpp_order:7: unknown sampler \" min_p\"");
  CHECK(complaint(llama_cpp_order::from_names("top_k;")) == "llama_cpp_order:7: unknown sampler \"\"");
  CHECK(complaint(llama_cpp_order::from_names(";top_k")) == "llama_cpp_order:1: unknown sampler \"\"");
  CHECK(complaint(llama_cpp_order::from_letters("kzt")) == "llama_cpp_order:2: unknown letter \"z\"");
}

TEST_CASE("infill is known, and refused") {
  CHECK(complaint(llama_cpp_order::from_names("infill")) ==
        "llama_cpp_order:1: sampler \"infill\" stands for infill, which decant does not have");
  CHECK(complaint(llama_cpp_order::from_letters("ki")) ==
        "llama_cpp_order:2: letter \"i\" stands for infill, which decant does not have");
}

}  // namespace llama_cpp_order_test
