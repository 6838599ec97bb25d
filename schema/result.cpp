#include "schema/result.h"

#include <cstdio>
#include <cstdlib>

namespace vckpt {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::invalid: return "invalid";
    case Code::not_found: return "not_found";
    case Code::corrupt: return "corrupt";
    case Code::unavailable: return "unavailable";
    case Code::exhausted: return "exhausted";
    case Code::aborted: return "aborted";
    case Code::internal: return "internal";
  }
  return "internal";
}

Error Error::with_context(std::string_view what) const { return Error{code, std::string(what) + ": " + message}; }

Error invalid(std::string message) { return Error{Code::invalid, std::move(message)}; }
Error not_found(std::string message) { return Error{Code::not_found, std::move(message)}; }
Error corrupt(std::string message) { return Error{Code::corrupt, std::move(message)}; }
Error unavailable(std::string message) { return Error{Code::unavailable, std::move(message)}; }
Error exhausted(std::string message) { return Error{Code::exhausted, std::move(message)}; }
Error aborted(std::string message) { return Error{Code::aborted, std::move(message)}; }
Error internal(std::string message) { return Error{Code::internal, std::move(message)}; }

void fail_assertion(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "vckpt: internal: assertion failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace vckpt
