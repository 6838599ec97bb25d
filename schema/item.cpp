#include "schema/item.h"

namespace vckpt {

std::string_view to_string(Scope scope) {
  switch (scope) {
    case Scope::replicated: return "replicated";
    case Scope::per_rank: return "per_rank";
    case Scope::splittable: return "splittable";
  }
  return "unknown";
}

}  // namespace vckpt
