# Under sanitizers libraries are compiled at -O1; tests are at -O0 in every build (tests/CMakeLists.txt): half the build
# time at little run time.
if(VCKPT_SANITIZE STREQUAL "address")
  # vptr misfires inside oneTBB's flow graph.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=address,undefined)
elseif(VCKPT_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=thread)
elseif(NOT VCKPT_SANITIZE STREQUAL "")
  message(FATAL_ERROR "VCKPT_SANITIZE is '${VCKPT_SANITIZE}': expected empty, address or thread")
endif()
