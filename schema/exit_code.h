// How a program says that it failed: one line on stderr, and an exit code.
#pragma once

#include <string>
#include <string_view>

#include "schema/result.h"

namespace vckpt {

// 2 invalid, 3 not_found, 4 corrupt, 5 unavailable, 6 exhausted, 7 aborted, 70 internal.
int exit_code(Code code);

// `PROGRAM: CODE: message`, one line whatever the message holds.
std::string error_line(std::string_view program, const Error& error);

}  // namespace vckpt
