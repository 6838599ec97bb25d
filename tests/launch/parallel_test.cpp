#include "launch/parallel.h"

#include "tests/support/catch.h"

using namespace vckpt;
using namespace vckpt::launch;

TEST_CASE("a layout names its axes in any order and leaves out those of size one") {
  const auto parallel = parse_parallel("pp=3,tp=2,zero=1,dp=4,ep=2");
  REQUIRE(parallel.has_value());
  CHECK(*parallel == Parallel{2, 1, 1, 4, 3, 2, true});
  CHECK(parallel->world_size() == 24);
  CHECK(to_string(*parallel) == "tp=2,dp=4,pp=3,ep=2,zero=1");
  CHECK(parse_parallel(to_string(*parallel)).value() == *parallel);
  CHECK(to_string(parse_parallel("dp=1").value()) == "dp=1");
}

TEST_CASE("tensor parallelism runs fastest over the ranks and pipeline parallelism slowest") {
  const auto parallel = parse_parallel("tp=2,cp=3,fsdp=2,dp=5,pp=2").value();
  CHECK(position(parallel, Rank{1}) == Position{1, 0, 0, 0, 0});
  CHECK(position(parallel, Rank{2}) == Position{0, 1, 0, 0, 0});
  CHECK(position(parallel, Rank{6}) == Position{0, 0, 1, 0, 0});
  CHECK(position(parallel, Rank{12}) == Position{0, 0, 0, 1, 0});
  CHECK(position(parallel, Rank{60}) == Position{0, 0, 0, 0, 1});
  CHECK(position(parallel, Rank{119}) == Position{1, 2, 1, 4, 1});
}

TEST_CASE("a layout that makes no sense is refused with the part that is wrong") {
  const auto refused = [](const char* text, const char* noun) {
    const auto parsed = parse_parallel(text);
    INFO(text);
    REQUIRE(!parsed.has_value());
    CHECK(parsed.error().code == Code::invalid);
    CHECK(parsed.error().message.find(noun) != std::string::npos);
    CHECK(parsed.error().message.find('\n') == std::string::npos);
  };
  refused("", "''");
  refused("tp", "'tp'");
  refused("tp=2,", "''");
  refused("tp=", "'tp='");
  refused("tp=two", "'tp=two'");
  refused("tp=2x", "'tp=2x'");
  refused("tp=-1", "'tp=-1'");
  refused("tp=0", "tp=0");
  refused("tp=99999999999", "tp=99999999999");
  refused("xp=2", "'xp'");
  refused("tp=2,tp=2", "tp stands twice");
  refused("dp=4,ep=3", "ep=3 does not divide dp=4");
  refused("zero=2", "zero is 0 or 1");
  refused("tp=1024,dp=1025", "more than 1048576 ranks");
  refused("tp=1048576,dp=1048576,pp=1048576", "more than 1048576 ranks");
  CHECK(parse_parallel("tp=1024,dp=1024").has_value());
}
