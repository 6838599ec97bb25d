#include "tests/processes/struck_save.h"

#include "tests/launch/jobs.h"
#include "tests/support/catch.h"

namespace vckpt::testing {
namespace {

using launch::Jobs;

constexpr auto layout = "fsdp=3";
constexpr auto other_layout = "dp=3";  // of another plan

void check_afterwards(const Jobs& jobs) {
  const auto steps = jobs.steps();
  REQUIRE(!steps.empty());
  CHECK(steps.front() == 1);
  CHECK(steps.size() <= 2);
  const auto newest = steps.back();
  CHECK((newest == 1 || newest == 2));
  CHECK(launch::number(jobs.load(2, "tp=2"), "step") == static_cast<double>(newest));
  jobs.save(struck_ranks, layout, {"--step", "3"});
  CHECK(launch::number(jobs.load(2, "tp=2"), "step") == 3);
  auto expected = steps;
  expected.push_back(3);
  CHECK(jobs.steps() == expected);
  const auto verified = launch::vckpt_command({"verify", jobs.root(), "--deep"});
  INFO(verified.out << verified.err);
  CHECK(verified.code == 0);
}

}  // namespace

std::optional<launch::Ran> struck_save(const Fault& fault) {
  Jobs jobs{{}, "llama:tiny", "none", "2"};
  jobs.save(struck_ranks, layout, {"--step", "1"});
  const FaultyProcesses faulty(fault);
  jobs.environment = faulty.environment();
  auto ran = jobs.run("save", struck_ranks, other_layout, {"--step", "2"});
  jobs.environment.clear();
  INFO(describe(fault) << "\n" << faulty.struck() << ran.out << ran.err);
  CHECK(ran.code != -1);
  if (faulty.struck().empty()) return std::nullopt;
  check_afterwards(jobs);
  return ran;
}

std::string error_of(const launch::Ran& ran, int rank) {
  const auto begin = ran.err.find("[" + std::to_string(rank) + "] vckpt drill: ");
  REQUIRE(begin != std::string::npos);
  return ran.err.substr(begin, ran.err.find('\n', begin) - begin);
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace vckpt::testing
