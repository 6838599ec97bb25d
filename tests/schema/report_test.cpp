// The JSON form of a report holds every field under its own name.
#include "schema/report.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

namespace vckpt {
namespace {

TEST_CASE("a report as JSON holds every field", "[report]") {
  const Report report{1, 2, 3, 4, 5, 6, 7.5, 8.5, 9.5, true, 10.5, 11.5, 12.5, 13.5, 0xFFFFFFFFFFFFFFFF};
  const auto json = nlohmann::json::parse(to_json(report));
  const nlohmann::json expected = {{"ranks", 1},
                                   {"unique_bytes", 2},
                                   {"bytes_written", 3},
                                   {"storage_bytes_read", 4},
                                   {"bytes_needed", 5},
                                   {"bytes_received", 6},
                                   {"most_loaded_over_mean", 7.5},
                                   {"most_loaded_over_bound", 8.5},
                                   {"plan_seconds", 9.5},
                                   {"plan_cached", true},
                                   {"stall_seconds", 10.5},
                                   {"stall_copy_seconds", 11.5},
                                   {"stall_peers_seconds", 12.5},
                                   {"durable_seconds", 13.5},
                                   {"staging_peak_bytes", 0xFFFFFFFFFFFFFFFF}};
  CHECK(json == expected);
}

TEST_CASE("a report is one line", "[report]") { CHECK(to_json(Report{}).find('\n') == std::string::npos); }

TEST_CASE("a ratio of nothing is null in JSON, so that the text stays valid", "[report]") {
  Report report;
  report.most_loaded_over_mean = std::numeric_limits<double>::quiet_NaN();
  CHECK(nlohmann::json::parse(to_json(report))["most_loaded_over_mean"].is_null());
}

}  // namespace
}  // namespace vckpt
