# DECANT_LLAMA_LIBRARY: the libllama that tests/peer compares with, from the cache or the environment. Without one those
# tests are skipped. DECANT_PEER_LLAMA fetches a prebuilt one, pinned, with npm into the build folder (11 MB, no headers:
# the tests declare what they call, and check the declarations).
option(DECANT_PEER_LLAMA "Fetch a prebuilt libllama for the tests that compare with llama.cpp" OFF)
set(DECANT_LLAMA_LIBRARY "$ENV{DECANT_LLAMA_LIBRARY}" CACHE FILEPATH "The libllama that tests/peer compares with")

if(DECANT_PEER_LLAMA AND NOT DECANT_LLAMA_LIBRARY)
  set(package @node-llama-cpp/linux-x64@3.21.1)
  set(archive node-llama-cpp-linux-x64-3.21.1.tgz)
  set(checksum 4b5b65a8b2611d8af94349b02d815c0f424a30a0a19aef2be5db25ecfef6730f)
  set(folder ${PROJECT_BINARY_DIR}/llama_peer)
  set(library ${folder}/package/bins/linux-x64/libllama.v0.4.0.so)
  if(NOT CMAKE_SYSTEM_NAME STREQUAL Linux OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    message(FATAL_ERROR "DECANT_PEER_LLAMA: the prebuilt library is for Linux on x86-64; name one in DECANT_LLAMA_LIBRARY")
  endif()
  if(NOT EXISTS ${library})
    find_program(NPM npm REQUIRED)
    file(MAKE_DIRECTORY ${folder})
    execute_process(COMMAND ${NPM} pack --silent ${package} WORKING_DIRECTORY ${folder}
      OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    file(SHA256 ${folder}/${archive} actual)
    if(NOT actual STREQUAL checksum)
      message(FATAL_ERROR "${folder}/${archive} has the checksum ${actual} instead of ${checksum}")
    endif()
    file(ARCHIVE_EXTRACT INPUT ${folder}/${archive} DESTINATION ${folder})
  endif()
  set(DECANT_LLAMA_LIBRARY ${library})
endif()
