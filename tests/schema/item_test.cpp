// What a value may be.
#include "schema/item.h"

#include "tests/support/catch.h"

namespace vckpt {
namespace {

Value nested(std::size_t levels) {
  Value value;
  for (std::size_t i = 1; i < levels; ++i) {
    value = i % 2 == 0 ? Value{Value::List{value}} : Value{Value::Map{{"key", value}}};
  }
  return value;
}

std::string refusal(const Value& value) {
  const auto checked = check_value(value);
  REQUIRE_FALSE(checked.has_value());
  CHECK(checked.error().code == Code::invalid);
  return checked.error().message;
}

TEST_CASE("a value is refused one past each of its limits", "[item]") {
  CHECK(check_value(nested(value_depth_max)).has_value());
  CHECK(refusal(nested(value_depth_max + 1)) == "nested deeper than 12 levels");

  CHECK(check_value(Value{Value::List(value_nodes_max - 1)}).has_value());
  CHECK(refusal(Value{Value::List(value_nodes_max)}) == "more than 4194304 values");

  const std::string half(value_bytes_max / 2, 'x');
  CHECK(check_value(Value{Value::List{{half}, {Value::Bytes{half}}}}).has_value());
  CHECK(refusal(Value{Value::List{{half}, {Value::Bytes{half}}, {std::string("y")}}}) == "more than 134217728 bytes");
}

TEST_CASE("a key stands once in a map", "[item]") {
  const Value inner{Value::Map{{"a", {}}, {"b", {}}}};
  CHECK(check_value(Value{Value::Map{{"a", inner}, {"b", inner}}}).has_value());
  CHECK(refusal(Value{Value::List{{Value::Map{{"a", {}}, {"a", {true}}}}}}) == "the key 'a' stands in a map twice");
}

}  // namespace
}  // namespace vckpt
