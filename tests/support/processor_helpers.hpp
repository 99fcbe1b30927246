// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string_view>

/// Headers of the policy rooms that define no policy, but what policies share.
inline constexpr std::array<std::string_view, 14> processor_helpers{"bias_sum",
                                                                    "common_suffixes",
                                                                    "forcing",
                                                                    "green_list",
                                                                    "history",
                                                                    "keep_within",
                                                                    "sequence_breakers",
                                                                    "ties",
                                                                    "token_list",
                                                                    "torch_random",
                                                                    "tournament",
                                                                    "vocabulary_bytes",
                                                                    "watermark_detection",
                                                                    "watermark_key"};
