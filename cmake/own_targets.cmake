# decant_own: what decant's tests, examples and benchmarks are compiled with, and users never are.
add_library(decant_own INTERFACE)
target_link_libraries(decant_own INTERFACE decant::decant)
target_compile_options(decant_own INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow $<$<BOOL:${DECANT_WERROR}>:-Werror>
  # clang++ warns of what libstdc++ 12's own std::stable_sort calls.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
if(DECANT_SANITIZE)
  target_compile_options(decant_own INTERFACE
    -fsanitize=${DECANT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(decant_own INTERFACE -fsanitize=${DECANT_SANITIZE})
endif()

find_program(CCACHE ccache)
mark_as_advanced(CCACHE)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
