// SPDX-License-Identifier: MIT
#pragma once

// llama.cpp's samplers, out of a library that is loaded at run time: its C functions are declared here, since a
// prebuilt library comes without headers. tests/peer/llama_library.test.cpp checks that the declarations fit.

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#ifndef DECANT_LLAMA_LIBRARY
#define DECANT_LLAMA_LIBRARY ""
#endif

namespace peer {

struct token_data {
  std::int32_t id;
  float logit;
  float p;
};

struct token_data_array {
  token_data* data;
  std::size_t size;
  std::int64_t selected;
  bool sorted;
};

struct bias {
  std::int32_t token;
  float value;
};

struct llama_sampler;  // theirs

/// The functions of one loaded library.
class llama_library {
 public:
  /// The library that the environment or the build names, loaded once; null if neither names one.
  static const llama_library* get() {
    static const std::unique_ptr<const llama_library> library = load();
    return library.get();
  }

  // NOLINTBEGIN: the names are llama.cpp's, without their prefix llama_sampler_
  void (*apply)(llama_sampler*, token_data_array*);
  void (*accept)(llama_sampler*, std::int32_t token);
  void (*free)(llama_sampler*);
  llama_sampler* (*init_greedy)();
  llama_sampler* (*init_dist)(std::uint32_t seed);
  llama_sampler* (*init_top_k)(std::int32_t k);
  llama_sampler* (*init_top_p)(float p, std::size_t min_keep);
  llama_sampler* (*init_min_p)(float p, std::size_t min_keep);
  llama_sampler* (*init_typical)(float p, std::size_t min_keep);
  llama_sampler* (*init_temp)(float t);
  llama_sampler* (*init_temp_ext)(float t, float range, float exponent);
  llama_sampler* (*init_xtc)(float probability, float threshold, std::size_t min_keep, std::uint32_t seed);
  llama_sampler* (*init_top_n_sigma)(float n);
  llama_sampler* (*init_mirostat)(std::int32_t vocabulary, std::uint32_t seed, float tau, float eta, std::int32_t m);
  llama_sampler* (*init_mirostat_v2)(std::uint32_t seed, float tau, float eta);
  llama_sampler* (*init_penalties)(std::int32_t vocabulary, std::int32_t last_n, float repeat, float frequency,
                                   float presence);
  llama_sampler* (*init_dry)(const void* vocabulary, float multiplier, float base, std::int32_t allowed_length,
                             std::int32_t last_n, const char** breakers, std::size_t breaker_count);
  llama_sampler* (*init_logit_bias)(std::int32_t vocabulary, std::int32_t count, const bias* biases);
  llama_sampler* (*init_adaptive_p)(float target, float decay, std::uint32_t seed);
  // NOLINTEND

 private:
  static std::string path() {
    const char* named = std::getenv("DECANT_LLAMA_LIBRARY");
    return named != nullptr && *named != '\0' ? named : DECANT_LLAMA_LIBRARY;
  }

  static std::unique_ptr<const llama_library> load() {
    if (path().empty()) return nullptr;
    // A library that is named and cannot be used is an error, not a reason to skip.
    void* const handle = dlopen(path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw std::runtime_error(dlerror());
    auto library = std::make_unique<llama_library>();
    const auto find = [&](auto& function, const std::string& name) {
      void* const symbol = dlsym(handle, ("llama_sampler_" + name).c_str());
      if (symbol == nullptr) throw std::runtime_error(path() + " has no llama_sampler_" + name);
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
    };
    find(library->apply, "apply");
    find(library->accept, "accept");
    find(library->free, "free");
    find(library->init_greedy, "init_greedy");
    find(library->init_dist, "init_dist");
    find(library->init_top_k, "init_top_k");
    find(library->init_top_p, "init_top_p");
    find(library->init_min_p, "init_min_p");
    find(library->init_typical, "init_typical");
    find(library->init_temp, "init_temp");
    find(library->init_temp_ext, "init_temp_ext");
    find(library->init_xtc, "init_xtc");
    find(library->init_top_n_sigma, "init_top_n_sigma");
    find(library->init_mirostat, "init_mirostat");
    find(library->init_mirostat_v2, "init_mirostat_v2");
    find(library->init_penalties, "init_penalties");
    find(library->init_dry, "init_dry");
    find(library->init_logit_bias, "init_logit_bias");
    find(library->init_adaptive_p, "init_adaptive_p");
    return library;
  }
};

/// Owns one of llama.cpp's samplers.
class sampler {
 public:
  explicit sampler(llama_sampler* made) : sampler_(made) {}

  void apply(token_data_array& row) { llama_library::get()->apply(sampler_.get(), &row); }
  void accept(std::int32_t token) { llama_library::get()->accept(sampler_.get(), token); }

 private:
  struct releaser {
    void operator()(llama_sampler* made) const { llama_library::get()->free(made); }
  };
  std::unique_ptr<llama_sampler, releaser> sampler_;
};

}  // namespace peer

/// Ends the test case, and has ctest count it as skipped, where no libllama is named.
#define SKIP_WITHOUT_LLAMA()                                                                                        \
  do {                                                                                                              \
    if (peer::llama_library::get() == nullptr) {                                                                    \
      std::printf("SKIPPED: no libllama: configure with DECANT_PEER_LLAMA, or name one in DECANT_LLAMA_LIBRARY\n"); \
      std::fflush(stdout);                                                                                          \
      return;                                                                                                       \
    }                                                                                                               \
  } while (false)
