#include "tests/launch/jobs.h"

#include <cstdlib>

#include "tests/support/catch.h"

namespace vckpt::launch {

double number(const std::string& json, const std::string& key) {
  const auto at = json.find("\"" + key + "\":");
  INFO(json);
  REQUIRE(at != std::string::npos);
  return std::strtod(json.c_str() + at + key.size() + 3, nullptr);
}

Ran Jobs::run(const std::string& what, int ranks, const std::string& layout,
              const std::vector<std::string>& more) const {
  std::vector<std::string> arguments = {"run",         "-n",       std::to_string(ranks),
                                        "--root",      root(),     "--deadline",
                                        deadline_s,    "--",       vckpt_program(),
                                        "drill",       what,       "--model",
                                        model,         "--layout", layout,
                                        "--optimizer", optimizer,  "--deadline",
                                        deadline_s,    "--report", folder.file("report.json")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return vckpt_command(arguments, environment);
}

std::string Jobs::save(int ranks, const std::string& layout, const std::vector<std::string>& more) const {
  const auto ran = run("save", ranks, layout, more);
  INFO(model << " saved over " << layout << "\n" << ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const auto report = read_file(folder.file("report.json"));
  CHECK(number(report, "ranks") == ranks);
  CHECK(number(report, "bytes_written") == number(report, "unique_bytes"));
  CHECK(number(report, "most_loaded_over_bound") <= 1.01);
  return report;
}

std::string Jobs::load(int ranks, const std::string& layout, const std::vector<std::string>& more) const {
  auto options = std::vector<std::string>{"--verify"};
  options.insert(options.end(), more.begin(), more.end());
  const auto ran = run("load", ranks, layout, options);
  INFO(model << " loaded over " << layout << "\n" << ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const auto report = read_file(folder.file("report.json"));
  CHECK(report.find("\"verified\":true") != std::string::npos);
  return report;
}

std::vector<std::uint64_t> Jobs::steps() const {
  const auto listed = vckpt_command({"ls", root(), "--json"});
  INFO(listed.err);
  REQUIRE(listed.code == 0);
  std::vector<std::uint64_t> steps;
  const std::string key = "\"step\":";
  for (auto at = listed.out.find(key); at != std::string::npos; at = listed.out.find(key, at + 1)) {
    steps.push_back(std::strtoull(listed.out.c_str() + at + key.size(), nullptr, 10));
  }
  return steps;
}

}  // namespace vckpt::launch
