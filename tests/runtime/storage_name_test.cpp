#include "runtime/storage_name.h"

#include "tests/support/catch.h"

using namespace vckpt;

TEST_CASE("a name is split into its components, the root's into none") {
  CHECK(split_name("").value().empty());
  CHECK(split_name("RUN").value() == std::vector<std::string>{"RUN"});
  CHECK(split_name("data/a.b/..c").value() == std::vector<std::string>{"data", "a.b", "..c"});
}

TEST_CASE("names that may mean another place are invalid and named") {
  for (const std::string name :
       {"/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", ".vckpt-tmp-1", "a/.vckpt-tmp-1"}) {
    INFO(name);
    const auto split = split_name(name);
    REQUIRE_FALSE(split.has_value());
    CHECK(split.error().code == Code::invalid);
    CHECK(split.error().message.find("'" + name + "'") != std::string::npos);
  }
  CHECK_FALSE(split_name(std::string("a\0b", 3)).has_value());
  CHECK_FALSE(split_name(temporary_name()).has_value());
}

TEST_CASE("names fit up to their bounds and not beyond") {
  CHECK(split_name(std::string(255, 'a')).has_value());
  CHECK_FALSE(split_name(std::string(256, 'a')).has_value());
  std::string deep = "a";
  for (std::size_t i = 1; i < name_components_max; ++i) deep += "/a";
  CHECK(split_name(deep).value().size() == name_components_max);
  CHECK_FALSE(split_name(deep + "/a").has_value());
}

TEST_CASE("temporary names differ") { CHECK(temporary_name() != temporary_name()); }
