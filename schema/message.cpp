#include "schema/message.h"

namespace vckpt {

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::call: return "call";
    case Phase::plan: return "plan";
    case Phase::copy: return "copy";
    case Phase::write: return "write";
    case Phase::sync: return "sync";
    case Phase::decide: return "decide";
    case Phase::read: return "read";
    case Phase::exchange: return "exchange";
    case Phase::scatter: return "scatter";
  }
  return "unknown";
}

}  // namespace vckpt
